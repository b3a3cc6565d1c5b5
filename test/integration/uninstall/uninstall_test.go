// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uninstall_test runs an uninstall against a real API server, with the rights of the
// manager's service account and of the chart's hook.
package uninstall_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/uninstall"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const (
	system = env.SystemNamespace
	name   = "seamark-manager"
	// workloads is the name of the Deployment and lease of seamark-workloads.
	workloads = "seamark-workloads"
	// foreign is a finalizer of another owner.
	foreign = "example.com/held"
	// reports is the number of ProbeReports: more than a page.
	reports = 1201
)

// TestUninstall uninstalls twice: the second run finds nothing to do.
func TestUninstall(t *testing.T) {
	t.Parallel()
	e := env.Start(t)
	config := identity(t, e)
	namespace := e.Namespace(t)
	marks := mark.Marks{
		mark.Label("busy"):                     {Text: "true"},
		mark.Annotation("note"):                {Text: "x"},
		mark.ConditionType("example.com/busy"): {Condition: mark.Condition{Status: corev1.ConditionTrue}},
	}
	createDeployment(t, e, name, "b")
	createMarked(t, e, builders.Pod(namespace, "a").Label("app", "x").Label(v1alpha1.GuardExemptKey, v1alpha1.GuardExemptMaxDuration), marks)
	createMarked(t, e, builders.Pod(namespace, "ended").Label("app", "x"), marks, corev1.PodSucceeded)
	createInherited(t, e, builders.Pod(namespace, "inherited").Label("app", "x"), marks)
	expect.NoError(t, e.Client.Create(t.Context(), plain(builders.Pod(namespace, "virtual").
		Annotation(v1alpha1.PodProbeMarkerAnnotationKey, "[]").Annotation(v1alpha1.PodProbeMarkerListAnnotationKey, "m"))))
	expect.NoError(t, e.Client.Create(t.Context(), plain(builders.Pod(namespace, "bystander").Label("busy", "me").Label(v1alpha1.GuardExemptKey, "me"))))
	marker := builders.Marker(namespace, "m").Selector("app", "x").Probe(builders.Probe("p").Condition("example.com/busy")).Build()
	marker.Finalizers = []string{foreign, v1alpha1.PodProbeMarkerFinalizer}
	expect.NoError(t, e.Client.Create(t.Context(), marker))
	for i := range 3 {
		expect.NoError(t, e.Client.Create(t.Context(), &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i)}}))
	}
	expect.NoError(t, e.Client.Create(t.Context(), &seamarkv1alpha1.ProbePlan{ObjectMeta: metav1.ObjectMeta{Name: "node-0.0"}, NodeName: "node-0"}))
	createReports(t, e)
	first := strings.Join([]string{
		"Deployment seamark-system/seamark-workloads does not exist.",
		"Scaled Deployment seamark-system/seamark-manager to 0.",
		"Removed the marks of 4 pods.",
		"Removed the finalizer of 1 marker.",
		"Deleted 3 NodePodProbes.",
		"Deleted 1 ProbePlan.",
		"Deleted 1201 ProbeReports.",
		"Kept the CRDs podprobemarkers.apps.kruise.io, nodepodprobes.apps.kruise.io, probeplans.seamark.dev and probereports.seamark.dev, and 1 PodProbeMarker.",
		"",
	}, "\n")
	again := strings.NewReplacer("4 pods", "0 pods", "1 marker", "0 markers", "3 N", "0 N", "1 ProbePlan", "0 ProbePlans", "1201", "0").Replace(first)
	for i, want := range []string{first, again} {
		expect.Equal(t, fmt.Sprintf("output of run %d", i), want, run(t, config))
	}
	checkPods(t, e, namespace)
	checkObjects(t, e, marker)
}

