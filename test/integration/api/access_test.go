// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// rights is a set of rights, each as "group/resource verb", or "group/resource/name verb" for a
// single object.
type rights map[string]bool

func rightsOf(group, resource string, verbs ...string) rights {
	all := rights{}
	for _, verb := range verbs {
		all[fmt.Sprintf("%s/%s %s", group, resource, verb)] = true
	}
	return all
}

func join(sets ...rights) rights {
	all := rights{}
	for _, set := range sets {
		for right := range set {
			all[right] = true
		}
	}
	return all
}

// basic returns the rights of every user: to query its own rights.
func basic() rights {
	return join(
		rightsOf("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
		rightsOf("authorization.k8s.io", "selfsubjectrulesreviews", "create"),
		rightsOf("authentication.k8s.io", "selfsubjectreviews", "create"),
	)
}

func agentRights() rights {
	return join(basic(),
		rightsOf("apps.kruise.io", "nodepodprobes", "get", "list", "watch"),
		rightsOf("apps.kruise.io", "nodepodprobes/status", "patch"),
		rightsOf("seamark.dev", "probereports", "list", "create", "update", "patch", "delete"),
		rightsOf("", "events", "create", "patch"),
	)
}

func managerRights() rights {
	return join(basic(),
		rightsOf("", "nodes", "get", "list", "watch"),
		rightsOf("", "pods", "get", "list", "watch"),
		rightsOf("", "pods/status", "patch"),
		rightsOf("apps.kruise.io", "nodepodprobes", "get", "list", "watch", "create", "delete", "patch"),
		rightsOf("seamark.dev", "probereports", "get", "list", "watch", "delete", "deletecollection"),
		rightsOf("apps.kruise.io", "podprobemarkers", "get", "list", "watch", "patch"),
		rightsOf("apps.kruise.io", "podprobemarkers/status", "patch"),
		rightsOf("", "events", "create", "patch"),
	)
}

func TestServiceAccountsHaveTheLeastRights(t *testing.T) {
	t.Parallel()
	objects, err := env.ReadManifests("config/rbac")
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.SystemNamespace}}
	if err := client.IgnoreAlreadyExists(server.Client.Create(t.Context(), namespace)); err != nil {
		t.Fatal(err)
	}
	workloads, err := env.ReadManifests("config/workloads/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server.Apply(t, append(objects, workloads...)...)

	leases := func(name string) rights {
		return join(
			rightsOf("coordination.k8s.io", "leases", "create"),
			rightsOf("coordination.k8s.io", "leases/"+name, "get", "update"),
		)
	}
	for name, test := range map[string]struct {
		account   string
		namespace string
		want      rights
		actions   map[string]action
	}{
		"agent":                           {"seamark-agent", "default", agentRights(), agentActions()},
		"agent in its own namespace":      {"seamark-agent", env.SystemNamespace, agentRights(), nil},
		"manager":                         {"seamark-manager", "default", managerRights(), managerActions()},
		"manager in its own namespace":    {"seamark-manager", env.SystemNamespace, join(managerRights(), leases("seamark-manager")), nil},
		"workloads":                       {"seamark-workloads", "default", workloadsRights(), workloadsActions()},
		"workloads in its own namespace":  {"seamark-workloads", env.SystemNamespace, join(workloadsRights(), leases("seamark-workloads")), nil},
		"other account in that namespace": {"default", env.SystemNamespace, basic(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			account, err := client.NewWithWatch(server.ServiceAccount(t, env.SystemNamespace, test.account, nil),
				client.Options{Scheme: server.Scheme})
			if err != nil {
				t.Fatal(err)
			}
			if diff := awaitRights(t, account, test.namespace, test.want); diff != "" {
				t.Fatalf("rights in namespace %s (-want +got):\n%s", test.namespace, diff)
			}
			target := newTarget(t)
			if test.actions != nil && test.account != "seamark-workloads" {
				maps.Copy(test.actions, reportActions(test.account == "seamark-agent"))
			}
			checkActions(t, account, target, test.actions)
		})
	}
}

