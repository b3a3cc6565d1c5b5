// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/golden"
)

// daemonSet returns a DaemonSet with the annotations, and with the lines in its spec.
func daemonSet(name, annotations string, lines ...string) string {
	return fmt.Sprintf(`apiVersion: apps.kruise.io/v1alpha1
kind: DaemonSet
metadata: {namespace: game, name: %s, uid: %s, annotations: {%s}}
spec:
  selector: {matchLabels: {app: x}}
  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1m}}}]}}
  %s
status: {daemonSetHash: "1"}
`, name, name, annotations, strings.Join(lines, "\n  "))
}

func TestDaemonSets(t *testing.T) {
	const (
		pull      = `apps.kruise.io/image-predownload-parallelism: "5"`
		hook      = "{labelsHandler: {a: b}}"
		partition = "rollingUpdate: {partition: 50%}"
	)
	sets := []string{
		// What OpenKruise's webhook stores.
		daemonSet("same", "", "burstReplicas: 250", "revisionHistoryLimit: 10", "updateStrategy: {type: RollingUpdate, rollingUpdate: "+
			"{rollingUpdateType: Standard, maxUnavailable: 1, maxSurge: 0, partition: 0, paused: false}}"),
		daemonSet("surging", "", "updateStrategy: {rollingUpdate: {rollingUpdateType: Surging}}"),
		daemonSet("in-place", "", "updateStrategy: {rollingUpdate: {rollingUpdateType: InPlaceIfPossible}}"),
		daemonSet("percent", "", "minReadySeconds: 5", "updateStrategy: {"+partition+"}"),
		daemonSet("burst", "", "burstReplicas: 0"),
		daemonSet("no-budget", "", "updateStrategy: {type: OnDelete, rollingUpdate: {maxUnavailable: 0}}"),
		daemonSet("hooks", "", "lifecycle: {preDelete: "+hook+", preNormal: "+hook+"}"),
		daemonSet("in-place-hook", "", "lifecycle: {inPlaceUpdate: "+hook+"}"),
		daemonSet("pull", pull),
		daemonSet("invalid-pull", strings.ReplaceAll(pull, "5", "many")),
		daemonSet("panic", pull, "minReadySeconds: 5", "updateStrategy: {type: OnDelete, "+partition+"}"),
		strings.ReplaceAll(daemonSet("excluded", ""), "namespace: game", "namespace: kube-system"),
		daemonSet("a-name-that-is-longer-than-the-label-of-a-revision-can-be", ""),
		strings.ReplaceAll(daemonSet("version", ""), "v1alpha1", "v1"),
		"apiVersion: apps.kruise.io/v1alpha1\nkind: DaemonSet\nmetadata: {namespace: game, name: type}\nspec: {minReadySeconds: soon}\n",
	}
	found, err := migration.Check(t.Context(), migration.Cluster{
		// Whether a pod in PreparingDelete stays depends on its node.
		Objects: byKind(objects(t, strings.Join(sets, "---\n"))), Pods: members("same d-x controller-revision-hash=1 " + leaving),
	})
	expect.NoError(t, err)
	golden.Compare(t, filepath.Join("testdata", "DaemonSets.txt"), text(found))
}

func TestDaemonSetsOfAReturn(t *testing.T) {
	const exempt, progressive = `seamark.dev/exempt-unreachable-nodes: "true"`, `daemonset.kruise.io/progressive-create-pod: "true"`
	sets := []string{
		daemonSet("same", progressive, "scaleStrategy: {partitionedScaling: true}"),
		daemonSet("exempt", exempt),
		daemonSet("partitioned", "", "scaleStrategy: {partitionedScaling: true}"),
		daemonSet("in-place", "", "updateStrategy: {rollingUpdate: {rollingUpdateType: InPlaceIfPossible}}"),
		daemonSet("percent", "", "updateStrategy: {rollingUpdate: {partition: 50%}}"),
	}
	found, err := migration.CheckBack(migration.Cluster{Objects: byKind(objects(t, strings.Join(sets, "---\n")))})
	expect.NoError(t, err)
	golden.Compare(t, filepath.Join("testdata", "DaemonSets-of-a-return.txt"), text(found))
}