// createReports creates the ProbeReports of several nodes. One of them has a finalizer of
// another owner.
func createReports(t *testing.T, e *env.Env) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(32)
	for i := range reports {
		node := fmt.Sprint("node-", i%7)
		report := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%d", node, i/7)}, NodeName: node}
		if i == 0 {
			report.Finalizers = []string{foreign}
		}
		group.Go(func() error { return e.Client.Create(t.Context(), report) })
	}
	expect.NoError(t, group.Wait())
}

func checkPods(t *testing.T, e *env.Env, namespace string) {
	t.Helper()
	var pods corev1.PodList
	expect.NoError(t, e.Client.List(t.Context(), &pods, client.InNamespace(namespace)))
	got := map[string]map[string]string{}
	for _, pod := range pods.Items {
		got[pod.Name] = pod.Labels
		if entry := mark.Entry(pod.ManagedFields); entry != nil {
			t.Errorf("Seamark still owns fields of pod %s: %s", pod.Name, entry.FieldsV1.GetRawBytes())
		}
		if len(pod.Annotations) > 0 || slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == "example.com/busy"
		}) {
			t.Errorf("pod %s still has marks: %v, %v", pod.Name, pod.Annotations, pod.Status.Conditions)
		}
	}
	want := map[string]map[string]string{
		"a": {"app": "x"}, "ended": {"app": "x"}, "inherited": {"app": "x", "own": "kruise"}, "virtual": nil,
		"bystander": {"busy": "me", v1alpha1.GuardExemptKey: "me"},
	}
	expect.Equal(t, "labels of the pods", want, got)
}

func checkObjects(t *testing.T, e *env.Env, marker *v1alpha1.PodProbeMarker) {
	t.Helper()
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(marker), marker))
	expect.Equal(t, "finalizers of the marker", []string{foreign}, marker.Finalizers)
	var plans v1alpha1.NodePodProbeList
	expect.NoError(t, e.Client.List(t.Context(), &plans))
	if len(plans.Items) > 0 {
		t.Errorf("%d NodePodProbes remain", len(plans.Items))
	}
	var all seamarkv1alpha1.ProbeReportList
	expect.NoError(t, e.Client.List(t.Context(), &all))
	// The finalizer of another owner blocks one deletion.
	for _, report := range all.Items {
		if !slices.Equal(report.Finalizers, []string{foreign}) || report.DeletionTimestamp == nil {
			t.Errorf("ProbeReport %s remains: finalizers %v, deleted at %v", report.Name, report.Finalizers, report.DeletionTimestamp)
		}
	}
	if len(all.Items) != 1 {
		t.Errorf("%d ProbeReports remain, want 1", len(all.Items))
	}
	deployment := &appsv1.Deployment{}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: name}, deployment))
	if *deployment.Spec.Replicas != 0 {
		t.Errorf("the Deployment has %d replicas, want 0", *deployment.Spec.Replicas)
	}
	err := e.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: name}, &coordinationv1.Lease{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get the lease: %v, want not found", err)
	}
}

// TestHeldLease checks that nothing is written until the lease of a manager outside the Deployment
// expires.
func TestHeldLease(t *testing.T) {
	t.Parallel()
	e := env.Start(t)
	config := identity(t, e)
	namespace := e.Namespace(t)
	createMarked(t, e, builders.Pod(namespace, "a"), mark.Marks{mark.Label("busy"): {Text: "true"}})
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("stray"), LeaseDurationSeconds: ptr.To[int32](3600),
			AcquireTime: ptr.To(metav1.NowMicro()), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
	expect.NoError(t, e.Client.Create(t.Context(), lease))
	waits(t, e, config, namespace, "a", `held by "stray"`)

	lease.Spec.LeaseDurationSeconds = ptr.To[int32](1)
	expect.NoError(t, e.Client.Update(t.Context(), lease))
	removes(t, config)
}

