// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/test/expect"
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
		rightsOf("apps.kruise.io", "nodepodprobes", "list", "watch"),
		rightsOf("apps.kruise.io", "nodepodprobes/status", "patch"),
		rightsOf("seamark.dev", "probeplans", "get"),
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
		rightsOf("seamark.dev", "probeplans", "get", "list", "watch", "create", "update", "delete", "deletecollection"),
		rightsOf("seamark.dev", "probereports", "get", "list", "watch", "delete", "deletecollection"),
		rightsOf("apps.kruise.io", "podprobemarkers", "get", "list", "watch", "patch"),
		rightsOf("apps.kruise.io", "podprobemarkers/status", "patch"),
		rightsOf("policy", "poddisruptionbudgets", "get", "list", "watch"),
		rightsOf("", "events", "create", "patch"),
		// config/workloads lets it let seamark-workloads write.
		rightsOf("rbac.authorization.k8s.io", "rolebindings", "list", "watch", "create"),
		rightsOf("rbac.authorization.k8s.io", "rolebindings/"+grants.Role, "patch", "delete"),
		rightsOf("rbac.authorization.k8s.io", "clusterroles/"+grants.Role, "bind"),
		rightsOf("", "namespaces", "list", "watch"),
		setRights(),
	)
}

// setRights are those with which the manager knows in which namespaces seamark-workloads must write.
func setRights() rights {
	all := rights{}
	for _, resource := range configv1alpha1.GrantResources() {
		all = join(all, rightsOf("apps.kruise.io", resource, "list", "watch"))
	}
	return all
}

func TestServiceAccountsHaveTheLeastRights(t *testing.T) {
	t.Parallel()
	objects, err := env.ReadManifests("config/rbac")
	expect.NoError(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.SystemNamespace}}
	expect.NoError(t, client.IgnoreAlreadyExists(server.Client.Create(t.Context(), namespace)))
	for _, path := range append(env.KindRoles(), "config/workloads/grants.yaml", "config/sidecarsets/injector-rbac.yaml") {
		more, err := env.ReadManifests(path)
		expect.NoError(t, err)
		objects = append(objects, more...)
	}
	server.Apply(t, objects...)

	granted := server.Namespace(t)
	server.GrantWorkloads(t, granted)
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
	}{
		"agent":                        {"seamark-agent", "default", agentRights()},
		"agent in its own namespace":   {"seamark-agent", env.SystemNamespace, agentRights()},
		"manager":                      {"seamark-manager", "default", managerRights()},
		"manager in its own namespace": {"seamark-manager", env.SystemNamespace, join(managerRights(), leases("seamark-manager"))},
		"workloads":                    {"seamark-workloads", "default", workloadsRights()},
		"workloads in its own namespace": {"seamark-workloads", env.SystemNamespace, join(workloadsRights(), leases("seamark-workloads"),
			rightsOf("", "configmaps/kruise-configuration", "get", "list", "watch"), rightsOf("", "configmaps/seamark-injector-ca", "get", "list", "watch"),
			rightsOf("apps", "controllerrevisions", "create", "patch", "delete"), rightsOf("", "pods", "create"))},
		"workloads with a RoleBinding":    {"seamark-workloads", granted, join(workloadsRights(), grantedRights())},
		"injector":                        {"seamark-injector", "default", join(basic(), rightsOf("apps.kruise.io", "sidecarsets", "get", "list", "watch"))},
		"injector in its own namespace":   {"seamark-injector", env.SystemNamespace, injectorRights()},
		"other account in that namespace": {"default", env.SystemNamespace, basic()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			account, err := client.NewWithWatch(server.ServiceAccount(t, env.SystemNamespace, test.account, nil),
				client.Options{Scheme: server.Scheme})
			expect.NoError(t, err)
			if diff := awaitRights(t, account, test.namespace, test.want); diff != "" {
				t.Fatalf("rights in namespace %s (-want +got):\n%s", test.namespace, diff)
			}
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

// TestManagerMarksPodsWithoutTheRightToPatchThem writes the labels of a pod through its status.
func TestManagerMarksPodsWithoutTheRightToPatchThem(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace(t), Name: "marked"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}
	expect.NoError(t, server.Client.Create(t.Context(), pod))
	manager, err := client.New(server.Component(t, "seamark-manager"), client.Options{Scheme: server.Scheme})
	expect.NoError(t, err)
	if diff := awaitRights(t, manager, pod.Namespace, managerRights()); diff != "" {
		t.Fatalf("rights (-want +got):\n%s", diff)
	}
	marks := corev1ac.Pod(pod.Name, pod.Namespace).WithUID(pod.UID).WithLabels(map[string]string{"seen": "true"})
	owner := client.FieldOwner(v1alpha1.FieldManager)
	expect.Success(t, manager.Status().Apply(t.Context(), marks, owner, client.ForceOwnership))
	if err := manager.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.Labels["seen"] != "true" {
		t.Errorf("labels %v after an apply of the status, %v", pod.Labels, err)
	}
	for name, err := range map[string]error{
		"patch": manager.Patch(t.Context(), pod.DeepCopy(), env.MergePatch(`{"metadata": {"labels": {"seen": "no"}}}`)),
		"apply": manager.Apply(t.Context(), corev1ac.Pod(pod.Name, pod.Namespace), owner),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s of the pod: %v, want it forbidden", name, err)
		}
	}
}

