// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestStatusCountsPods(t *testing.T) {
	f := newFixture(t, 4, partition(2), paused, func(set *v1alpha1.CloneSet) { set.Spec.MinReadySeconds = 30 })
	f.pod("a old").pod("b old notReady").pod("c").pod("d ready=1s").pod("e terminating")
	want := v1alpha1.CloneSetStatus{
		ObservedGeneration: 1, Replicas: 4, ReadyReplicas: 3, AvailableReplicas: 2,
		UpdatedReplicas: 2, UpdatedReadyReplicas: 2, UpdatedAvailableReplicas: 1, ExpectedUpdatedReplicas: 2,
		UpdateRevision: f.new.Name, CurrentRevision: f.old.Name, CollisionCount: new(int32), LabelSelector: "app=web",
	}
	out := f.plan(t)
	expect.Equal(t, "status", want, out.Status)
	f.set.Status = out.Status
	expect.Equal(t, "second status", out.Status, f.plan(t).Status)
}

// TestPodsInOtherStatesAreNotAvailable counts a ready pod in each state.
func TestPodsInOtherStatesAreNotAvailable(t *testing.T) {
	f := newFixture(t, 6, paused)
	for i, state := range []pub.LifecycleStateType{
		pub.LifecycleStatePreparingNormal, pub.LifecycleStateNormal, pub.LifecycleStatePreparingUpdate,
		pub.LifecycleStateUpdating, pub.LifecycleStateUpdated, pub.LifecycleStatePreparingDelete,
	} {
		f.pod(string(rune('a'+i)) + " " + string(state))
	}
	if s := f.plan(t).Status; s.ReadyReplicas != 6 || s.AvailableReplicas != 1 || s.UpdatedAvailableReplicas != 1 {
		t.Errorf("ready %d, available %d, updated and available %d, want 6, 1 and 1",
			s.ReadyReplicas, s.AvailableReplicas, s.UpdatedAvailableReplicas)
	}
}

func TestCurrentRevisionFollowsTheUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		replicas, partition int32
		pods                string
		current             bool
	}{
		"old pods":                         {replicas: 2, pods: "a, b old"},
		"all pods are updated":             {replicas: 2, pods: "a, b notReady", current: true},
		"no pods":                          {replicas: 2, pods: "", current: true},
		"old pods must be recreated":       {replicas: 2, partition: 1, pods: "a"},
		"scaled to zero":                   {pods: "", current: true},
		"scaled to zero during the canary": {partition: 1, pods: ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.replicas, partition(test.partition))
			f.pod(test.pods)
			status := f.plan(t).Status
			if got := status.CurrentRevision == f.new.Name; got != test.current {
				t.Errorf("current revision %s, want the new one: %t", status.CurrentRevision, test.current)
			}
			if want := max(0, test.replicas-test.partition); status.ExpectedUpdatedReplicas != want {
				t.Errorf("expectedUpdatedReplicas %d, want %d: replicas - partition", status.ExpectedUpdatedReplicas, want)
			}
		})
	}
}

func TestSettled(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.CloneSet)
		pods   string
		want   bool
	}{
		"all available":            {pods: "a, b", want: true},
		"one pod is ending":        {pods: "a, b, c terminating", want: true},
		"old pods that must stay":  {change: paused, pods: "a old, b", want: true},
		"no pods":                  {pods: ""},
		"one pod is missing":       {pods: "a"},
		"one pod is not ready":     {pods: "a, b notReady"},
		"one pod is not available": {change: func(set *v1alpha1.CloneSet) { set.Spec.MinReadySeconds = 30 }, pods: "a, b ready=1s"},
		"one pod too many":         {pods: "a, b, c"},
		"an update starts":         {pods: "a old, b"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2).pod(test.pods)
			if test.change != nil {
				test.change(f.set)
			}
			out := f.plan(t)
			if kind := Set(false); kind.Converged(f.set, &out) != test.want {
				t.Errorf("converged %t, want %t with the status %+v", !test.want, test.want, out.Status)
			}
		})
	}
}

func TestUnknownNamesAreReported(t *testing.T) {
	f := newFixture(t, 1, naming("gone", "a", "lost"), paused)
	f.pod("a")
	out := f.plan(t)
	if len(out.Status.Conditions) != 1 || out.Status.Conditions[0].Type != ConditionPodsToDeleteNotFound ||
		!strings.HasSuffix(out.Status.Conditions[0].Message, ": web-gone, web-lost.") {
		t.Fatalf("conditions %+v, want one that names web-gone and web-lost", out.Status.Conditions)
	}
	f.set.Status = out.Status
	f.set.Spec.ScaleStrategy.PodsToDelete = nil
	if c := f.plan(t).Status.Conditions[0]; c.Status != corev1.ConditionFalse {
		t.Errorf("condition %+v after the names are removed, want False", c)
	}
}

