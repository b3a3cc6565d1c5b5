// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestManagerOf(t *testing.T) {
	all := map[string]bool{
		migration.GateStartOrdinal: true, migration.GateResize: true, migration.GateExpand: true,
		migration.GatePreDownload: true, migration.GatePreDownloadDaemonSets: true, migration.GateNoDefaults: true,
		migration.GateRollback: true, migration.GatePreparingUpdate: true,
	}
	for name, test := range map[string]struct {
		args            string
		election        bool
		namespace, name string
		on              map[string]bool
	}{
		"none":      {"", true, "kruise-system", "kruise-manager", nil},
		"the chart": {"--enable-leader-election --metrics-addr=:8080 --v=4 --feature-gates= --logtostderr=true", true, "kruise-system", "kruise-manager", nil},
		"no leader election": {
			"--enable-leader-election=false --feature-gates=StatefulSetStartOrdinal=true,CloneSetShortHash=true", false, "kruise-system", "kruise-manager",
			map[string]bool{migration.GateStartOrdinal: true},
		},
		"separate values": {
			"--leader-election-namespace kruise --leader-election-id mine --feature-gates InPlaceWorkloadVerticalScaling=true", true, "kruise", "mine",
			map[string]bool{migration.GateResize: true},
		},
		"all gates": {"--feature-gates=AllAlpha=true", true, "kruise-system", "kruise-manager", all},
		"all gates but one": {
			"--feature-gates=AllAlpha=true,PreDownloadImageForInPlaceUpdate=false", true, "kruise-system", "kruise-manager",
			map[string]bool{
				migration.GateStartOrdinal: true, migration.GateResize: true, migration.GateExpand: true, migration.GatePreDownloadDaemonSets: true,
				migration.GateNoDefaults: true, migration.GateRollback: true, migration.GatePreparingUpdate: true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &appsv1.Deployment{}
			deployment.Spec.Template.Spec.Containers = []corev1.Container{
				{Name: "proxy", Args: []string{"--enable-leader-election=false"}},
				{Name: "manager", Command: []string{"/manager"}, Args: strings.Fields(test.args)},
			}
			got := migration.ManagerOf(deployment)
			if got.LeaderElection != test.election || got.LeaseNamespace != test.namespace || got.LeaseName != test.name {
				t.Errorf("got %+v", got)
			}
			on := map[string]bool{}
			for gate := range all {
				if got.Gates[gate] {
					on[gate] = true
				}
			}
			if test.on == nil {
				test.on = map[string]bool{}
			}
			expect.Equal(t, "gates", test.on, on)
		})
	}
	if got := migration.ManagerOf(&appsv1.Deployment{}); !got.LeaderElection {
		t.Errorf("a manager without containers: %+v", got)
	}
}

// TestCheckKeepsObjects checks that the objects are not changed: setting defaults would.
func TestCheckKeepsObjects(t *testing.T) {
	found := objects(t, complete)
	before := runtime.DeepCopyJSON(found[0].Object)
	if _, err := migration.Check(t.Context(), migration.Cluster{Markers: found}); err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "marker", before, found[0].Object)
}
