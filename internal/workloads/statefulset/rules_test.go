// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/order"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// limited sets scaleStrategy.maxUnavailable.
func limited(n int32) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) {
		set.Spec.ScaleStrategy = &appsv1beta1.StatefulSetScaleStrategy{MaxUnavailable: new(intstr.FromInt32(n))}
	}
}

func TestScale(t *testing.T) {
	runCases(t, map[string]planCase{
		"ordered: the first missing replica":   {set: ordered, want: []string{"create db-0 v2"}},
		"ordered: waits for the first replica": {set: ordered, pods: []string{"0 updated unready"}},
		"ordered: the next replica":            {set: ordered, pods: []string{"0 updated"}, want: []string{"create db-1 v2"}},
		"ordered: waits for minReadySeconds": {
			set: both(ordered, minReady(30)), pods: []string{"0 updated fresh"}, after: 25 * time.Second,
		},
		"ordered: waits for the handler of preNormal": {
			set: both(ordered, preNormal), pods: []string{"0 updated " + pub.LifecycleStateKey + "=PreparingNormal"},
		},
		"ordered: the handler of preNormal is there": {
			set: both(ordered, preNormal), pods: []string{"0 updated hook=true " + pub.LifecycleStateKey + "=PreparingNormal"},
			want: []string{"Normal db-0"},
		},
		"ordered: the hook preNormal is removed": {
			set: ordered, pods: []string{"0 updated " + pub.LifecycleStateKey + "=PreparingNormal"}, want: []string{"Normal db-0"},
		},
		"ordered: waits for a terminating replica": {
			set: ordered, pods: []string{"0 terminating", "1", "2"}, after: planning.OverdueBound,
		},
		"ordered: replaces a failed replica": {
			set: ordered, pods: []string{"0 failed", "1", "2"}, want: []string{"delete db-0: Finished"},
		},
		"ordered: the highest excess pod": {
			set: both(ordered, replicas(1)), pods: []string{"0 updated", "1", "2"}, want: []string{"delete db-2: ScaleDown"},
		},
		"ordered: waits for a terminating excess pod": {
			set: both(ordered, replicas(1)), pods: []string{"0 updated", "1", "2 terminating"}, after: planning.OverdueBound,
		},
		"ordered: an unhealthy excess pod waits for a lower one": {
			set: both(ordered, replicas(1)), pods: []string{"0 updated", "1 unready", "2 unready"},
		},
		"ordered: a failed excess pod does not block": {
			set: both(ordered, replicas(1)), pods: []string{"0 updated", "1 failed", "2 unready"},
			want: []string{"delete db-2: ScaleDown"},
		},
		"pods whose owner reference has another version": {
			pods: []string{"0 updated older", "1 older", "3 older"}, want: []string{"delete db-3: ScaleDown", "create db-2 v2"},
		},
		"parallel: all missing replicas": {
			pods: []string{"1 updated"}, want: []string{"create db-0 v2", "create db-2 v2"},
		},
		"parallel: all excess pods": {
			set: replicas(1), pods: []string{"0 updated", "1", "2"},
			want: []string{"delete db-2: ScaleDown", "delete db-1: ScaleDown"},
		},
		"parallel: as many as maxUnavailable": {
			set:  limited(2),
			pods: []string{"0 updated unready"}, want: []string{"create db-1 v2"},
		},
		"parallel: a replica whose name is taken does not count": {
			set:  limited(1),
			pods: []string{"0 updated app=other"}, want: []string{"Release db-0", "create db-1 v2"},
		},
		"start": {
			set: func(set *appsv1beta1.StatefulSet) {
				set.Spec.Ordinals = &appsv1beta1.StatefulSetOrdinals{Start: 5}
			},
			pods: []string{"5 updated", "4 updated"},
			want: []string{"delete db-4: ScaleDown", "create db-6 v2", "create db-7 v2"},
		},
		"reserved numbers and ranges": {
			set: reserve(intstr.FromInt32(1), intstr.FromString("3-4")), pods: []string{"0 updated", "1 updated", "2 updated"},
			want: []string{"delete db-1: ScaleDown", "create db-5 v2"},
		},
		"reserved and scaled down in one change": {
			set: both(replicas(2), reserve(intstr.FromInt32(1))), pods: []string{"0 updated", "1 updated", "2 updated"},
			want: []string{"delete db-1: ScaleDown"},
		},
		"adopts an orphan instead of creating a pod": {
			pods: []string{"0 updated", "1 updated", "2 updated orphan"}, want: []string{"Adopt db-2"},
		},
		"releases a pod that does not match, and waits for its name": {
			pods: []string{"0 updated", "1 updated", "2 updated app=other"}, want: []string{"Release db-2"},
		},
		"restores the identity": {
			pods: []string{"0 updated", "1 updated", "2 updated " + appsv1.StatefulSetPodNameLabel + "=x"},
			want: []string{"RestoreIdentity db-2"},
		},
		"a set that is being deleted": {
			set:  func(set *appsv1beta1.StatefulSet) { set.DeletionTimestamp = &set.CreationTimestamp },
			pods: []string{"0"},
		},
	})
}