// TestRunningManager checks that nothing is written while a manager runs, even if it does not
// hold the lease.
func TestRunningManager(t *testing.T) {
	t.Parallel()
	e := env.Start(t)
	config := identity(t, e)
	namespace := e.Namespace(t)
	createDeployment(t, e, name, "b")
	manager := plain(builders.Pod(system, "manager").Label("a", "b"))
	expect.NoError(t, e.Client.Create(t.Context(), manager))
	expect.NoError(t, e.Client.Create(t.Context(), plain(builders.Pod(system, "hook").Label("a", "c"))))
	createMarked(t, e, builders.Pod(namespace, "a"), mark.Marks{mark.Label("busy"): {Text: "true"}})

	waits(t, e, config, namespace, "a", `wait for pod seamark-system/manager to terminate`)

	manager.Status.Phase = corev1.PodFailed
	expect.NoError(t, e.Client.Status().Update(t.Context(), manager))
	removes(t, config)
}

// TestNothingInstalled uninstalls from a cluster without CRDs.
func TestNothingInstalled(t *testing.T) {
	t.Parallel()
	e := env.Start(t, env.NoCRDs())
	run(t, identity(t, e))
}

// waits checks that an uninstallation waits for what the text names, and removes no mark of the pod meanwhile.
func waits(t *testing.T, e *env.Env, config *rest.Config, namespace, name, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, fmt.Errorf("out of time"))
	defer cancel()
	err := uninstall.Run(ctx, options(config, &bytes.Buffer{}))
	if err == nil || !strings.Contains(err.Error(), text+": out of time") {
		t.Errorf("error %v, want %s", err, text)
	}
	pod := &corev1.Pod{}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, pod))
	if pod.Labels["busy"] != "true" {
		t.Errorf("labels %v: the mark was removed", pod.Labels)
	}
}

// removes checks that an uninstallation removes the marks of a pod.
func removes(t *testing.T, config *rest.Config) (out string) {
	t.Helper()
	if out = run(t, config); !strings.Contains(out, "Removed the marks of 1 pod.") {
		t.Errorf("output %q, want that the marks of 1 pod are removed", out)
	}
	return out
}

// run uninstalls and returns the output.
func run(t *testing.T, config *rest.Config) string {
	t.Helper()
	var out bytes.Buffer
	if err := uninstall.Run(t.Context(), options(config, &out)); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

func options(config *rest.Config, out *bytes.Buffer) uninstall.Options {
	return uninstall.Options{Config: config, Namespace: system, Name: name, Workloads: workloads, Out: out}
}

// identity returns a configuration with the rights of the manager and of the hook.
func identity(t *testing.T, e *env.Env) *rest.Config {
	t.Helper()
	config := e.Component(t, name)
	e.Grant(t, system, env.ServiceAccountSubject(system, name),
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, ResourceNames: []string{name, workloads}, Verbs: []string{"patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{name, workloads}, Verbs: []string{"delete"}})
	return config
}

// createDeployment creates the Deployment of a program whose pods have the label a with a value.
func createDeployment(t *testing.T, e *env.Env, name, value string) {
	t.Helper()
	labels := map[string]string{"a": value}
	expect.NoError(t, e.Client.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}))
}

// createMarked creates a pod with marks, in the phase if one is given.
func createMarked(t *testing.T, e *env.Env, builder *builders.PodBuilder, marks mark.Marks, phase ...corev1.PodPhase) {
	t.Helper()
	pod := plain(builder)
	expect.NoError(t, e.Client.Create(t.Context(), pod))
	for _, p := range phase {
		pod.Status.Phase = p
		expect.NoError(t, e.Client.Status().Update(t.Context(), pod))
	}
	c, err := metadata.NewForConfig(e.Config)
	expect.NoError(t, err)
	_, err = apply.NewPods(c).Marks(t.Context(), pod, marks)
	expect.NoError(t, err)
}

// createInherited creates a pod whose marks OpenKruise set before Seamark.
func createInherited(t *testing.T, e *env.Env, builder *builders.PodBuilder, marks mark.Marks) {
	t.Helper()
	pod := plain(builder)
	expect.NoError(t, e.Client.Create(t.Context(), pod))
	before := pod.DeepCopy()
	pod.Labels = map[string]string{"app": "x", "busy": "true", "own": "kruise"}
	expect.NoError(t, e.Client.Patch(t.Context(), pod, client.MergeFrom(before), client.FieldOwner("kruise-manager")))
	before = pod.DeepCopy()
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "example.com/busy", Status: corev1.ConditionTrue})
	expect.NoError(t, e.Client.Status().Patch(t.Context(), pod, client.StrategicMergeFrom(before), client.FieldOwner("kruise-manager")))
	c, err := metadata.NewForConfig(e.Config)
	expect.NoError(t, err)
	_, err = apply.NewPods(c).Marks(t.Context(), pod, marks)
	expect.NoError(t, err)
}

