// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
)

// infeasible makes the last pod one of the update revision whose node can never provide the resources.
func (f *fixture) infeasible(t *testing.T) {
	t.Helper()
	f.resizing(t, f.in.Pods[len(f.in.Pods)-1], f.v2, corev1.PodReasonInfeasible)
}

// resizing makes the pod one of the revision whose resize is pending for the reason.
func (f *fixture) resizing(t *testing.T, pod *corev1.Pod, revision, reason string) {
	t.Helper()
	state, err := json.Marshal(pub.InPlaceUpdateState{Revision: revision, UpdateResources: true})
	if err != nil {
		t.Fatal(err)
	}
	pod.Annotations = map[string]string{pub.InPlaceUpdateStateKey: string(state)}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("64")}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "db", Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	}}
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason},
	)
}

func TestInfeasibleResize(t *testing.T) {
	const updating, prepared = pub.LifecycleStateKey + "=Updating", pub.LifecycleStateKey + "=PreparingDelete"
	ifPossible := inPlace(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType)
	for name, test := range map[string]struct {
		set        func(*appsv1beta1.StatefulSet)
		first, pod string
		want       []string
	}{
		"not while the update is paused":     {both(ifPossible, func(set *appsv1beta1.StatefulSet) { rolling(set).Paused = true }), "0 updated", "2 updated " + updating, nil},
		"not below the partition":            {both(ifPossible, partition(3)), "0 updated", "2 updated " + updating, nil},
		"not with OnDelete":                  {both(ifPossible, onDelete), "0 updated", "2 updated " + updating, nil},
		"the pod is recreated":               {ifPossible, "0 updated", "2 updated " + updating, []string{"delete db-2: Update"}},
		"a pod that returned to Normal":      {ifPossible, "0 updated", "2 updated", []string{"delete db-2: Update"}},
		"not while another pod is down":      {ifPossible, "0 updated unready", "2 updated " + updating, nil},
		"not with InPlaceOnly":               {inPlace(appsv1beta1.InPlaceOnlyPodUpdateStrategyType), "0 updated", "2 updated " + updating, nil},
		"the hook prepares the pod":          {both(ifPossible, preDelete), "0 updated", "2 updated hook=true " + updating, []string{"PreparingDelete db-2"}},
		"the hook still holds the pod":       {both(ifPossible, preDelete), "0 updated", "2 updated hook=true " + prepared, nil},
		"the hook releases the prepared pod": {both(ifPossible, preDelete), "0 updated", "2 updated " + prepared, []string{"delete db-2: PreparedDelete"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := build(t, test.set).pods(t, test.first, "1 updated", test.pod)
			f.infeasible(t)
			out := f.plan(t)
			if c := out.Status.Conditions; len(c) != 1 || c[0].Reason != "ResizeStuck" || len(out.StatusEvents) != 1 {
				t.Errorf("conditions %+v and events %+v, want ResizeStuck", c, out.StatusEvents)
			}
			if diff := cmp.Diff(test.want, f.summary(&out)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodsInProgressDoNotWaitForEachOther checks that one of two pods that serve, and whose resizes do not take effect, goes on,
// although both count as unavailable.
func TestPodsInProgressDoNotWaitForEachOther(t *testing.T) {
	const updating = pub.LifecycleStateKey + "=Updating"
	for name, test := range map[string]struct {
		revision func(*fixture) string
		reason   string
		pods     []string
		want     []string
	}{
		"infeasible": {
			func(f *fixture) string { return f.v2 }, corev1.PodReasonInfeasible,
			[]string{"0 updated", "1 updated " + updating, "2 updated " + updating}, []string{"delete db-1: Update"},
		},
		"deferred, and another template": {
			func(f *fixture) string { return f.v1 }, corev1.PodReasonDeferred,
			[]string{"0 updated", "1 " + updating, "2 " + updating}, []string{"UpdateInPlace db-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := build(t, inPlace(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType)).pods(t, test.pods...)
			f.resizing(t, f.in.Pods[1], test.revision(f), test.reason)
			f.resizing(t, f.in.Pods[2], test.revision(f), test.reason)
			out := f.plan(t)
			if diff := cmp.Diff(test.want, f.summary(&out)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodsThatOthersDeleteArePrepared has a replica and an excess pod that a finalizer of the hook keeps.
func TestPodsThatOthersDeleteArePrepared(t *testing.T) {
	f := build(t, preDelete).pods(t, "0 updated", "1 updated terminating", "2 updated terminating", "3 updated terminating")
	f.set.Spec.Lifecycle.PreDelete.FinalizersHandler = []string{"example.com/drain"}
	for _, pod := range []*corev1.Pod{f.in.Pods[1], f.in.Pods[3]} {
		pod.Finalizers = f.set.Spec.Lifecycle.PreDelete.FinalizersHandler
	}
	out := f.plan(t)
	if diff := cmp.Diff([]string{"PreparingDelete db-1", "PreparingDelete db-3"}, f.summary(&out)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestPreparedPodIsUpdatedInPlace scales a set up again whose highest pod is held before its deletion,
// while the template changes.
func TestPreparedPodIsUpdatedInPlace(t *testing.T) {
	pods := []string{"0", "1", "2 hook=true " + pub.LifecycleStateKey + "=PreparingDelete"}
	runCases(t, map[string]planCase{
		"InPlaceOnly": {
			set:  both(preDelete, inPlace(appsv1beta1.InPlaceOnlyPodUpdateStrategyType)),
			pods: pods, want: []string{"Normal db-2"},
		},
		"InPlaceIfPossible": {
			set:  both(preDelete, inPlace(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType)),
			pods: pods, want: []string{"Normal db-2"},
		},
		"ReCreate": {set: preDelete, pods: pods},
	})
}

// The API server has accepted that the pod is not ready, and refused its image: only the image is written again.
func TestInterruptedUpdates(t *testing.T) {
	ifPossible := inPlace(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType)
	for name, test := range map[string]struct {
		set   func(*appsv1beta1.StatefulSet)
		image string
	}{
		"goes on": {ifPossible, "db:2"},
		"paused":  {both(ifPossible, func(set *appsv1beta1.StatefulSet) { rolling(set).Paused = true }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := build(t, test.set).pods(t, "0", "1", "2 unready")
			f.in.Pods[2].Status.Conditions[1].Status = corev1.ConditionFalse
			out := f.plan(t)
			if len(out.Patches) != 1 || out.Patches[0].Images["db"] != test.image || len(out.Patches[0].Conditions) > 0 != (test.image == "") {
				t.Errorf("patches %+v, want the image %q", out.Patches, test.image)
			}
		})
	}
}
