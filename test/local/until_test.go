// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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

// The shell expands the variables of --command, and its error is the container's message.
func TestCommandOption(t *testing.T) {
	t.Parallel()
	manifest := filepath.Join(t.TempDir(), "pod.yaml")
	text := "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {restartPolicy: Never, containers: [{name: main, image: x, env: [{name: A, value: a}]}]}}"
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := seamark(t, "-f", manifest, "--timeout", "20s", "--command", "main=b=b; printf '\\033[31m%s\\n' $A-$b-$(echo c) >&2; exit 3")
	for _, one := range r.records {
		if one.ContainerStatus != nil && one.ContainerStatus.State.Terminated != nil {
			if got := one.ContainerStatus.State.Terminated.Message; got != "a-b-c" {
				t.Errorf("message %q, want a-b-c", got)
			}
			return
		}
	}
	t.Error("the container did not end")
}