// TestViewersOfStates checks what users can do who are bound to the roles for viewers, and that these
// roles contain nothing else.
func TestViewersOfStates(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	server.GrantStates(t, "viewer-of-states")
	viewer := userClient(t, "viewer-of-states")
	states := join(basic(),
		rightsOf("", "nodes", "get", "list", "watch"),
		rightsOf("apps.kruise.io", "nodepodprobes", "get", "list", "watch"),
		rightsOf("seamark.dev", "probeplans", "get", "list", "watch"),
		rightsOf("seamark.dev", "probereports", "get", "list", "watch"),
	)
	if diff := awaitRights(t, viewer, namespace, states); diff != "" {
		t.Errorf("rights in a namespace (-want +got):\n%s", diff)
	}
	system := join(states,
		rightsOf("", "pods", "get", "list", "watch"),
		rightsOf("coordination.k8s.io", "leases/seamark-manager", "get"),
		rightsOf("coordination.k8s.io", "leases/seamark-workloads", "get"),
	)
	if diff := awaitRights(t, viewer, env.SystemNamespace, system); diff != "" {
		t.Errorf("rights in the namespace of Seamark (-want +got):\n%s", diff)
	}
}

// TestViewersOfMarkers checks what the part of the role view that Seamark installs allows in a
// namespace.
func TestViewersOfMarkers(t *testing.T) {
	t.Parallel()
	viewed, other := server.Namespace(t), server.Namespace(t)
	server.ApplyUserRoles(t)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: viewed, Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "seamark-view"},
		Subjects:   []rbacv1.Subject{env.UserSubject("viewer-of-markers")},
	}
	expect.NoError(t, server.Client.Create(t.Context(), binding))
	viewer := userClient(t, "viewer-of-markers")
	for namespace, want := range map[string]rights{
		viewed: join(basic(), rightsOf("apps.kruise.io", "podprobemarkers", "get", "list", "watch")),
		other:  basic(),
	} {
		if diff := awaitRights(t, viewer, namespace, want); diff != "" {
			t.Errorf("rights in namespace %s (-want +got):\n%s", namespace, diff)
		}
	}
}

func userClient(t *testing.T, name string) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(server.User(t, name), client.Options{Scheme: server.Scheme})
	expect.NoError(t, err)
	return c
}

