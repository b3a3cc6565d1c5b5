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
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestWorkloadsChangeOnlyInjectedContainers checks the policy for the pods of seamark-workloads as config/sidecarsets
// changes it, with an account of another name that has all rights.
func TestWorkloadsChangeOnlyInjectedContainers(t *testing.T) {
	t.Parallel()
	const account = "seamark-workloads-with-sidecars"
	manifests := env.Manifests(t, []string{"config/workloads/policy.yaml"})
	for _, object := range manifests {
		if !strings.HasPrefix(object.GetName(), "seamark-workloads-pod") {
			continue
		}
		text, err := object.MarshalJSON()
		expect.NoError(t, err)
		changed := strings.NewReplacer(
			"':seamark-workloads'", "':"+account+"'", "seamark-workloads-pod", account+"-pod",
			`{"expression":"false","name":"sidecarSets"}`, `{"expression":"true","name":"sidecarSets"}`,
		).Replace(string(text))
		copied := &unstructured.Unstructured{}
		expect.NoError(t, json.Unmarshal([]byte(changed), &copied.Object))
		server.Apply(t, copied)
	}
	namespace := server.Namespace(t)
	config := server.ServiceAccount(t, namespace, account, nil)
	server.GrantAll(t, namespace, account)
	as, _ := clientOf(t, server, config)
	const foreign = "the controller of a pod that seamark-workloads writes must be"
	server.Component(t, workloadsAccount)
	shared := granted(t)
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
		"status": {
			write: patched("status", `{"status": {"conditions": [{"type": "example.com/a", "status": "True"}]}}`), want: foreign,
		},
		"condition of sets": {write: patched("status", `{"status": {"conditions": [{"type": "SidecarSetUpgradable", "status": "True"}]}}`)},
		"phase and the condition of sets": {
			write: patched("status", `{"status": {"phase": "Failed", "conditions": [{"type": "SidecarSetUpgradable", "status": "True"}]}}`),
			want:  foreign,
		},
		"label by the status": {write: patched("status", `{"metadata": {"labels": {"a": "b"}}}`), want: foreign},
		"owners":              {write: withOwners(), want: foreign},
		"finalizers":          {write: patched("", `{"metadata": {"finalizers": null}}`), want: foreign},
		"finalizer added":     {write: patched("", `{"metadata": {"finalizers": ["example.com/hook", "example.com/b"]}}`), want: foreign},
		"deadline":            {write: patched("", `{"spec": {"activeDeadlineSeconds": 1}}`), want: foreign},
		"delete":              {write: deleted, want: foreign},
		"evict":               {write: evicted, want: foreign},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := podOf(granted(t), replicaSet)
			injected := []corev1.EnvVar{{Name: v1alpha1.SidecarInjectedEnv, Value: "true"}}
			pod.Spec.Containers = append(
				pod.Spec.Containers, corev1.Container{Name: "agent", Image: "a", Env: injected, Resources: pod.Spec.Containers[0].Resources},
			)
			pod.Spec.InitContainers = []corev1.Container{
				{Name: "proxy", Image: "a", Env: injected, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
				{Name: "setup", Image: "a"},
			}
			if !test.plain {
				pod.Annotations = map[string]string{v1alpha1.SidecarSetListKey: "logs"}
			}
			expect.NoError(t, server.Client.Create(t.Context(), pod))
			expect.Success(t, rejectedWith(test.want)(test.write(t.Context(), as, pod)))
		})
	}
}