func TestHooksOnScaleDown(t *testing.T) {
	down := both(replicas(1), preDelete)
	runCases(t, map[string]planCase{
		"a held pod is prepared, another one is deleted": {
			set: down, pods: []string{"0 updated", "1 hook=true", "2"},
			want: []string{"PreparingDelete db-1", "delete db-2: ScaleDown"},
		},
		"a prepared pod that is held": {
			set: down, pods: []string{"0 updated", "1 hook=true " + pub.LifecycleStateKey + "=PreparingDelete"},
		},
		"a prepared pod that is released": {
			set: down, pods: []string{"0 updated", "1 " + pub.LifecycleStateKey + "=PreparingDelete"},
			want: []string{"delete db-1: PreparedDelete"},
		},
		"ordered: the next pod waits for a held one": {
			set: both(ordered, down), pods: []string{"0 updated", "1", "2 hook=true " + pub.LifecycleStateKey + "=PreparingDelete"},
		},
		"a prepared pod returns when the set is scaled up": {
			set: preDelete, pods: []string{"0 updated", "1 updated", "2 updated hook=true " + pub.LifecycleStateKey + "=PreparingDelete"},
			want: []string{"Normal db-2"},
		},
	})
}

func TestUpdate(t *testing.T) {
	runCases(t, map[string]planCase{
		"highest ordinal first": {
			pods: []string{"0", "1", "2"}, want: []string{"delete db-2: Update"},
		},
		"waits for an unavailable pod": {
			pods: []string{"0", "1", "2 updated unready"},
		},
		"waits for minReadySeconds": {
			set: minReady(30), pods: []string{"0", "1", "2 updated fresh"}, after: 25 * time.Second,
		},
		"an unavailable target does not stop the iteration": {
			set: maxUnavailable(intstr.FromInt32(2)), pods: []string{"0", "1", "2 unready"},
			want: []string{"delete db-2: Update", "delete db-1: Update"},
		},
		"as many as maxUnavailable of those that are not available": {
			set: maxUnavailable(intstr.FromInt32(2)), pods: []string{"0 unready", "1 unready", "2 unready"},
			want: []string{"delete db-2: Update", "delete db-1: Update"},
		},
		"one that is not available waits for one that starts": {
			pods: []string{"0 unready", "1 unready", "2 updated starting"}, after: 4 * time.Minute,
		},
		"one that is not available waits for no missing one": {
			set: limited(1), pods: []string{"0 broken"}, want: []string{"delete db-0: Update"},
		},
		"one that is not available waits for a terminating one": {
			pods: []string{"0 unready", "1 unready", "2 terminating"}, after: planning.StartBound,
		},
		"a target that is not available for long does not stop the others": {
			pods: []string{"0", "1 unready", "2 updated broken"}, want: []string{"delete db-1: Update"},
		},
		"maxUnavailable rounds down": {
			set: maxUnavailable(intstr.FromString("99%")), pods: []string{"0", "1", "2"},
			want: []string{"delete db-2: Update", "delete db-1: Update"},
		},
		"maxUnavailable is at least one": {
			set: maxUnavailable(intstr.FromString("10%")), pods: []string{"0", "1", "2"}, want: []string{"delete db-2: Update"},
		},
		"partition": {
			set: partition(2), pods: []string{"0", "1", "2 updated"},
		},
		"partition counts replicas, not reserved ordinals": {
			set: both(partition(2), reserve(intstr.FromInt32(1))), pods: []string{"0", "2", "3"},
			want: []string{"delete db-3: Update"},
		},
		"a pod below the partition is created with the old revision": {
			set: partition(2), pods: []string{"0", "2"}, want: []string{"create db-1 v1"},
		},
		"a pod from the partition on is created with the new revision": {
			set: partition(1), pods: []string{"0", "2"}, want: []string{"create db-1 v2"},
		},
		"paused": {
			set: func(set *appsv1beta1.StatefulSet) { rolling(set).Paused = true }, pods: []string{"0", "1", "2"},
		},
		"without rollingUpdate": {
			set: notDefaulted, pods: []string{"0", "1", "2"}, want: []string{"delete db-2: Update"},
		},
		"without rollingUpdate, one pod at a time": {
			set: notDefaulted, pods: []string{"0", "1", "2 updated unready"},
		},
		"without rollingUpdate, ready is available": {
			set: notDefaulted, pods: []string{"0", "1", "2 updated fresh"}, want: []string{"delete db-1: Update"},
		},
		"OnDelete": {
			set: onDelete, pods: []string{"0", "1"}, want: []string{"create db-2 v2"},
		},
		"ordered: two pods together": {
			set: both(ordered, maxUnavailable(intstr.FromInt32(2))), pods: []string{"0", "1", "2"},
			want: []string{"delete db-2: Update", "delete db-1: Update"},
		},
		"ordered: one after the other returns": {
			set: both(ordered, maxUnavailable(intstr.FromInt32(2))), pods: []string{"0"}, want: []string{"create db-1 v2"},
		},
		"ordered: not while a replica is unavailable": {
			set: ordered, pods: []string{"0 updated broken", "1", "2"},
		},
		"in place": {
			set: inPlace(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType), pods: []string{"0", "1", "2"},
			want: []string{"Updating db-2"},
		},
		"pods without the gate are recreated": {
			set: inPlace(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType), pods: []string{"0", "1", "2 ungated"},
			want: []string{"delete db-2: Update"},
		},
		"they wait with InPlaceOnly": {
			set: inPlace(appsv1beta1.InPlaceOnlyPodUpdateStrategyType), pods: []string{"0 updated", "1 updated", "2 ungated"},
		},
		"specified deletes respect maxUnavailable": {
			pods: []string{"0 updated", "1 updated " + pub.SpecifiedDeleteKey + "=", "2 updated " + pub.SpecifiedDeleteKey + "=true"},
			want: []string{"delete db-2: SpecifiedDelete"},
		},
	})
}