func workloadsRights() rights {
	sets := rights{}
	for _, kind := range []string{"clonesets", "statefulsets"} {
		sets = join(sets,
			rightsOf("apps.kruise.io", kind, "get", "list", "watch"),
			rightsOf("apps.kruise.io", kind+"/status", "patch"),
			rightsOf("apps.kruise.io", kind+"/finalizers", "update"),
		)
	}
	// config/cronjobs adds rights for AdvancedCronJobs.
	sets = join(sets,
		rightsOf("apps.kruise.io", "advancedcronjobs", "get", "list", "watch"),
		rightsOf("apps.kruise.io", "advancedcronjobs/status", "patch"),
		rightsOf("apps.kruise.io", "advancedcronjobs/finalizers", "update"),
		rightsOf("batch", "jobs", "get", "list", "watch", "create", "delete"),
	)
	// config/daemonsets adds rights for DaemonSets.
	sets = join(sets,
		rightsOf("apps.kruise.io", "daemonsets", "get", "list", "watch"),
		rightsOf("apps.kruise.io", "daemonsets/status", "patch"),
		rightsOf("apps.kruise.io", "daemonsets/finalizers", "update"),
	)
	// config/broadcastjobs adds rights for BroadcastJobs, of which config/cronjobs creates some.
	sets = join(sets,
		rightsOf("apps.kruise.io", "broadcastjobs", "get", "list", "watch", "create", "delete"),
		rightsOf("apps.kruise.io", "broadcastjobs/status", "patch"),
		rightsOf("apps.kruise.io", "broadcastjobs/finalizers", "update"),
	)
	// config/imagepulls adds rights for ImagePullJobs.
	sets = join(sets,
		rightsOf("apps.kruise.io", "imagepulljobs", "get", "list", "watch", "create", "patch", "delete"),
		rightsOf("apps.kruise.io", "imagepulljobs/status", "patch"),
		rightsOf("apps.kruise.io", "imagepulljobs/finalizers", "update"),
	)
	// config/sidecarsets adds rights for SidecarSets.
	sets = join(sets,
		rightsOf("apps.kruise.io", "sidecarsets", "get", "list", "watch", "patch"),
		rightsOf("apps.kruise.io", "sidecarsets/status", "patch"),
		rightsOf("apps.kruise.io", "sidecarsets/finalizers", "update"),
		rightsOf("", "namespaces", "get", "list", "watch"),
		rightsOf("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "get", "list", "watch"),
	)
	for i := range entries.Configurations {
		sets = join(sets, rightsOf("admissionregistration.k8s.io", "mutatingwebhookconfigurations/"+entries.ConfigurationName(i), "patch"))
	}
	return join(basic(), sets,
		rightsOf("", "pods", "get", "list", "watch"),
		rightsOf("", "persistentvolumeclaims", "get", "list", "watch"),
		rightsOf("apps", "controllerrevisions", "get", "list", "watch"),
		rightsOf("policy", "poddisruptionbudgets", "get", "list", "watch"),
		rightsOf("rbac.authorization.k8s.io", "rolebindings", "get", "list", "watch"),
		rightsOf("apps.kruise.io", "podprobemarkers", "get", "list", "watch"),
		rightsOf("", "nodes", "get", "list", "watch"),
		rightsOf("", "events", "create", "patch"),
		rightsOf("coordination.k8s.io", "leases/kruise-manager", "get"),
		rightsOf("admissionregistration.k8s.io", "mutatingwebhookconfigurations/kruise-mutating-webhook-configuration", "get"),
	)
}

// grantedRights are those of seamark-workloads in a namespace with a RoleBinding.
func grantedRights() rights {
	return join(
		rightsOf("", "pods", "create", "patch", "delete"),
		rightsOf("", "pods/status", "patch"),
		rightsOf("", "pods/resize", "patch"),
		rightsOf("", "persistentvolumeclaims", "create", "patch"),
		rightsOf("apps", "controllerrevisions", "create", "patch", "delete"),
	)
}

// injectorRights are those of the injectors in their own namespace.
func injectorRights() rights {
	return join(basic(),
		rightsOf("apps.kruise.io", "sidecarsets", "get", "list", "watch"),
		rightsOf("apps", "controllerrevisions", "get", "list", "watch"),
		rightsOf("", "secrets/seamark-injector", "get", "update"),
		rightsOf("", "configmaps/seamark-injector-ca", "get", "update"),
	)
}