func TestPodsThatWereNeverOfTheSetAreReported(t *testing.T) {
	f := newFixture(t, 0)
	f.pod("a orphan anonymous")
	out := f.plan(t)
	if len(out.Status.Conditions) != 1 || out.Status.Conditions[0].Type != ConditionPodsNotAdopted ||
		!strings.HasSuffix(out.Status.Conditions[0].Message, ": web-a.") {
		t.Fatalf("conditions %+v, want one that names web-a", out.Status.Conditions)
	}
	f.set.Status, f.pods = out.Status, nil
	if c := f.plan(t).Status.Conditions[0]; c.Status != corev1.ConditionFalse {
		t.Errorf("condition %+v without the pod, want False", c)
	}
}

// TestUnplannedSetIsReported breaks the record of the revision that the partition requires.
func TestUnplannedSetIsReported(t *testing.T) {
	f := newFixture(t, 3, partition(2))
	f.pod("a").pod("b old")
	recorded := f.old.Data.Raw
	f.old.Data.Raw = []byte("{")
	_, err := Plan(f.set, f.input(), false)
	if err == nil {
		t.Fatal("a broken revision is accepted")
	}
	status, kind := *f.set.Status.DeepCopy(), Set(false)
	kind.Unplanned(&status, err, now())
	want := []v1alpha1.CloneSetCondition{{
		Type: "FailedScale", Status: corev1.ConditionTrue, Reason: "PlanFailed", Message: err.Error(),
		LastTransitionTime: metav1.NewTime(now()), LastUpdateTime: metav1.NewTime(now()),
	}}
	if diff := cmp.Diff(want, status.Conditions); diff != "" || status.ObservedGeneration != f.set.Status.ObservedGeneration {
		t.Errorf("observed generation %d; conditions (-want +got):\n%s", status.ObservedGeneration, diff)
	}
	f.set.Status, f.old.Data.Raw = status, recorded
	status = f.plan(t).Status
	kind.Failed(&status, nil, now())
	if got := status.Conditions; len(got) != 1 || got[0].Status != corev1.ConditionFalse {
		t.Errorf("conditions %+v after the repair, want False", got)
	}
}

func TestFailed(t *testing.T) {
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-a", errors.New("exceeded quota"))
	since, at := ago(time.Hour), ago(0)
	type conditions = []v1alpha1.CloneSetCondition
	failing := v1alpha1.CloneSetCondition{
		Type: v1alpha1.CloneSetConditionFailedScale, Status: corev1.ConditionTrue, Reason: "WriteFailed", Message: "pod web-a: " + quota.Error(),
		LastTransitionTime: at, LastUpdateTime: at,
	}
	before, again, recovered, update, refused := failing, failing, failing, failing, failing
	before.Message, before.LastTransitionTime, before.LastUpdateTime = "pod web-b: x", since, since
	again.LastTransitionTime = since
	recovered.Status, recovered.Reason, recovered.Message = corev1.ConditionFalse, "Recovered", ""
	update.Type = v1alpha1.CloneSetConditionFailedUpdate
	refused.Type, refused.Reason = v1alpha1.CloneSetConditionFailedUpdate, reasonInPlace
	foreign, cleared := update, update
	foreign.Reason, foreign.LastTransitionTime, foreign.LastUpdateTime = "", since, since
	cleared.Status, cleared.Reason, cleared.Message = corev1.ConditionFalse, "Recovered", ""
	for name, test := range map[string]struct {
		before   conditions
		failures []planning.Failure
		want     conditions
	}{
		"no failure":             {},
		"create":                 {nil, []planning.Failure{{Object: "pod web-a", Err: quota}, {Object: "pod web-b", Err: quota}}, conditions{failing}},
		"again":                  {conditions{before}, []planning.Failure{{Object: "pod web-a", Err: quota}}, conditions{again}},
		"recovered":              {conditions{before}, nil, conditions{recovered}},
		"patch":                  {nil, []planning.Failure{{Update: true, Object: "pod web-a", Err: quota}}, conditions{update}},
		"a refused update stays": {conditions{refused}, nil, conditions{refused}},
		"of OpenKruise":          {conditions{foreign}, nil, conditions{cleared}},
	} {
		t.Run(name, func(t *testing.T) {
			status := &v1alpha1.CloneSetStatus{Conditions: test.before}
			kind := Set(false)
			kind.Failed(status, test.failures, now())
			expect.Equal(t, "conditions", test.want, status.Conditions)
		})
	}
}