// The template of v1 is wrong and that of v2 repairs it, or the other way round below the partition.
func TestOrderedReadyRepairsTheReplicaThatBlocks(t *testing.T) {
	const state = pub.LifecycleStateKey
	ifPossible := both(ordered, inPlace(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType))
	changed := func(set *appsv1beta1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "B"}}
	}
	runCases(t, map[string]planCase{
		"in turn, at once":           {set: ordered, pods: []string{"0 updated", "1 unready"}, want: []string{"delete db-1: Update"}},
		"a pod that is not running":  {set: ordered, pods: []string{"0 pending"}, want: []string{"delete db-0: Update"}},
		"out of turn, when broken":   {set: ordered, pods: []string{"0", "1 broken", "2"}, want: []string{"delete db-1: Update"}},
		"out of turn, restarted":     {set: ordered, pods: []string{"0", "1 unready", "2"}, after: 25 * time.Second},
		"only the first":             {set: ordered, pods: []string{"0", "1 broken", "2 broken"}, want: []string{"delete db-1: Update"}},
		"not behind another one":     {set: ordered, pods: []string{"0 updated broken", "1", "2 broken"}},
		"not while one is replaced":  {set: ordered, pods: []string{"0 terminating", "1", "2 broken"}, after: planning.OverdueBound},
		"ready but not available":    {set: both(ordered, minReady(30)), pods: []string{"0 fresh"}, after: 25 * time.Second},
		"the wanted revision":        {set: ordered, pods: []string{"0 updated broken"}},
		"paused":                     {set: both(ordered, func(set *appsv1beta1.StatefulSet) { rolling(set).Paused = true }), pods: []string{"0 broken"}},
		"OnDelete":                   {set: both(ordered, onDelete), pods: []string{"0 broken"}},
		"below the partition":        {set: both(ordered, partition(2)), pods: []string{"0 updated broken", "1"}, want: []string{"delete db-0: Revert"}},
		"below the partition, early": {set: both(ordered, partition(2)), pods: []string{"0 updated unready", "1"}, after: 25 * time.Second},
		"below the partition, old":   {set: both(ordered, partition(2)), pods: []string{"0 broken", "1"}},
		"in place":                   {set: ifPossible, pods: []string{"0 updated", "1 broken"}, want: []string{"Updating db-1"}},
		"in place, below":            {set: both(ifPossible, partition(1)), pods: []string{"0 updated broken"}, want: []string{"Updating db-0"}},
		"not possible in place":      {set: both(ifPossible, changed), pods: []string{"0 broken"}, want: []string{"delete db-0: Update"}},
		"InPlaceOnly":                {set: both(ordered, changed, inPlace(appsv1beta1.InPlaceOnlyPodUpdateStrategyType)), pods: []string{"0 broken"}},
		"the hook preDelete holds it": {
			set: both(ordered, partition(1), preDelete), pods: []string{"0 updated broken hook=true"},
			want: []string{"PreparingDelete db-0"},
		},
		"held": {
			set:  both(ordered, partition(1), preDelete),
			pods: []string{"0 updated broken hook=true " + state + "=PreparingDelete"},
		},
		"released": {
			set: both(ordered, partition(1), preDelete), pods: []string{"0 updated broken " + state + "=PreparingDelete"},
			want: []string{"delete db-0: PreparedDelete"},
		},
		"ready again while held": {
			set:  both(ordered, partition(1), preDelete),
			pods: []string{"0 updated hook=true " + state + "=PreparingDelete"}, want: []string{"Normal db-0", "create db-1 v2"},
		},
	})
}

