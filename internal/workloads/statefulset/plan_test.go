// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
	"github.com/seamark-dev/seamark/test/builders"
)

func now() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// fixture is a set with revisions v1 and v2, of which v2 is that of the template.
type fixture struct {
	set    *appsv1beta1.StatefulSet
	in     planning.Input
	v1, v2 string
}

// build returns a fixture with a Parallel set of three replicas, changed by the function.
func build(t *testing.T, change func(*appsv1beta1.StatefulSet)) *fixture {
	t.Helper()
	set := &appsv1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "set", Generation: 2},
		Spec: appsv1beta1.StatefulSetSpec{
			Replicas: new(int32(3)), PodManagementPolicy: appsv1.ParallelPodManagement, ServiceName: "service",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db:1"}}},
			},
			UpdateStrategy: appsv1beta1.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1beta1.RollingUpdateStatefulSetStrategy{
					Partition: new(int32(0)), MaxUnavailable: new(intstr.FromInt32(1)),
				},
			},
		},
	}
	f := &fixture{set: set, in: planning.Input{Guards: builders.Guards(), Now: now()}}
	f.v1 = f.record(t)
	set.Spec.Template.Spec.Containers[0].Image = "db:2"
	f.v2 = f.record(t)
	if change != nil {
		change(set)
	}
	set.Status.CurrentRevision, set.Status.UpdateRevision = f.v1, f.v2
	return f
}

// record adds the revision of the template and returns its name.
func (f *fixture) record(t *testing.T) string {
	t.Helper()
	rev := f.plan(t).CreateRevision
	f.in.Revisions = append(f.in.Revisions, rev)
	return rev.Name
}

func (f *fixture) plan(t *testing.T) statefulset.Output {
	t.Helper()
	in := f.in
	in.Pods = nil
	for _, pod := range f.in.Pods { // Those of the cache.
		in.Pods = append(in.Pods, trim.Pod([]schema.GroupKind{statefulset.Kind().GroupKind()})(pod))
	}
	out, err := statefulset.Plan(f.set, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pods adds pods: the ordinal and then words that change the pod, separated by spaces.
func (f *fixture) pods(t *testing.T, descriptions ...string) *fixture {
	t.Helper()
	for _, description := range descriptions {
		words := strings.Fields(description)
		ordinal, err := strconv.Atoi(words[0])
		if err != nil {
			t.Fatal(err)
		}
		pod := f.pod(ordinal)
		for _, word := range words[1:] {
			f.describe(t, pod, word)
		}
		f.in.Pods = append(f.in.Pods, pod)
	}
	return f
}

// pod returns a ready pod of revision v1.
func (f *fixture) pod(ordinal int) *corev1.Pod {
	name := fmt.Sprintf("db-%d", ordinal)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name),
			Labels: map[string]string{
				"app": "db", appsv1.ControllerRevisionHashLabelKey: f.v1, appsv1.StatefulSetPodNameLabel: name,
				appsv1.PodIndexLabel: strconv.Itoa(ordinal), pub.LifecycleStateKey: "Normal",
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.set, statefulset.Kind())},
		},
		Spec: corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "db", Image: "db:1"}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now().Add(-time.Hour))},
			{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now().Add(-time.Hour))},
		}},
	}
}