// TestMessagesDoNotDependOnTheOrderOfPods reads the pods in both orders: the cache returns them in any.
func TestMessagesDoNotDependOnTheOrderOfPods(t *testing.T) {
	for name, f := range map[string]*fixture{
		"deleted pods": newFixture(t, 0),
		"pods that cannot be updated": newFixture(t, 2, func(set *v1alpha1.CloneSet) {
			set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
			set.Spec.Template.Spec.HostNetwork = true
		}),
	} {
		t.Run(name, func(t *testing.T) {
			f.pod("a old, b old")
			f.pods[0].Status.Conditions[0].LastTransitionTime = ago(2 * time.Hour)
			first := f.plan(t)
			slices.Reverse(f.pods)
			f.pods[0].Status.Conditions[0].LastTransitionTime = ago(3 * time.Hour)
			second := f.plan(t)
			if len(first.Events) == 0 {
				t.Fatal("no event")
			}
			expect.Equal(t, "events (-first +second)", first.Events, second.Events)
			expect.Equal(t, "conditions (-first +second)", first.Status.Conditions, second.Status.Conditions)
		})
	}
}

func TestEvents(t *testing.T) {
	f := newFixture(t, 4, inPlace, unavailable(number(4))).pod("a old, b old, c failed, d failed")
	f.pods[2].Status.Reason, f.pods[3].Status.Reason = "Evicted", "%s"
	var got []string
	out := f.plan(t)
	for i := range out.Events {
		if out.Events[i].Reason == "SuccessfulCreate" {
			continue // Names of new pods are random.
		}
		got = append(got, out.Events[i].Type+" "+out.Events[i].Reason+": "+out.Events[i].Message())
	}
	want := []string{
		"Warning PodEnded: Pod web-c has ended: Evicted. It is deleted.", "Warning PodEnded: Pod web-d has ended: Failed. It is deleted.",
		"Normal SuccessfulUpdatePodInPlace: Started to update 2 pods in place to revision " + f.new.Name + ": web-a, web-b.",
		"Normal SuccessfulDelete: Deleted 2 pods: web-c, web-d.",
	}
	expect.Equal(t, "events", want, got)
}

func TestOverdueDeletionIsReported(t *testing.T) {
	f := newFixture(t, 2, withClaims).pod("a").claim("a").pod("b terminating").claim("b")
	f.pod("without terminating")
	deleted := func(d time.Duration) {
		at := ago(d)
		f.pods[1].DeletionTimestamp, f.pods[2].DeletionTimestamp = &at, &at
		f.pods[1].Spec.NodeName = "lost"
	}
	deleted(4 * time.Minute)
	out := f.plan(t)
	if len(out.Status.Conditions)+len(out.StatusEvents) != 0 || out.RequeueAfter != time.Minute {
		t.Errorf("conditions %+v, events %+v, next step after %s, want one after a minute",
			out.Status.Conditions, out.StatusEvents, out.RequeueAfter)
	}
	deleted(5 * time.Minute)
	out = f.plan(t)
	const message = "Pods are still terminating 5 minutes after their grace period, and new pods wait for their names or claims: " +
		"web-b on node lost. If their node is lost, delete its Node object or add the taint node.kubernetes.io/out-of-service."
	want := []v1alpha1.CloneSetCondition{{
		Type: "DeletionOverdue", Status: corev1.ConditionTrue, Reason: "PodsStillTerminating", Message: message, LastTransitionTime: ago(0), LastUpdateTime: ago(0),
	}}
	expect.Equal(t, "conditions", want, out.Status.Conditions)
	if len(out.StatusEvents) != 1 || out.StatusEvents[0].Message() != message {
		t.Errorf("events %+v, want one with the message", out.StatusEvents)
	}
	f.set.Status = out.Status
	if out = f.plan(t); len(out.StatusEvents) > 0 || !cmp.Equal(f.set.Status, out.Status) {
		t.Errorf("events %+v, status %+v after the condition is set, want no change", out.StatusEvents, out.Status)
	}
	f.pods = f.pods[:1]
	if out = f.plan(t); out.Status.Conditions[0].Status != corev1.ConditionFalse || len(out.StatusEvents) > 0 {
		t.Errorf("conditions %+v after the pod is gone, want False", out.Status.Conditions)
	}
}
