// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestPrintCheck(t *testing.T) {
	report := checkReport{Markers: 1, Objects: map[string]int{"CloneSet": 2}, Findings: []migration.Finding{
		{
			Level: migration.Blocks, Kind: "CloneSet", Namespace: "game", Name: "c", Field: "spec.lifecycle.preNormal",
			OpenKruise: "implements it", Seamark: "does not implement it", Action: "use a readiness gate",
		},
		{Level: migration.Changes, Kind: "Namespace", Name: "game", OpenKruise: "a", Seamark: "b"},
		{Level: migration.Changes, Kind: "CloneSet", Namespace: "game", Name: "c", OpenKruise: "a", Seamark: "b", Pods: "c-x"},
	}}
	for i := range 3000 { // They differ in their objects only.
		report.Findings = append(report.Findings, migration.Finding{
			Level: migration.Changes, Kind: "StatefulSet", Namespace: "game", Name: fmt.Sprintf("s%d", i),
			OpenKruise: "a", Seamark: "b", Pods: fmt.Sprintf("s%d-0", i),
		})
	}
	want := `blocks   CloneSet game/c  spec.lifecycle.preNormal
         OpenKruise: implements it
         Seamark:    does not implement it
         action:     use a readiness gate
changes  Namespace game
         OpenKruise: a
         Seamark:    b
changes  CloneSet game/c
         OpenKruise: a
         Seamark:    b
         pods:       c-x
changes  StatefulSet game/s0, game/s1, game/s2, game/s3, game/s4, game/s5, game/s6, game/s7, game/s8, game/s9 and 2990 more
         OpenKruise: a
         Seamark:    b
Checked 1 PodProbeMarker, 2 CloneSets, 0 StatefulSets, 0 DaemonSets, 0 SidecarSets, 0 AdvancedCronJobs, 0 BroadcastJobs and 0 ImagePullJobs: 3003 findings, of which 1 block a migration.
`
	var out bytes.Buffer
	expect.NoError(t, report.print(&out))
	expect.Equal(t, "output", want, out.String())
	expect.Equal(t, "exit code", exit.Failed, exit.Code(report.verdict()))
	complete, incomplete := checkReport{Findings: report.Findings[1:]}, checkReport{Unread: []string{"nodes"}}
	expect.Equal(t, "exit code if nothing blocks", exit.OK, exit.Code(complete.verdict()))
	expect.Equal(t, "exit code if something could not be read", exit.Access, exit.Code(incomplete.verdict()))
}

// unchecked follows the findings about files.
const unchecked = "The manifests were checked by the rules of Seamark. Whether OpenKruise accepts them was not checked.\n"