func TestHookOfUpdatesInPlace(t *testing.T) {
	const state = pub.LifecycleStateKey
	hooked := both(inPlace(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType), func(set *appsv1beta1.StatefulSet) {
		set.Spec.Lifecycle = &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{"hook": "true"}}}
	})
	paused := both(hooked, func(set *appsv1beta1.StatefulSet) { rolling(set).Paused = true })
	runCases(t, map[string]planCase{
		"the hook prepares the pod": {set: hooked, pods: []string{"0", "1", "2 hook=true"}, want: []string{"PreparingUpdate db-2"}},
		"the hook holds the pod":    {set: hooked, pods: []string{"0", "1", "2 hook=true " + state + "=PreparingUpdate"}},
		"the hook releases the pod": {
			set: hooked, pods: []string{"0", "1", "2 " + state + "=PreparingUpdate"}, want: []string{"Updating db-2"},
		},
		"an updated pod counts until its hook is restored": {
			set: hooked, pods: []string{"0", "1", "2 updated " + state + "=Updated"},
		},
		"the hook is restored": {
			set: hooked, pods: []string{"0", "1", "2 updated hook=true " + state + "=Updated"}, want: []string{"Normal db-2"},
		},
		"a further update of an updated pod": {
			set: hooked, pods: []string{"0", "1", "2 " + state + "=Updated"}, want: []string{"Updating db-2"},
		},
		"a further update while another pod is down": {
			set: hooked, pods: []string{"0", "1 unready", "2 " + state + "=Updated"},
		},
		"paused before the hook acts": {
			set: paused, pods: []string{"0", "1", "2 hook=true " + state + "=PreparingUpdate"}, want: []string{"Normal db-2"},
		},
		"paused after the hook has acted": {
			set: paused, pods: []string{"0", "1", "2 " + state + "=PreparingUpdate"}, want: []string{"Updated db-2"},
		},
	})
}

