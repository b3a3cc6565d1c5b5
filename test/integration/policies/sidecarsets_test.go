// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestWorkloadsChangeOnlyInjectedContainers checks the policy for the pods of seamark-workloads as config/sidecarsets
// changes it, with an account of another name that has all rights.
func TestWorkloadsChangeOnlyInjectedContainers(t *testing.T) {
	t.Parallel()
	const account = "seamark-workloads-with-sidecars"
	manifests, err := env.ReadManifests("config/workloads/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range manifests {
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.NewReplacer(
			"':seamark-workloads'", "':"+account+"'", "seamark-workloads-pods", account+"-pods", `{"expression":"false","name":"sidecarSets"}`, `{"expression":"true","name":"sidecarSets"}`,
		).Replace(string(text))
		copied := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(changed), &copied.Object); err != nil {
			t.Fatal(err)
		}
		server.Apply(t, copied)
	}
	namespace := server.Namespace(t)
	config := server.ServiceAccount(t, namespace, account, nil)
	server.GrantAll(t, namespace, account)
	as, _ := clientOf(t, server, config)
	const foreign = "its controller must be a CloneSet, StatefulSet, DaemonSet or BroadcastJob of apps.kruise.io"
	shared := server.Namespace(t)
	eventually(t, "policy in effect", func(ctx context.Context) error {
		return rejectedWith(foreign)(as.Create(ctx, podOf(shared), client.DryRunAll))
	})
	image := func(container, list string) podWrite {
		return func(ctx context.Context, c client.Client, pod *corev1.Pod) error {
			body := fmt.Sprintf(`{"spec": {%q: [{"name": %q, "image": "new"}]}}`, list, container)
			return c.Patch(ctx, pod, client.RawPatch("application/strategic-merge-patch+json", []byte(body)))
		}
	}
	resize := func(container string) podWrite {
		return patched("resize", fmt.Sprintf(`{"spec": {"containers": [{"name": %q, "resources": {"requests": {"cpu": "2"}}}]}}`, container))
	}
	annotation := patched("", `{"metadata": {"annotations": {"a": "b"}}}`)
	for name, test := range map[string]struct {
		write podWrite
		plain bool
		want  string
	}{
		"image of an injected container":      {write: image("agent", "containers")},
		"image of an injected native sidecar": {write: image("proxy", "initContainers")},
		"image of another container":          {write: image("main", "containers"), want: foreign},
		"image of another init container":     {write: image("setup", "initContainers"), want: foreign},
		"resources of an injected container":  {write: resize("agent")},
		"resources of another container":      {write: resize("main"), want: foreign},
		"annotation":                          {write: annotation},
		"annotation of a pod without sets":    {write: annotation, plain: true, want: foreign},
		"label":                               {write: patched("", `{"metadata": {"labels": {"a": "b"}}}`), want: foreign},
		"status":                              {write: patched("status", `{"status": {"conditions": [{"type": "example.com/a", "status": "True"}]}}`), want: foreign},
		"owners":                              {write: withOwners(), want: "cannot replace the owners of pod"},
		"finalizers":                          {write: patched("", `{"metadata": {"finalizers": null}}`), want: "metadata.finalizers"},
		"delete":                              {write: deleted, want: foreign},
		"evict":                               {write: evicted, want: foreign},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := podOf(server.Namespace(t), replicaSet)
			injected := []corev1.EnvVar{{Name: v1alpha1.SidecarInjectedEnv, Value: "true"}}
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "agent", Image: "a", Env: injected, Resources: pod.Spec.Containers[0].Resources})
			pod.Spec.InitContainers = []corev1.Container{
				{Name: "proxy", Image: "a", Env: injected, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
				{Name: "setup", Image: "a"},
			}
			if !test.plain {
				pod.Annotations = map[string]string{v1alpha1.SidecarSetListKey: "logs"}
			}
			if err := server.Client.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if err := rejectedWith(test.want)(test.write(t.Context(), as, pod)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSidecarSetAuthor checks who may write sets without a warning, and which annotations a set may have.
func TestSidecarSetAuthor(t *testing.T) {
	t.Parallel()
	manifests, err := env.ReadManifests("config/sidecarsets/author.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server.Apply(t, manifests...)
	namespace := server.Namespace(t)
	user := env.UserSubject("ann")
	c, warned := clientOf(t, server, server.User(t, user.Name))
	bind := func(name string, rule rbacv1.PolicyRule) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{user},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		}
		if err := errors.Join(server.Client.Create(t.Context(), role), server.Client.Create(t.Context(), binding)); err != nil {
			t.Fatal(err)
		}
	}
	bind("sidecarset-authors", rbacv1.PolicyRule{APIGroups: []string{"apps.kruise.io"}, Resources: []string{"sidecarsets"}, Verbs: []string{"create"}})
	createPods := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}}
	set := func(in string, annotations map[string]string) *v1alpha1.SidecarSet {
		return &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{GenerateName: "set-", Annotations: annotations}, Spec: v1alpha1.SidecarSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, Namespace: in,
			Containers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "agent", Image: "a"}}},
		}}
	}
	warns := func(what, in, want string) {
		t.Helper()
		eventually(t, what, func(ctx context.Context) error {
			warned.take()
			if err := c.Create(ctx, set(in, nil), client.DryRunAll); err != nil {
				return err
			}
			got := strings.Join(warned.take(), "; ")
			if !strings.Contains(got, want) || want == "" && got != "" {
				return fmt.Errorf("warning %q, want %q", got, want)
			}
			return nil
		})
	}
	warns("a set of a namespace without rights", namespace, `user "ann" cannot create pods in namespace "`+namespace+`"`)
	server.Grant(t, namespace, user, createPods)
	warns("a set of a namespace with rights", namespace, "")
	warns("a set of all namespaces without rights", "", `user "ann" cannot create pods in all namespaces`)
	bind("pod-creators", createPods)
	warns("a set of all namespaces with rights", "", "")
	for name, test := range map[string]struct{ key, value, want string }{
		"failure policy":         {v1alpha1.InjectionFailurePolicyKey, "Ignore", ""},
		"unknown failure policy": {v1alpha1.InjectionFailurePolicyKey, "ignore", `metadata.annotations[seamark.dev/injection-failure-policy]: "ignore" must be Fail or Ignore`},
		"canary set":             {"apps.kruise.io/sidecarset-canary", "true", "use spec.injectionStrategy.revision"},
		"base of a canary set":   {"apps.kruise.io/sidecarset-base", "a", "metadata.annotations[apps.kruise.io/sidecarset-base]: must not be set"},
	} {
		eventually(t, name, func(ctx context.Context) error {
			err := server.Client.Create(ctx, set("", map[string]string{test.key: test.value}), client.DryRunAll)
			if test.want == "" || err == nil {
				if (err == nil) != (test.want == "") {
					return fmt.Errorf("error %v, want %q", err, test.want) //nolint:errorlint // It may be nil.
				}
				return nil
			}
			if !strings.Contains(err.Error(), test.want) {
				return fmt.Errorf("%w, want %q", err, test.want)
			}
			return nil
		})
	}
}