// TestCheckOfFiles checks manifests from the standard input: documents, a list, and objects
// that do not matter.
func TestCheckOfFiles(t *testing.T) {
	const manifests = `# A comment.
---
apiVersion: v1
kind: List
items:
- apiVersion: apps.kruise.io/v1alpha1
  kind: PodProbeMarker
  metadata: {namespace: game, name: m}
  spec:
    selector: {matchLabels: {app: server}}
    probes:
    - name: idle
      containerName: server
      probe: {exec: {command: [/idle]}, initialDelaySeconds: 1, periodSeconds: 1}
      podConditionType: game.io/idle
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: built-in}
---
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {namespace: game, name: s}
spec:
  serviceName: s
  replicas: -1
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: i}]}}
`
	want := `blocks   StatefulSet game/s  spec.replicas
         OpenKruise: not checked: this command has only the rules of Seamark
         Seamark:    refuses it: Invalid value: -1: spec.replicas in body should be greater than or equal to 0
         place:      standard input:26:3
         action:     correct the field
changes  PodProbeMarker game/m
         OpenKruise: writes each changed message at once
         Seamark:    writes a message that changes within a state three times, then once per minute
         action:     keep OpenKruise's behavior with manager.config.messageUpdates=Immediate, or per marker with the annotation seamark.dev/message-updates
changes  PodProbeMarker game/m  spec.probes[0].probe
         OpenKruise: runs unset failureThreshold: 1
         Seamark:    runs unset failureThreshold: 3
         place:      standard input:14:7
         action:     set the fields, or keep OpenKruise's values with manager.config.probeDefaults
Checked 1 PodProbeMarker, 0 CloneSets, 1 StatefulSet, 0 DaemonSets, 0 SidecarSets, 0 AdvancedCronJobs, 0 BroadcastJobs and 0 ImagePullJobs: 3 findings, of which 1 block a migration.
` + unchecked
	const versions = `apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: known}
---
apiVersion: apps.kruise.io/v9
kind: CloneSet
metadata: {name: unknown}
---
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: m}
spec:
  selector: {matchLabels: {app: server}}
  probes: [{name: x, containerName: c, probe: {tcpSocket: {port: 1}, failureThreshold: 1, periodSeconds: 1, initialDelaySeconds: 1}, podConditionType: Ready}]
`
	versionFindings := `blocks   CloneSet known  apiVersion
         OpenKruise: serves v1beta1
         Seamark:    serves v1alpha1 only
         place:      standard input:1:1
         action:     convert the manifest to v1alpha1: move the fields of updateStrategy.rollingUpdate to updateStrategy ` +
		"and its podUpdatePolicy to updateStrategy.type, and set scaleStrategy.disablePVCReuse: true in place of enablePVCReuse: false, its default\n" + `blocks   CloneSet unknown  apiVersion
         OpenKruise: not checked: this command has only the rules of Seamark
         Seamark:    serves v1alpha1 only
         place:      standard input:5:1
         action:     convert the manifest to v1alpha1
blocks   PodProbeMarker m
         OpenKruise: not checked: this command has only the rules of Seamark
         Seamark:    does not follow it: spec.probes[0].podConditionType: "Ready" is invalid: must not be a condition type of Kubernetes
         action:     correct the marker, or delete and create it
Checked 1 PodProbeMarker, 2 CloneSets, 0 StatefulSets, 0 DaemonSets, 0 SidecarSets, 0 AdvancedCronJobs, 0 BroadcastJobs and 0 ImagePullJobs: 3 findings, of which 3 block a migration.
`
	const unknown = `{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {name: u}}
---
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {namespace: default, name: c}
spec:
  replica: 1
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: i}]}}
`
	unknownFindings := `blocks   CloneSet default/c  spec.replica
         OpenKruise: not checked: this command has only the rules of Seamark
         Seamark:    refuses it: unknown field: did you mean "replicas"?
         place:      standard input:7:3
         action:     correct the field
changes  CustomResourceDefinition uniteddeployments.apps.kruise.io
         OpenKruise: serves UnitedDeployment objects
         Seamark:    does not serve this kind
         action:     keep OpenKruise for it, without seamark-workloads; step 7 of docs/migrate-from-openkruise.md would delete these objects
Checked 0 PodProbeMarkers, 1 CloneSet, 0 StatefulSets, 0 DaemonSets, 0 SidecarSets, 0 AdvancedCronJobs, 0 BroadcastJobs and 0 ImagePullJobs: 2 findings, of which 1 block a migration.
`
	for name, test := range map[string]struct {
		in       string
		wantCode int
		want     string
	}{
		"objects":                 {manifests, exit.Failed, want},
		"nothing":                 {"---\n", exit.Usage, ""},
		"unknown kind":            {manifests + "---\n{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSett, metadata: {name: c}}\n", exit.Usage, ""},
		"marker of another group": {strings.ReplaceAll(manifests, "kruise.io/v1alpha1", "example.com/v1"), exit.Usage, ""},
		"unknown field, and a kind of OpenKruise":     {unknown, exit.Failed, unknownFindings + unchecked},
		"versions, and a marker that is not followed": {versions, exit.Failed, versionFindings + unchecked},
		"not YAML": {"{", exit.Usage, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := &CheckOptions{
				IOStreams: genericiooptions.IOStreams{In: strings.NewReader(test.in), Out: &out, ErrOut: io.Discard},
				Filenames: []string{"-"}, Output: printing.Text,
			}
			expect.Equal(t, "exit code", test.wantCode, exit.Code(o.Run(t.Context())))
			expect.Equal(t, "output", test.want, out.String())
		})
	}
}

func TestCheckIsSafe(t *testing.T) {
	findings := []migration.Finding{{
		Level: migration.Blocks, Field: texttest.Hostile, OpenKruise: texttest.Hostile, Seamark: texttest.Hostile, Action: texttest.Hostile,
	}}
	found := checkReport{Findings: findings}
	clitest.CheckReport(t, func(out io.Writer, format printing.Report) error { return format.Print(out, found, found.print) })
	clitest.CheckColors(t, found.print)
}
