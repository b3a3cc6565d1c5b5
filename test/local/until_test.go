// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

func TestTimeoutReportsUnmetExpressions(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"first-marker", "--timeout", "4s",
		"--until", "pod/worker-* condition=example.com/busy:True", "--until", "pod/worker-0 label=app:worker")
	r.wantCode(t, 1)
	want := "timed out after 4s:\n  pod/worker-* condition=example.com/busy:True: worker-0 has \"False\", worker-1 has \"False\"\n"
	if !strings.HasSuffix(r.stderr, want) {
		t.Errorf("standard error %q, want it to end with %q", r.stderr, want)
	}
}

// Invalid manifests are rejected before anything runs, with all of their errors.
func TestInvalidManifests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		manifest string
		want     []string
	}{
		"no command": {`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: nginx}]}}`,
			[]string{"Pod web", "spec.containers[0].command"}},
		"readiness grace period": {`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, command: [a],
			readinessProbe: {exec: {command: [b]}, terminationGracePeriodSeconds: 3}}]}}`,
			[]string{"spec.containers[0].readinessProbe.terminationGracePeriodSeconds"}},
		"liveness successThreshold": {`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, command: [a],
			livenessProbe: {exec: {command: [b]}, successThreshold: 2}}]}}`,
			[]string{"spec.containers[0].livenessProbe.successThreshold", "must be 1"}},
		"marker without probes": {`{apiVersion: apps.kruise.io/v1alpha1, kind: PodProbeMarker, metadata: {name: m}, spec: {selector: {matchLabels: {a: b}}}}`,
			[]string{"PodProbeMarker m", "spec.probes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), "seamark", "local", "-f", "-")
			var stderr bytes.Buffer
			command.Stdin, command.Stderr = strings.NewReader(test.manifest), &stderr
			if err := command.Run(); err == nil {
				t.Fatal("the run succeeded")
			}
			if code := command.ProcessState.ExitCode(); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			for _, want := range append(test.want, "standard input: document 1") {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("standard error %q does not contain %q", stderr.String(), want)
				}
			}
		})
	}
}
