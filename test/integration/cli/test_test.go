// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/exit"
)

// tester is a user who may also run commands in pods and connect to them.
const tester = "tester"

const testedMarker = `apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: trial}
spec:
  selector: {matchLabels: {app: game}}
  probes:
  - {name: command, containerName: main, probe: {exec: {command: [/probe]}}, podConditionType: game.io/command}
  - {name: socket, containerName: main, probe: {tcpSocket: {port: 80}}, podConditionType: game.io/socket}
`

// start reports the container of the pod as running, at an address that no one has.
func (w world) start(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := shared.Client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.PodIP = "10.0.0.1"
	pod.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	if err := shared.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// grantTest gives the tester the permissions of the developer, and to create sessions.
func (w world) grantTest(t *testing.T) {
	t.Helper()
	subject := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: tester}}
	role := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
	}
	for _, object := range []client.Object{
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "test"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/exec", "pods/portforward"}, Verbs: []string{"get", "create"}}},
		},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "test"}, RoleRef: role("test"), Subjects: subject},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "test-view"}, RoleRef: role("view-probes"), Subjects: subject},
	} {
		if err := shared.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// There is no kubelet, so no probe has a result.
func TestTest(t *testing.T) {
	w := newWorld(t)
	w.grantTest(t)
	before := w.start(t, "game-1")
	file := filepath.Join(t.TempDir(), "marker.yaml")
	if err := os.WriteFile(file, []byte(testedMarker), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args           []string
		stdout, stderr []string
		code           int
	}{
		"no kubelet": {
			[]string{"-f", file, "game-1", "--as=" + tester}, []string{"trial#command", "trial#socket", "Error"},
			[]string{"of 2 probes, 2 had no result"}, exit.Failed,
		},
		"stored marker": {[]string{"-m", "game#idle", "game-1", "--as=" + tester}, []string{"game#idle", "Error"}, []string{"of 1 probes, 1 had no result"}, exit.Failed},
		"no permission": {
			[]string{"-f", file, "game-1", "--as=" + developer}, []string{"NotRun", "no permission to create pods/exec", "no permission to create pods/portforward"},
			[]string{"no permission to create pods/exec in namespace " + w.namespace + "; ask for: kubectl create role", "no permission to create pods/portforward"}, exit.Access,
		},
		"no kubelet, repeated": {
			[]string{"-f", file, "game-1", "--for=2s", "--as=" + tester}, []string{"TRANSITIONS", "trial#command", "trial#socket", "Error"},
			[]string{"of 2 probes, 2 had no result"}, exit.Failed,
		},
		"no permission, repeated": {
			[]string{"-f", file, "game-1", "--for=1h", "--as=" + developer}, []string{"TRANSITIONS", "NotRun", "no permission to create pods/exec"},
			[]string{"no permission to create pods/portforward in namespace " + w.namespace}, exit.Access,
		},
		"container that has not started": {[]string{"-f", file, "game-0", "--as=" + tester}, []string{"the container has not started"}, []string{"2 could not run"}, exit.Failed},
		"no such pod":                    {[]string{"-f", file, "game-7", "--as=" + tester}, nil, []string{`pod "game-7" not found`}, exit.Failed},
		"user without permissions":       {[]string{"-f", file, "--as=nobody"}, nil, []string{"no permission to list pods"}, exit.Access},
		"no API server":                  {[]string{"-f", file, "--server=https://127.0.0.1:1"}, nil, []string{"connection refused"}, exit.Access},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := w.run(t, append([]string{"test"}, test.args...)...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, want := range test.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("output %q, want %q", stdout, want)
				}
			}
			for _, want := range test.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("standard error %q, want %q", stderr, want)
				}
			}
		})
	}
	after := &corev1.Pod{}
	if err := shared.Client.Get(t.Context(), client.ObjectKeyFromObject(before), after); err != nil {
		t.Fatal(err)
	}
	if after.ResourceVersion != before.ResourceVersion {
		t.Errorf("resource version %s, want %s: the command changed the pod", after.ResourceVersion, before.ResourceVersion)
	}
}