func (f *fixture) describe(t *testing.T, pod *corev1.Pod, word string) {
	t.Helper()
	key, value, isLabel := strings.Cut(word, "=")
	ready := &pod.Status.Conditions[0]
	switch {
	case isLabel:
		pod.Labels[key] = value
	case word == "updated":
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = f.v2
		pod.Spec.Containers[0].Image = "db:2"
	case word == "unready":
		ready.Status, ready.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(now().Add(-5*time.Second))
	case word == "starting":
		ready.Status, pod.CreationTimestamp = corev1.ConditionFalse, metav1.NewTime(now().Add(-time.Minute))
	case word == "broken":
		ready.Status = corev1.ConditionFalse
	case word == "pending":
		pod.Status.Phase, pod.Status.Conditions = corev1.PodPending, pod.Status.Conditions[1:]
		pod.CreationTimestamp = metav1.NewTime(now())
	case word == "fresh":
		ready.LastTransitionTime = metav1.NewTime(now().Add(-5 * time.Second))
	case word == "ungated": // It was created before updates were in place.
		pod.Spec.ReadinessGates, pod.Status.Conditions = nil, pod.Status.Conditions[:1]
	case word == "terminating":
		pod.DeletionTimestamp = new(metav1.NewTime(now()))
	case word == "failed":
		pod.Status.Phase, ready.Status = corev1.PodFailed, corev1.ConditionFalse
	case word == "unknown":
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: "example.com/role", Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(now().Add(-20 * time.Second)),
		})
	case word == "orphan":
		pod.OwnerReferences = nil
	case word == "older":
		pod.OwnerReferences[0].APIVersion = "apps.kruise.io/v1alpha1"
	default:
		t.Fatalf("unknown word %q", word)
	}
}

// summary returns the writes to pods, in the order of their execution.
func (f *fixture) summary(out *statefulset.Output) []string {
	var lines []string
	for _, p := range out.Patches {
		lines = append(lines, p.Reason+" "+p.Pod.Name)
	}
	for _, d := range out.Deletes {
		lines = append(lines, "delete "+d.Pod.Name+": "+d.Reason)
	}
	for _, pod := range out.Creates {
		revision := "v2"
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] == f.v1 {
			revision = "v1"
		}
		lines = append(lines, "create "+pod.Name+" "+revision)
	}
	return lines
}

// planCase is a set, its pods, and the writes of the next step.
type planCase struct {
	set   func(*appsv1beta1.StatefulSet)
	pods  []string
	want  []string
	after time.Duration
}

func runCases(t *testing.T, cases map[string]planCase) {
	t.Helper()
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			f := build(t, test.set)
			f.pods(t, test.pods...)
			f.in.Markers = planning.Markers{
				Labels: sets.New("role"), Conditions: sets.New[corev1.PodConditionType]("example.com/role"),
			}
			out := f.plan(t)
			if diff := cmp.Diff(test.want, f.summary(&out)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if out.RequeueAfter != test.after {
				t.Errorf("requeue after %v, want %v", out.RequeueAfter, test.after)
			}
		})
	}
}

func ordered(set *appsv1beta1.StatefulSet) {
	set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
}

func onDelete(set *appsv1beta1.StatefulSet) {
	set.Spec.UpdateStrategy = appsv1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}

// notDefaulted removes what the API server does not set.
func notDefaulted(set *appsv1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate = nil }

func both(changes ...func(*appsv1beta1.StatefulSet)) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) {
		for _, change := range changes {
			change(set)
		}
	}
}

func replicas(n int32) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) { set.Spec.Replicas = &n }
}

func reserve(entries ...intstr.IntOrString) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) { set.Spec.ReserveOrdinals = entries }
}

func partition(n int32) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) { rolling(set).Partition = &n }
}

func maxUnavailable(value intstr.IntOrString) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) { rolling(set).MaxUnavailable = &value }
}

func minReady(seconds int32) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) { rolling(set).MinReadySeconds = &seconds }
}

func preDelete(set *appsv1beta1.StatefulSet) {
	set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{"hook": "true"}}}
}

func preNormal(set *appsv1beta1.StatefulSet) {
	set.Spec.Lifecycle = &pub.Lifecycle{PreNormal: &pub.LifecycleHook{LabelsHandler: map[string]string{"hook": "true"}}}
}

func byRole(set *appsv1beta1.StatefulSet) {
	rolling(set).UnorderedUpdate = &appsv1beta1.UnorderedUpdateStrategy{PriorityStrategy: secondariesFirst()}
}

func inPlace(policy appsv1beta1.PodUpdateStrategyType) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) { rolling(set).PodUpdatePolicy = policy }
}
