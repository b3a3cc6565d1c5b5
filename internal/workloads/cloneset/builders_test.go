// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func now() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(-d)) }

// fixture is a set with two revisions: the old one has the image app:1, the new one is the template.
type fixture struct {
	set      *v1alpha1.CloneSet
	old, new *appsv1.ControllerRevision
	pods     []*corev1.Pod
	claims   []*corev1.PersistentVolumeClaim
	markers  planning.Markers
	nodes    map[string]map[string]string

	recreateForClaims bool
}

func newFixture(t testing.TB, replicas int32, change ...func(*v1alpha1.CloneSet)) *fixture {
	t.Helper()
	set := &v1alpha1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "set", Generation: 1},
		Spec: v1alpha1.CloneSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
			},
			UpdateStrategy: v1alpha1.CloneSetUpdateStrategy{Type: v1alpha1.RecreateCloneSetUpdateStrategyType},
		},
	}
	f := &fixture{set: set}
	plan := func(before ...*appsv1.ControllerRevision) revision.Result {
		r, err := revision.Plan(revision.Owner{Object: set, Kind: Kind(), Template: &set.Spec.Template}, before, 10, nil)
		expect.NoError(t, err)
		return r
	}
	f.old = plan().Update
	set.Spec.Template.Spec.Containers[0].Image = "app:2"
	f.new = plan(f.old).Update
	set.Status.CurrentRevision = f.old.Name
	for _, c := range change {
		c(set)
	}
	return f
}

// pod adds pods of the new revision, each on its own node and available for an hour: the name and then
// words that change the pod, separated by spaces. Commas separate pods.
func (f *fixture) pod(descriptions string, change ...func(*corev1.Pod)) *fixture {
	for description := range strings.SplitSeq(descriptions, ", ") {
		words := strings.Fields(description)
		if len(words) == 0 {
			continue
		}
		p := f.newPod(words[0])
		for _, word := range words[1:] {
			f.describe(p, word)
		}
		for _, c := range change {
			c(p)
		}
		f.pods = append(f.pods, p)
	}
	return f
}

func (f *fixture) newPod(name string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-" + name, UID: types.UID("uid-" + name), CreationTimestamp: ago(time.Hour),
			ResourceVersion: "1",
			Labels: map[string]string{
				"app": "web", v1alpha1.CloneSetInstanceID: name,
				pub.LifecycleStateKey: string(pub.LifecycleStateNormal),
			},
			Annotations:     map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.set, Kind())},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-" + name, Containers: []corev1.Container{{Name: "main", Image: "app:2"}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)},
				{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Image: "app:2", ImageID: "2", ContainerID: "c-" + name, Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(time.Hour)}},
			}},
		},
	}
	f.ofRevision(f.new)(p)
	return p
}

// describe changes a pod. Words that begin with a capital letter are states, others with "=" labels.
func (f *fixture) describe(p *corev1.Pod, word string) {
	key, value, isLabel := strings.Cut(word, "=")
	switch {
	case key == "old":
		f.ofRevision(f.old)(p)
	case key == "notReady":
		p.Status.Conditions[0].Status = corev1.ConditionFalse
	case key == "starting":
		p.CreationTimestamp, p.Status.Conditions[0].Status = ago(time.Minute), corev1.ConditionFalse
	case key == "ready":
		p.Status.Conditions[0].LastTransitionTime = ago(duration(value))
	case key == "ungated": // Another program has created it.
		p.Spec.ReadinessGates, p.Status.Conditions = nil, p.Status.Conditions[:1]
	case key == "terminating":
		at := ago(0)
		p.DeletionTimestamp, p.Finalizers = &at, []string{testFinalizer}
	case key == "failed":
		p.Status.Phase = corev1.PodFailed
	case key == "held": // By a hook, see holding.
		p.Labels[match] = "on"
	case key == "named":
		p.Labels[pub.SpecifiedDeleteKey] = "true"
	case key == "orphan":
		p.OwnerReferences = nil
	case key == "foreign":
		p.OwnerReferences[0].UID = "other"
	case key == "anonymous":
		delete(p.Labels, v1alpha1.CloneSetInstanceID)
	case key == "cost":
		p.Annotations[corev1.PodDeletionCost] = value
	case key == "serial":
		p.Annotations[v1alpha1.PodSerialAnnotationKey] = value
	case key == "waits": // For the claim of an instance ID.
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
		p.Spec.NodeName, p.Spec.Volumes = "", []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-" + value},
		}}}
	case isLabel:
		p.Labels[key] = value
	case unicode.IsUpper(rune(word[0])):
		p.Labels[pub.LifecycleStateKey] = word
	default:
		panic("unknown word " + word)
	}
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