// TestSidecarSetAuthor checks who may write sets.
func TestSidecarSetAuthor(t *testing.T) {
	t.Parallel()
	server.Apply(t, env.Manifests(t, []string{"config/sidecarsets/author.yaml"})...)
	// Ann may create pods in her namespace, bob in all of them, and the collector deletes whatever it is told to.
	own, other := server.Namespace(t), server.Namespace(t)
	createPods := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}}
	writeSets := rbacv1.PolicyRule{
		APIGroups: []string{"apps.kruise.io"}, Resources: []string{"sidecarsets"}, Verbs: []string{"create", "update", "delete", "deletecollection", "list"},
	}
	as := map[string]client.Client{}
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"ann": {writeSets}, "bob": {writeSets, createPods},
		"collector": {writeSets, {APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"delete"}}},
	} {
		user := env.UserSubject("sets-" + name)
		as[name], _ = clientOf(t, server, server.User(t, user.Name))
		grantInCluster(t, user, rules...)
	}
	server.Grant(t, own, env.UserSubject("sets-ann"), createPods)
	const everywhere = `user "sets-ann" cannot create pods in all namespaces`
	elsewhere := `user "sets-ann" cannot create pods in namespace "` + other + `"`
	create := func(in string) setWrite {
		return func(ctx context.Context, c client.Client, _ *v1alpha1.SidecarSet) error {
			return c.Create(ctx, newSet(in, nil))
		}
	}
	edit := func(change func(s *v1alpha1.SidecarSet)) setWrite {
		return func(ctx context.Context, c client.Client, s *v1alpha1.SidecarSet) error {
			change(s)
			return c.Update(ctx, s)
		}
	}
	bind := func(in string) setWrite { return edit(func(s *v1alpha1.SidecarSet) { s.Spec.Namespace = in }) }
	annotate := func(key, value string) setWrite {
		return edit(func(s *v1alpha1.SidecarSet) { s.Annotations = map[string]string{key: value} })
	}
	remove := func(ctx context.Context, c client.Client, s *v1alpha1.SidecarSet) error { return c.Delete(ctx, s) }
	owned := edit(func(s *v1alpha1.SidecarSet) {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "gone", UID: "gone"}}
	})
	for name, test := range map[string]struct {
		user string
		// before is the namespace of a stored set.
		before string
		write  setWrite
		want   string
	}{
		"create in her namespace":    {"ann", own, create(own), ""},
		"create elsewhere":           {"ann", own, create(other), elsewhere},
		"create everywhere":          {"ann", own, create(""), everywhere},
		"create with all rights":     {"bob", own, create(""), ""},
		"take over a set of all":     {"ann", "", bind(own), everywhere},
		"take over a set of another": {"ann", other, bind(own), elsewhere},
		"widen":                      {"ann", own, bind(""), everywhere},
		"move with all rights":       {"bob", own, bind(other), ""},
		"change of her set":          {"ann", own, edit(func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Image = "b" }), ""},
		"failure policy of all":      {"ann", "", annotate(v1alpha1.InjectionFailurePolicyKey, "Ignore"), everywhere},
		"failure policy of her set":  {"ann", own, annotate(v1alpha1.InjectionFailurePolicyKey, "Ignore"), ""},
		"failure policy of all, bob": {"bob", "", annotate(v1alpha1.InjectionFailurePolicyKey, "Ignore"), ""},
		"another annotation":         {"ann", "", annotate("a", "b"), ""},
		"custom version of all": {"ann", "", edit(func(s *v1alpha1.SidecarSet) {
			s.Labels = map[string]string{v1alpha1.SidecarSetCustomVersionLabel: "v1"}
		}), everywhere},
		"owner that does not exist":     {"ann", "", owned, everywhere},
		"delete a set of all":           {"ann", "", remove, everywhere},
		"delete a set of another":       {"ann", other, remove, elsewhere + ", which is required to delete"},
		"delete her set":                {"ann", own, remove, ""},
		"delete with all rights":        {"bob", "", remove, ""},
		"garbage collector":             {"collector", "", remove, ""},
		"garbage collector that writes": {"collector", "", bind(own), `user "sets-collector" cannot create pods in all namespaces`},
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, "answer", func(ctx context.Context) error {
				stored := newSet(test.before, nil)
				if err := server.Client.Create(ctx, stored); err != nil {
					return err
				}
				return rejectedWith(test.want)(test.write(ctx, as[test.user], stored))
			})
		})
	}
	eventually(t, "delete all sets", func(ctx context.Context) error {
		return rejectedWith("cannot create pods in")(as["ann"].DeleteAllOf(ctx, &v1alpha1.SidecarSet{}))
	})
}

