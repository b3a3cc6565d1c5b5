// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/version"
	"github.com/seamark-dev/seamark/test/expect"
)

// Only a user who may read the manager's Deployment sees the version of Seamark.
func TestVersion(t *testing.T) {
	w := newWorld(t)
	labels := map[string]string{"app.kubernetes.io/version": "v0.9.0"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seamark-system"}}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "seamark-manager", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "manager"}}},
			},
		},
	}
	expect.NoError(t, client.IgnoreAlreadyExists(shared.Client.Create(t.Context(), namespace)))
	expect.NoError(t, shared.Client.Create(t.Context(), deployment))
	t.Cleanup(func() { expect.NoError(t, shared.Client.Delete(context.WithoutCancel(t.Context()), deployment)) })
	for user, want := range map[string]string{"": "v0.9.0", developer: ""} {
		stdout, stderr, code := w.run(t, "version", "-o", "json", "--as="+user)
		var got version.Versions
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exit.OK || stderr != "" {
			t.Fatalf("user %q: exit code %d, errors %q, %v: %s", user, code, stderr, err, stdout)
		}
		if got.Client != version.Of("test") || got.Server == nil || !strings.HasPrefix(got.Server.GitVersion, "v1.") || got.Seamark != want {
			t.Errorf("user %q: versions %+v", user, got)
		}
	}
	stdout, _, _ := w.run(t, "version")
	if !strings.Contains(stdout, "\nKubernetes v1.") || !strings.HasSuffix(stdout, "\nSeamark in the cluster: v0.9.0\n") {
		t.Errorf("printed %q", stdout)
	}
}