func (f *fixture) ofRevision(rev *appsv1.ControllerRevision) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels[appsv1.ControllerRevisionHashLabelKey] = rev.Name
		p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = revision.Hash(rev.Name)
		if rev == f.old {
			p.Spec.Containers[0].Image = "app:1"
			p.Status.ContainerStatuses[0].Image, p.Status.ContainerStatuses[0].ImageID = "app:1", "1"
		}
	}
}

// planCase is a set with two revisions, its pods, and the writes of the next step to pods.
type planCase struct {
	replicas int32
	change   func(*v1alpha1.CloneSet)
	pods     string
	want     []string
}

func runCases(t *testing.T, cases map[string]planCase) {
	t.Helper()
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.replicas)
			if test.change != nil {
				test.change(f.set)
			}
			f.pod(test.pods).wantSteps(t, test.want...)
		})
	}
}

// input is what the controller passes to Plan, with the pods of the cache.
func (f *fixture) input() planning.Input {
	var pods []*corev1.Pod
	for _, pod := range f.pods {
		pods = append(pods, trim.Pod([]schema.GroupKind{Kind().GroupKind()})(pod))
	}
	return planning.Input{
		Pods: pods, Claims: f.claims, Markers: f.markers, Nodes: f.nodes,
		Revisions: []*appsv1.ControllerRevision{f.old, f.new}, Guards: builders.Guards(), Now: now(),
	}
}

func (f *fixture) plan(t testing.TB) Output {
	t.Helper()
	out, err := Plan(f.set, f.input(), f.recreateForClaims)
	expect.NoError(t, err)
	return out
}

// wantSteps compares the writes to pods with lines such as "-a ScaleIn", "~a PreparingDelete" and
// "+new" or "+old" for a created pod of the revision.
func (f *fixture) wantSteps(t *testing.T, want ...string) Output {
	t.Helper()
	out := f.plan(t)
	expect.Equal(t, "step", want, f.steps(&out))
	return out
}

func (f *fixture) steps(out *Output) []string {
	var got []string
	for i := range out.Patches {
		p := &out.Patches[i]
		what := p.Reason
		if state := p.Labels[pub.LifecycleStateKey]; state != nil {
			what = *state
		}
		if p.Labels[pub.SpecifiedDeleteKey] != nil {
			what += "+specified"
		}
		got = append(got, fmt.Sprintf("~%s %s", strings.TrimPrefix(p.Pod.Name, "web-"), what))
	}
	for _, d := range out.Deletes {
		got = append(got, fmt.Sprintf("-%s %s", strings.TrimPrefix(d.Pod.Name, "web-"), d.Reason))
	}
	for _, p := range out.Creates {
		if revision.Is(p, f.old.Name) {
			got = append(got, "+old")
		} else {
			got = append(got, "+new")
		}
	}
	slices.Sort(got)
	return got
}

func number(n int32) *intstr.IntOrString { return pointer(intstr.FromInt32(n)) }

func percent(s string) *intstr.IntOrString { return pointer(intstr.FromString(s)) }

// excluding sets the label that excludes pods in PreparingDelete.
func excluding(set *v1alpha1.CloneSet) {
	set.Labels = map[string]string{v1alpha1.CloneSetScalingExcludePreparingDeleteKey: "true"}
}

const (
	match         = "example.com/match"
	testFinalizer = "example.com/test"
)

// holding adds a preDelete hook that holds pods with the label match.
func holding(set *v1alpha1.CloneSet) {
	set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{match: "on"}}}
}

// finalizing adds a preDelete hook with the finalizer of terminating pods.
func finalizing(set *v1alpha1.CloneSet) {
	set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{FinalizersHandler: []string{testFinalizer}}}
}

func unavailable(n *intstr.IntOrString) func(*v1alpha1.CloneSet) {
	return func(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.MaxUnavailable = n }
}

func inPlace(set *v1alpha1.CloneSet) {
	set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
}

// inService names the container whose restart does not take a pod out of service.
func inService(set *v1alpha1.CloneSet) {
	set.Spec.Template.Annotations = map[string]string{pub.InServiceContainersKey: "main"}
}

func naming(names ...string) func(*v1alpha1.CloneSet) {
	return func(set *v1alpha1.CloneSet) {
		for _, name := range names {
			set.Spec.ScaleStrategy.PodsToDelete = append(set.Spec.ScaleStrategy.PodsToDelete, "web-"+name)
		}
	}
}