func TestUnorderedUpdate(t *testing.T) {
	runCases(t, map[string]planCase{
		"the secondary before the primary": {
			set: byRole, pods: []string{"0 role=secondary", "1 role=secondary updated", "2 role=primary"},
			want: []string{"delete db-0: Update"},
		},
		"ties by the highest ordinal": {
			set: byRole, pods: []string{"0 role=secondary", "1 role=secondary", "2 role=primary"},
			want: []string{"delete db-1: Update"},
		},
		"a started pod is continued when the roles have moved": {
			set:  both(byRole, preDelete),
			pods: []string{"0 role=secondary", "1 role=primary " + pub.LifecycleStateKey + "=PreparingDelete hook=true", "2 role=secondary"},
		},
		"a started pod is deleted when its hook releases it": {
			set:  both(byRole, preDelete),
			pods: []string{"0 role=secondary", "1 role=primary " + pub.LifecycleStateKey + "=PreparingDelete", "2 role=secondary"},
			want: []string{"delete db-1: PreparedDelete"},
		},
		"no label yet: waits": {
			set: byRole, pods: []string{"0 role=primary", "1 fresh", "2 role=secondary updated"}, after: 25 * time.Second,
		},
		"unknown role: waits": {
			set: byRole, pods: []string{"0 role=primary", "1 unknown", "2 role=secondary updated"}, after: 10 * time.Second,
		},
		"no label after the bound: last": {
			set: byRole, pods: []string{"0 role=primary", "1", "2 role=secondary updated"}, want: []string{"delete db-0: Update"},
		},
		"a restarted pod without a label blocks": {
			set: byRole, pods: []string{"0 role=primary", "1 unready", "2 role=secondary updated"}, after: 25 * time.Second,
		},
		"a broken pod is updated out of turn": {
			set: byRole, pods: []string{"0 role=primary", "1 broken", "2 role=secondary updated"},
			want: []string{"delete db-1: Update"},
		},
		"partition counts updated pods": {
			set: both(byRole, partition(2)), pods: []string{"0 role=secondary updated", "1 role=secondary", "2 role=primary"},
		},
		"partition counts a pod that is being replaced": {
			set:  both(byRole, partition(2), maxUnavailable(intstr.FromInt32(2))),
			pods: []string{"0 role=secondary terminating", "1 role=secondary", "2 role=primary"}, after: planning.OverdueBound,
		},
		"a missing pod gets the new revision": {
			set: both(byRole, partition(2)), pods: []string{"1 role=secondary", "2 role=primary"}, want: []string{"create db-0 v2"},
		},
		"a missing pod gets the old revision if the partition requires it": {
			set: both(byRole, partition(2)), pods: []string{"1 role=secondary updated", "2 role=primary"},
			want: []string{"create db-0 v1"},
		},
	})
}

// TestTogglingPodDoesNotStopTheUpdate rolls back while a pod without a role is ready for 20 s and not ready
// for 20 s, in turns.
func TestTogglingPodDoesNotStopTheUpdate(t *testing.T) {
	f := build(t, byRole).pods(t, "0 updated role=primary", "1 updated", "2 updated role=secondary")
	f.in.Markers.Labels = sets.New("role")
	begun := f.in.Now
	for _, rev := range f.in.Revisions {
		rev.CreationTimestamp = metav1.NewTime(begun.Add(-24 * time.Hour))
	}
	for _, pod := range f.in.Pods {
		pod.CreationTimestamp = metav1.NewTime(begun.Add(-time.Hour))
	}
	f.set.Spec.Template.Spec.Containers[0].Image = "db:1"
	f.in.Revisions[0] = f.plan(t).UpdateRevisions[0]
	ready := &f.in.Pods[1].Status.Conditions[0]
	for ready.LastTransitionTime = metav1.NewTime(begun); ; f.in.Now = f.in.Now.Add(time.Second) {
		waited := f.in.Now.Sub(begun)
		if waited%(20*time.Second) == 0 {
			ready.LastTransitionTime = metav1.NewTime(f.in.Now)
			ready.Status = corev1.ConditionFalse
			if waited%(40*time.Second) == 0 {
				ready.Status = corev1.ConditionTrue
			}
		}
		if out := f.plan(t); len(out.Deletes) > 0 {
			if waited != order.WaitLimit {
				t.Errorf("the update continues after %s, want %s", waited, order.WaitLimit)
			}
			return
		}
		if waited > time.Hour {
			t.Fatal("the update does not continue")
		}
	}
}