// TestWorkloadsWriteOnlyHashesOfSets writes SidecarSets with a stolen token of seamark-workloads.
func TestWorkloadsWriteOnlyHashesOfSets(t *testing.T) {
	t.Parallel()
	server.Apply(t, env.Manifests(t, []string{"config/sidecarsets/author.yaml"})...)
	as := stolen(t, server.Namespace(t), workloadsAccount)
	const refused = "seamark-workloads can only change the annotations kruise.io/sidecarset-hash and kruise.io/sidecarset-hash-without-image of SidecarSets"
	patch := func(body string) setWrite {
		return func(ctx context.Context, c client.Client, s *v1alpha1.SidecarSet) error {
			return c.Patch(ctx, s, env.MergePatch(body))
		}
	}
	for name, test := range map[string]struct {
		write setWrite
		want  string
	}{
		"hashes": {patch(`{"metadata": {"annotations": {"kruise.io/sidecarset-hash": "a", "kruise.io/sidecarset-hash-without-image": "b"}}}`), ""},
		"status": {func(ctx context.Context, c client.Client, s *v1alpha1.SidecarSet) error {
			s.Status.MatchedPods = 1
			return c.Status().Update(ctx, s)
		}, ""},
		"another annotation":   {patch(`{"metadata": {"annotations": {"a": "b"}}}`), refused},
		"failure policy":       {patch(`{"metadata": {"annotations": {"seamark.dev/injection-failure-policy": "Ignore"}}}`), refused},
		"annotation of a user": {patch(`{"metadata": {"annotations": {"user": null}}}`), refused},
		"changed annotation":   {patch(`{"metadata": {"annotations": {"user": "b"}}}`), refused},
		"all annotations":      {patch(`{"metadata": {"annotations": null}}`), refused},
		"label":                {patch(`{"metadata": {"labels": {"a": "b"}}}`), refused},
		"finalizer":            {patch(`{"metadata": {"finalizers": ["example.com/a"]}}`), refused},
		"finalizer of another": {patch(`{"metadata": {"finalizers": null}}`), refused},
		"owner":                {patch(`{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]}}`), refused},
		"container":            {patch(`{"spec": {"containers": [{"name": "agent", "image": "evil"}]}}`), refused},
		"selector and a hash": {
			patch(`{"metadata": {"annotations": {"kruise.io/sidecarset-hash": "a"}}, "spec": {"selector": {"matchLabels": {"a": "c"}}}}`), refused,
		},
		"create": {func(ctx context.Context, c client.Client, _ *v1alpha1.SidecarSet) error {
			return c.Create(ctx, newSet("", nil))
		}, refused},
		"delete": {func(ctx context.Context, c client.Client, s *v1alpha1.SidecarSet) error { return c.Delete(ctx, s) }, refused},
		"delete the collection": {func(ctx context.Context, c client.Client, _ *v1alpha1.SidecarSet) error {
			return c.DeleteAllOf(ctx, &v1alpha1.SidecarSet{}, client.DryRunAll)
		}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, "answer", func(ctx context.Context) error {
				stored := newSet("", map[string]string{"user": "a"})
				stored.Finalizers = []string{"example.com/hook"}
				if err := server.Client.Create(ctx, stored); err != nil {
					return err
				}
				defer func() {
					stored.Finalizers = nil
					_ = server.Client.Patch(ctx, stored, env.MergePatch(`{"metadata": {"finalizers": null}}`))
					_ = server.Client.Delete(ctx, stored)
				}()
				return rejectedWith(test.want)(test.write(ctx, as, stored))
			})
		})
	}
}

type setWrite func(ctx context.Context, c client.Client, set *v1alpha1.SidecarSet) error

// newSet returns a set of a namespace, or of all. It updates no pods: seamark-workloads would get rights in its namespaces.
func newSet(in string, annotations map[string]string) *v1alpha1.SidecarSet {
	return &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{GenerateName: "set-", Annotations: annotations}, Spec: v1alpha1.SidecarSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, Namespace: in,
		Containers:     []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "agent", Image: "a"}}},
		UpdateStrategy: v1alpha1.SidecarSetUpdateStrategy{Type: v1alpha1.NotUpdateSidecarSetStrategyType},
	}}
}

// grantInCluster gives the user rights in all namespaces.
func grantInCluster(t *testing.T, user rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user.Name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user.Name}, Subjects: []rbacv1.Subject{user},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user.Name},
	}
	expect.NoError(t, errors.Join(server.Client.Create(t.Context(), role), server.Client.Create(t.Context(), binding)))
}

// TestSidecarSetAnnotations checks which annotations a set may have.
func TestSidecarSetAnnotations(t *testing.T) {
	t.Parallel()
	server.Apply(t, env.Manifests(t, []string{"config/sidecarsets/author.yaml"})...)
	for name, test := range map[string]struct{ key, value, want string }{
		"failure policy": {v1alpha1.InjectionFailurePolicyKey, "Ignore", ""},
		"unknown failure policy": {
			v1alpha1.InjectionFailurePolicyKey, "ignore", `metadata.annotations[seamark.dev/injection-failure-policy]: "ignore" must be Fail or Ignore`,
		},
		"canary set":           {"apps.kruise.io/sidecarset-canary", "true", "use spec.injectionStrategy.revision"},
		"base of a canary set": {"apps.kruise.io/sidecarset-base", "a", "metadata.annotations[apps.kruise.io/sidecarset-base]: must not be set"},
	} {
		eventually(t, name, func(ctx context.Context) error {
			err := server.Client.Create(ctx, newSet("", map[string]string{test.key: test.value}), client.DryRunAll)
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