// awaitRights waits until the account has exactly the rights and returns the difference. The
// API server watches roles, so new ones take effect with a short delay.
func awaitRights(t *testing.T, account client.Client, namespace string, want rights) string {
	t.Helper()
	var diff string
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 10*time.Second, true,
		func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SelfSubjectRulesReview{
				Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
			}
			if err := account.Create(ctx, review); err != nil {
				return false, err
			}
			got := rights{}
			for _, rule := range review.Status.ResourceRules {
				got = join(got, rightsOfRule(rule))
			}
			diff = cmp.Diff(want, got)
			return diff == "", nil
		})
	if err != nil && diff == "" {
		return err.Error()
	}
	return diff
}

func rightsOfRule(rule authorizationv1.ResourceRule) rights {
	all := rights{}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if len(rule.ResourceNames) == 0 {
				all = join(all, rightsOf(group, resource, rule.Verbs...))
			}
			for _, name := range rule.ResourceNames {
				all = join(all, rightsOf(group, resource+"/"+name, rule.Verbs...))
			}
		}
	}
	return all
}

// target holds the objects of the actions: a pod in its own namespace, a plan, a marker and a
// secret.
type target struct {
	pod    *corev1.Pod
	plan   *v1alpha1.NodePodProbe
	marker *v1alpha1.PodProbeMarker
	secret *corev1.Secret
}

func newTarget(t *testing.T) target {
	t.Helper()
	namespace := server.Namespace(t)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "target"}
	made := target{
		pod: &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
		}},
		plan:   &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		marker: &v1alpha1.PodProbeMarker{ObjectMeta: meta},
		secret: &corev1.Secret{ObjectMeta: meta},
	}
	for _, object := range []client.Object{made.pod, made.plan, made.secret, marker(t, namespace, edit{"metadata.name", "target"})} {
		if err := server.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

// event returns an event on the target's pod.
func (g target) event() *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: g.pod.Namespace, GenerateName: "event-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: g.pod.Namespace, Name: g.pod.Name},
		Reason:         v1alpha1.EventReasonProbeSucceeded, Type: corev1.EventTypeNormal,
	}
}

// action is one request of an account.
type action struct {
	allowed bool
	do      func(context.Context, client.WithWatch, target) error
}

func allowed(do func(context.Context, client.WithWatch, target) error) action {
	return action{allowed: true, do: do}
}

func forbidden(do func(context.Context, client.WithWatch, target) error) action {
	return action{do: do}
}

func list(all client.ObjectList) func(context.Context, client.WithWatch, target) error {
	return func(ctx context.Context, c client.WithWatch, _ target) error { return c.List(ctx, all) }
}

func watch(all client.ObjectList) func(context.Context, client.WithWatch, target) error {
	return func(ctx context.Context, c client.WithWatch, _ target) error {
		w, err := c.Watch(ctx, all)
		if err == nil {
			w.Stop()
		}
		return err
	}
}

const labelPatch = `{"metadata": {"labels": {"seen": "true"}}}`

func patchPod(ctx context.Context, c client.WithWatch, g target) error {
	return c.Patch(ctx, g.pod.DeepCopy(), env.MergePatch(labelPatch))
}

func patchPlan(ctx context.Context, c client.WithWatch, g target) error {
	return c.Patch(ctx, g.plan.DeepCopy(), env.MergePatch(`{"spec": {"podProbes": null}}`))
}

func patchPlanStatus(ctx context.Context, c client.WithWatch, g target) error {
	return c.Status().Patch(ctx, g.plan.DeepCopy(), env.MergePatch(`{"status": {"pods": 1}}`))
}

func patchMarker(ctx context.Context, c client.WithWatch, g target) error {
	return c.Patch(ctx, g.marker.DeepCopy(), env.MergePatch(`{"metadata": {"finalizers": ["`+v1alpha1.PodProbeMarkerFinalizer+`"]}}`))
}

func patchMarkerStatus(ctx context.Context, c client.WithWatch, g target) error {
	return c.Status().Patch(ctx, g.marker.DeepCopy(), env.MergePatch(`{"status": {"matchedPods": 1}}`))
}

func createEvent(ctx context.Context, c client.WithWatch, g target) error {
	event := g.event()
	if err := c.Create(ctx, event); err != nil {
		return err
	}
	return c.Patch(ctx, event, env.MergePatch(`{"count": 2}`))
}