// plain returns the pod as a user creates it.
func plain(builder *builders.PodBuilder) *corev1.Pod {
	pod := builder.Build()
	pod.UID, pod.ResourceVersion = "", ""
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Image = "none"
	}
	return pod
}

// TestUninstallStopsWorkloadsFirst checks that no mark is removed while seamark-workloads runs,
// which would scale and update workloads based on the remaining marks, and that CloneSets and their
// pods are kept.
func TestUninstallStopsWorkloadsFirst(t *testing.T) {
	t.Parallel()
	e := env.Start(t)
	config := identity(t, e)
	namespace := e.Namespace(t)
	createDeployment(t, e, workloads, "w")
	program := plain(builders.Pod(system, "workloads-1").Label("a", "w"))
	expect.NoError(t, e.Client.Create(t.Context(), program))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: workloads}}
	expect.NoError(t, e.Client.Create(t.Context(), lease))
	binding := env.WorkloadsBinding(namespace)
	binding.Labels["app.kubernetes.io/managed-by"] = "seamark-manager"
	expect.NoError(t, e.Client.Create(t.Context(), binding))
	set := cloneSet(namespace)
	expect.NoError(t, e.Client.Create(t.Context(), set))
	owned := builders.Pod(namespace, "set-abcde").Label("app", "set")
	createMarked(t, e, owned, mark.Marks{mark.Label("busy"): {Text: "true"}})
	pod := &corev1.Pod{}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "set-abcde"}, pod))
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion().WithKind("CloneSet"))}
	expect.NoError(t, e.Client.Update(t.Context(), pod))

	waits(t, e, config, namespace, pod.Name, "wait for pod seamark-system/workloads-1 to terminate")

	expect.NoError(t, e.Client.Delete(t.Context(), program, client.GracePeriodSeconds(0)))
	out := removes(t, config)
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); !apierrors.IsNotFound(err) {
		t.Errorf("get the RoleBinding of seamark-workloads: %v, want not found", err)
	}
	if want := "Kept the CRDs of sets and jobs"; !strings.Contains(out, want) {
		t.Errorf("output\n%swant it to contain %q", out, want)
	}
	checkWorkloadsKept(t, e, set, pod)
}

func checkWorkloadsKept(t *testing.T, e *env.Env, set *v1alpha1.CloneSet, pod *corev1.Pod) {
	t.Helper()
	uid := pod.UID
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	if pod.UID != uid || pod.DeletionTimestamp != nil || len(pod.OwnerReferences) != 1 {
		t.Errorf("pod of the CloneSet: UID %s, deleted at %v, owners %v, want it unchanged", pod.UID, pod.DeletionTimestamp, pod.OwnerReferences)
	}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	if set.DeletionTimestamp != nil {
		t.Error("the CloneSet is being deleted")
	}
	deployment := &appsv1.Deployment{}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: workloads}, deployment))
	if *deployment.Spec.Replicas != 0 {
		t.Errorf("the Deployment of seamark-workloads has %d replicas, want 0", *deployment.Spec.Replicas)
	}
	err := e.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: workloads}, &coordinationv1.Lease{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get the lease of seamark-workloads: %v, want not found", err)
	}
}

func cloneSet(namespace string) *v1alpha1.CloneSet {
	labels := map[string]string{"app": "set"}
	return &v1alpha1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "set"},
		Spec: v1alpha1.CloneSetSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}
}