// applyMarks writes marks as the manager does and checks that they are stored.
func applyMarks(ctx context.Context, c client.WithWatch, g target) error {
	marks := corev1ac.Pod(g.pod.Name, g.pod.Namespace).WithUID(g.pod.UID).WithLabels(map[string]string{"seen": "true"})
	if err := c.Status().Apply(ctx, marks, client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership); err != nil {
		return err
	}
	pod := &corev1.Pod{}
	if err := server.Client.Get(ctx, client.ObjectKeyFromObject(g.pod), pod); err != nil {
		return err
	}
	if pod.Labels["seen"] != "true" {
		return fmt.Errorf("the pod's labels are %v after the apply", pod.Labels)
	}
	return nil
}

func agentActions() map[string]action {
	return map[string]action{
		"list plans":              allowed(list(&v1alpha1.NodePodProbeList{})),
		"watch plans":             allowed(watch(&v1alpha1.NodePodProbeList{})),
		"report":                  allowed(patchPlanStatus),
		"write an event":          allowed(createEvent),
		"list pods":               forbidden(list(&corev1.PodList{})),
		"watch pods":              forbidden(watch(&corev1.PodList{})),
		"list nodes":              forbidden(list(&corev1.NodeList{})),
		"list secrets":            forbidden(list(&corev1.SecretList{})),
		"list markers":            forbidden(list(&v1alpha1.PodProbeMarkerList{})),
		"list events":             forbidden(list(&corev1.EventList{})),
		"patch a pod":             forbidden(patchPod),
		"mark a pod":              forbidden(applyMarks),
		"patch a plan":            forbidden(patchPlan),
		"patch a marker":          forbidden(patchMarker),
		"write a marker's status": forbidden(patchMarkerStatus),
		"get a plan": allowed(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Get(ctx, client.ObjectKeyFromObject(g.plan), g.plan.DeepCopy())
		}),
		"get a pod": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Get(ctx, client.ObjectKeyFromObject(g.pod), g.pod.DeepCopy())
		}),
		"get a secret": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Get(ctx, client.ObjectKeyFromObject(g.secret), g.secret.DeepCopy())
		}),
		"update a plan": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Update(ctx, g.plan.DeepCopy())
		}),
		"update a plan's status": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Status().Update(ctx, g.plan.DeepCopy())
		}),
		"create a plan": forbidden(func(ctx context.Context, c client.WithWatch, _ target) error {
			return c.Create(ctx, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "created"}})
		}),
		"delete a plan": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Delete(ctx, g.plan.DeepCopy())
		}),
		"delete a pod": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Delete(ctx, g.pod.DeepCopy())
		}),
	}
}

func managerActions() map[string]action {
	return map[string]action{
		"list pods":                allowed(list(&corev1.PodList{})),
		"watch pods":               allowed(watch(&corev1.PodList{})),
		"list nodes":               allowed(list(&corev1.NodeList{})),
		"list plans":               allowed(list(&v1alpha1.NodePodProbeList{})),
		"list markers":             allowed(list(&v1alpha1.PodProbeMarkerList{})),
		"mark a pod":               allowed(applyMarks),
		"patch a plan":             allowed(patchPlan),
		"add a marker's finalizer": allowed(patchMarker),
		"write a marker's status":  allowed(patchMarkerStatus),
		"write an event":           allowed(createEvent),
		"list secrets":             forbidden(list(&corev1.SecretList{})),
		"patch a pod":              forbidden(patchPod),
		"report for an agent":      forbidden(patchPlanStatus),
		"update a pod": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Update(ctx, g.pod.DeepCopy())
		}),
		"apply a pod": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Apply(ctx, corev1ac.Pod(g.pod.Name, g.pod.Namespace), client.FieldOwner(v1alpha1.FieldManager))
		}),
		"delete a pod": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Delete(ctx, g.pod.DeepCopy())
		}),
		"delete a marker": forbidden(func(ctx context.Context, c client.WithWatch, g target) error {
			return c.Delete(ctx, g.marker.DeepCopy())
		}),
		"patch a node": forbidden(func(ctx context.Context, c client.WithWatch, _ target) error {
			return c.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, env.MergePatch(labelPatch))
		}),
	}
}
