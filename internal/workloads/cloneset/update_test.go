// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/template"
	"github.com/seamark-dev/seamark/test/expect"
)

// hooked adds an inPlaceUpdate hook that holds pods with the label match, and updates in place.
func hooked(set *v1alpha1.CloneSet) {
	inPlace(set)
	set.Spec.Lifecycle = &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{match: "on"}}}
}

func onDelete(set *v1alpha1.CloneSet) {
	set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteCloneSetUpdateStrategyType
}

// preNormal adds a preNormal hook with the label match.
func preNormal(set *v1alpha1.CloneSet) {
	set.Spec.Lifecycle = &pub.Lifecycle{PreNormal: &pub.LifecycleHook{LabelsHandler: map[string]string{match: "on"}}}
}

func inPlaceOnly(set *v1alpha1.CloneSet) {
	set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
}

// env makes the update impossible in place.
func env(set *v1alpha1.CloneSet) {
	set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: "1"}}
}

// labelled makes the update one of labels.
func labelled(set *v1alpha1.CloneSet) {
	set.Spec.Template.Spec.Containers[0].Image, set.Spec.Template.Labels["tier"] = "app:1", "a"
}

func byRole(set *v1alpha1.CloneSet) {
	set.Spec.UpdateStrategy.PriorityStrategy = &pub.UpdatePriorityStrategy{
		OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "role"}},
	}
}

func TestUpdate(t *testing.T) {
	one := unavailable(number(1))
	runCases(t, map[string]planCase{
		"recreates as many as maxUnavailable permits": {
			replicas: 3, change: unavailable(number(2)), pods: "a old, b old, c old",
			want: []string{"+new", "+new", "-a Update", "-b Update"},
		},
		"pods that are not ready first, as many as maxUnavailable": {
			replicas: 3, change: one, pods: "a old, b old notReady, c old notReady", want: []string{"+new", "-b Update"},
		},
		"more pods are not ready than maxUnavailable: only that many restart": {
			replicas: 3, change: unavailable(number(2)), pods: "a old notReady, b old notReady, c old notReady",
			want: []string{"+new", "+new", "-a Update", "-b Update"},
		},
		"a pod that is not ready waits for one that starts": {replicas: 3, change: one, pods: "a old notReady, b old, c starting"},
		"a pod that does not become ready for long stops no others": {
			replicas: 3, change: one, pods: "a old notReady, b old, c notReady", want: []string{"+new", "-a Update"},
		},
		"a pod that is not ready waits for no missing one": {
			replicas: 3, change: one, pods: "a old notReady, b old notReady", want: []string{"+new", "+new", "-a Update"},
		},
		"a broken pod stops the creation of others": {
			replicas: 3, change: all(one, scaleLimit(1)), pods: "a old notReady", want: []string{"+new", "-a Update"},
		},
		"a pod that is not ready with a surge and without maxUnavailable": {
			replicas: 3, change: all(unavailable(number(0)), surge(1)), pods: "a old notReady, b old, c old", want: []string{"+new", "+new", "-a Update"},
		},
		"with a partition, the priority before readiness": {
			replicas: 3, change: all(byRole, partition(2), unavailable(number(2))), pods: "a old role=, b old role=1, c old role= notReady",
			want: []string{"+new", "-b Update"},
		},
		"unavailable updated pods count":             {replicas: 3, change: one, pods: "a old, b old, c notReady"},
		"paused":                                     {replicas: 3, change: paused, pods: "a old, b old, c old"},
		"OnDelete":                                   {replicas: 3, change: onDelete, pods: "a old, b old notReady, c"},
		"OnDelete, a pod was deleted":                {replicas: 3, change: onDelete, pods: "a old, b old, c old terminating", want: []string{"+new"}},
		"OnDelete, a pod is named":                   {replicas: 3, change: all(onDelete, naming("a")), pods: "a old, b old, c old", want: []string{"+new", "-a SpecifiedDelete"}},
		"OnDelete uses no surge":                     {replicas: 3, change: all(onDelete, surge(1)), pods: "a old, b old, c old"},
		"OnDelete keeps what the partition requires": {replicas: 3, change: all(onDelete, partition(2)), pods: "a old, c", want: []string{"+old"}},
		"OnDelete withdraws an update that waits for the hook": {
			replicas: 3, change: all(hooked, onDelete), pods: "a old held PreparingUpdate, b old, c old", want: []string{"~a Normal"},
		},
		"OnDelete continues an update that has begun": {replicas: 3, change: all(hooked, onDelete), pods: "a held Updating, b old, c old", want: []string{"~a Normal"}},
		"the partition is met":                        {replicas: 3, change: partition(2), pods: "a old, b old, c"},
		"the partition permits one":                   {replicas: 3, change: all(partition(2), unavailable(number(3))), pods: "a old, b old, c old", want: []string{"+new", "-a Update"}},
		"a surge first":                               {replicas: 3, change: surge(1), pods: "a old, b old, c old", want: []string{"+new"}},
		"the surge is available":                      {replicas: 3, change: surge(1), pods: "a old, b old, c old, d", want: []string{"+new", "-a Update"}},
		"the last old pod goes with the surge":        {replicas: 3, change: surge(1), pods: "a old, b, c, d", want: []string{"-a ScaleIn"}},
		"recreated pods that a hook holds are marked": {
			replicas: 3, change: all(one, holding), pods: "a old held, b old, c old",
			want: []string{"~a PreparingDelete+specified"},
		},
		"marked pods do not return to Normal": {replicas: 3, change: all(one, holding), pods: "a old held PreparingDelete named, b old, c old"},
		"pods without the gate are recreated": {replicas: 3, change: all(one, inPlace), pods: "a old ungated, b old, c old", want: []string{"+new", "-a Update"}},
		"no more of them than maxUnavailable": {replicas: 3, change: all(one, inPlace), pods: "a old ungated, b old ungated, c notReady"},
		"they are updated in place if their containers stay in service": {
			replicas: 3, change: all(one, inPlace, inService), pods: "a old ungated, b old, c old", want: []string{"~a Updating"},
		},
		"they wait with InPlaceOnly": {replicas: 3, change: all(one, inPlaceOnly), pods: "a old ungated, b, c"},
		"they get labels in place": {
			replicas: 3, change: all(one, inPlaceOnly, labelled), pods: "a old ungated, b old ungated, c old ungated", want: []string{"~a Updating"},
		},
		"in place":                            {replicas: 3, change: all(one, inPlace), pods: "a old, b old, c old", want: []string{"~a Updating"}},
		"in place waits for the hook":         {replicas: 3, change: all(one, hooked), pods: "a old held, b old, c old", want: []string{"~a PreparingUpdate"}},
		"held":                                {replicas: 3, change: all(one, hooked), pods: "a old held PreparingUpdate, b old, c old"},
		"released":                            {replicas: 3, change: all(one, hooked), pods: "a old PreparingUpdate, b old, c old", want: []string{"~a Updating"}},
		"done, the hook is not restored":      {replicas: 3, change: all(one, hooked), pods: "a Updating, b old, c old", want: []string{"~a Updated"}},
		"updated, the hook is not restored":   {replicas: 3, change: all(one, hooked), pods: "a Updated, b old, c old"},
		"updated, the hook is restored":       {replicas: 3, change: all(one, hooked), pods: "a held Updated, b old, c old", want: []string{"~a Normal"}},
		"the handler of preNormal is missing": {replicas: 3, change: all(one, preNormal), pods: "a old, b old, c PreparingNormal"},
		"the handler of preNormal is there":   {replicas: 3, change: all(one, preNormal), pods: "a old, b old, c held PreparingNormal", want: []string{"~c Normal"}},
		"there is no hook preNormal":          {replicas: 3, change: one, pods: "a old, b old, c PreparingNormal", want: []string{"~c Normal"}},
		"pods without the handler of preNormal, as far as others serve": {
			replicas: 3, change: all(one, inPlace, preNormal), pods: "a old PreparingNormal, b old PreparingNormal, c", want: []string{"~a Updating"},
		},
		"a pod in transition is pinned when the labels change": {
			replicas: 3, change: all(one, hooked, byRole), pods: "a old PreparingUpdate role=x-1, b old role=x-9, c old role=x-8", want: []string{"~a Updating"},
		},
		"other changes recreate":                     {replicas: 3, change: all(one, inPlace, env), pods: "a old, b old, c old", want: []string{"+new", "-a Update"}},
		"other changes are refused with InPlaceOnly": {replicas: 3, change: all(one, inPlaceOnly, env), pods: "a old, b old, c old"},
		"no surge if all pods are updated in place":  {replicas: 3, change: all(surge(1), inPlace, one), pods: "a old, b old, c old", want: []string{"~a Updating"}},
		"a surge in place without maxUnavailable":    {replicas: 3, change: all(surge(1), inPlace, unavailable(number(0))), pods: "a old, b old, c old", want: []string{"+new"}},
		"a surge if pods are recreated":              {replicas: 3, change: all(surge(1), inPlace, env, one), pods: "a old, b old, c old", want: []string{"+new", "+new", "-a Update"}},
		"refused with a surge":                       {replicas: 3, change: all(surge(1), inPlaceOnly, env), pods: "a old, b old, c old"},
		"a pod that waits for the hook returns when the change is refused": {
			replicas: 3, change: all(one, hooked, inPlaceOnly, env), pods: "a old held PreparingUpdate, b old, c old", want: []string{"~a Normal"},
		},
		"a pod of an unknown revision is recreated": {
			replicas: 3, change: all(one, inPlace), pods: "a controller-revision-hash=web-gone, b, c", want: []string{"+new", "-a Update"},
		},
		"named deletions and updates share maxUnavailable": {
			replicas: 3, change: all(unavailable(number(2)), naming("c")), pods: "a old, b old, c old",
			want: []string{"+new", "+new", "-a Update", "-c SpecifiedDelete"},
		},
		"a state of another version of OpenKruise": {replicas: 3, change: one, pods: "a Other, b, c", want: []string{"~a Normal"}},
	})
}

func TestUpdateWaitsForTheLabelOfAMarker(t *testing.T) {
	f := newFixture(t, 3, unavailable(number(1)), byRole)
	f.markers = planning.Markers{Labels: sets.New("role")}
	f.pod("a old role=x-1, b old role=x-2, c old ready=10s")
	if out := f.wantSteps(t); out.RequeueAfter != 20*time.Second {
		t.Errorf("requeue after %s, want 20s", out.RequeueAfter)
	}
	f.pods[2].Status.Conditions[0].LastTransitionTime = ago(30 * time.Second)
	f.wantSteps(t, "+new", "-b Update")
}

func TestPausedUpdateDoesNotWaitForLabels(t *testing.T) {
	f := newFixture(t, 1, byRole, paused)
	f.markers = planning.Markers{Labels: sets.New("role")}
	f.pod("a old ready=0s")
	if out := f.wantSteps(t); out.RequeueAfter != 0 {
		t.Errorf("requeue after %s, want none", out.RequeueAfter)
	}
}

func TestRefusedUpdateIsReportedOnce(t *testing.T) {
	f := newFixture(t, 1, inPlaceOnly, env)
	f.pod("a old")
	out := f.plan(t)
	if len(out.Status.Conditions) != 1 || out.Status.Conditions[0].Type != v1alpha1.CloneSetConditionFailedUpdate ||
		!strings.Contains(out.Status.Conditions[0].Message, "web-a") || len(out.Events) != 1 {
		t.Errorf("conditions %+v and events %+v, want FailedUpdate that names the pod", out.Status.Conditions, out.Events)
	}
	f.set.Status = out.Status
	if out := f.plan(t); len(out.Events) != 0 {
		t.Errorf("events %+v in the second step, want none", out.Events)
	}
}

func TestInPlaceUpdateChangesRevisionStateAndImageInOneWrite(t *testing.T) {
	f := newFixture(t, 1, inPlace, unavailable(number(1)))
	f.pod("a old")
	out := f.wantSteps(t, "~a Updating")
	patch := out.Patches[0]
	if patch.Images["main"] != "app:2" || *patch.Labels[appsv1.ControllerRevisionHashLabelKey] != f.new.Name {
		t.Errorf("patch %+v, want the new image and the new revision", patch)
	}
}

// BenchmarkPlan plans a step of a set with 3,000 pods.
func BenchmarkPlan(b *testing.B) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.CloneSet)
		pods   func(f *fixture, i int) func(*corev1.Pod)
	}{
		"at rest": {change: inPlace, pods: func(f *fixture, _ int) func(*corev1.Pod) { return f.ofRevision(f.new) }},
		"in place": {
			change: all(inPlace, unavailable(number(30))),
			pods: func(f *fixture, i int) func(*corev1.Pod) {
				return f.ofRevision([]*appsv1.ControllerRevision{f.old, f.new}[i%2])
			},
		},
		"in place only, impossible": {
			change: func(set *v1alpha1.CloneSet) {
				set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
				set.Spec.Template.Spec.HostNetwork = true
			},
			pods: func(f *fixture, _ int) func(*corev1.Pod) { return f.ofRevision(f.old) },
		},
		"recreate": {
			change: unavailable(number(30)),
			pods: func(f *fixture, i int) func(*corev1.Pod) {
				return f.ofRevision([]*appsv1.ControllerRevision{f.old, f.new}[i%2])
			},
		},
		"scale in": {
			change: func(set *v1alpha1.CloneSet) { set.Spec.Replicas = pointer(int32(1500)) },
			pods:   func(f *fixture, _ int) func(*corev1.Pod) { return f.ofRevision(f.new) },
		},
		"scale out": {
			change: func(set *v1alpha1.CloneSet) { set.Spec.Replicas = pointer(int32(6000)) },
			pods:   func(f *fixture, _ int) func(*corev1.Pod) { return f.ofRevision(f.new) },
		},
	} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, 3000, test.change)
			for i := range 3000 {
				f.pod(fmt.Sprintf("%05d", i), test.pods(f, i))
			}
			for in := f.input(); b.Loop(); {
				if _, err := Plan(f.set, in, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A client that writes its whole template removes the defaults that OpenKruise's webhook stored.
func TestDefaultsOfTheTemplateChangeNoPod(t *testing.T) {
	for name, test := range map[string]struct {
		strategy func(*v1alpha1.CloneSet)
		image    string
		want     []string
	}{
		"nothing else changes":           {strategy: func(*v1alpha1.CloneSet) {}, image: "app:2"},
		"in place, nothing else changes": {strategy: inPlace, image: "app:2"},
		"in place, new image":            {strategy: inPlace, image: "app:3", want: []string{"~a Updating"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1, test.strategy, unavailable(number(1)))
			short := f.set.Spec.Template
			f.set.Spec.Template = *template.WithDefaults(&short)
			result, err := revision.Plan(revision.Owner{Object: f.set, Kind: Kind(), Template: &f.set.Spec.Template}, nil, 10, nil)
			expect.NoError(t, err)
			f.old, f.new = result.Update, result.Update
			f.set.Status.CurrentRevision = f.new.Name
			f.pod("a", f.ofRevision(f.new))
			f.set.Spec.Template = short
			f.set.Spec.Template.Spec.Containers[0].Image = test.image
			f.wantSteps(t, test.want...)
		})
	}
}

// The program ended after it made the pod not ready, and before it changed the image: the next step
// continues with the image. If it made the pod ready first, a program that ends after every write
// would never finish.
func TestInterruptedUpdateContinues(t *testing.T) {
	interrupted := func(p *corev1.Pod) {
		planning.Condition(p, pub.InPlaceUpdateReady).Status = corev1.ConditionFalse
	}
	for name, test := range map[string]struct {
		paused     bool
		image      string
		conditions int
	}{
		"continues": {false, "app:2", 0},
		"paused":    {true, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, func(set *v1alpha1.CloneSet) {
				set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
				set.Spec.UpdateStrategy.Paused = test.paused
			})
			f.pod("a old").pod("b old notReady", interrupted)
			out := f.plan(t)
			if len(out.Patches) != 1 || out.Patches[0].Pod.Name != "web-b" {
				t.Fatalf("patches %v, want one of web-b", out.Patches)
			}
			patch := out.Patches[0]
			if patch.Images["main"] != test.image || len(patch.Conditions) != test.conditions {
				t.Errorf("images %v and conditions %v, want image %q and %d conditions",
					patch.Images, patch.Conditions, test.image, test.conditions)
			}
		})
	}
}

// TestUpdatesInServiceCount has a pod whose container the kubelet has not restarted yet. It is ready, because its update does not take
// it out of service, and a hook has released another pod.
func TestUpdatesInServiceCount(t *testing.T) {
	f := newFixture(t, 3, all(hooked, unavailable(number(1)))).pod("a Updating, b old PreparingUpdate, c old held")
	a := f.pods[0]
	a.Status.ContainerStatuses[0].Image, a.Status.ContainerStatuses[0].ImageID = "app:1", "1"
	a.Annotations[pub.InPlaceUpdateStateKey] = `{"revision":"` + f.new.Name + `","updateTimestamp":"2026-01-01T11:59:58Z","updateImages":true,` +
		`"lastContainerStatuses":{"main":{"imageID":"1","image":"app:1"}}}`
	f.wantSteps(t)
	f.set.Spec.UpdateStrategy.MaxUnavailable = number(2)
	f.wantSteps(t, "~b Updating")
}

func TestRefusedResizes(t *testing.T) {
	state, err := json.Marshal(pub.InPlaceUpdateState{UpdateResources: true})
	expect.NoError(t, err)
	infeasible := func(p *corev1.Pod) {
		p.Annotations[pub.InPlaceUpdateStateKey] = string(state)
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, Message: "no room",
		})
	}
	one := unavailable(number(1))
	for name, test := range map[string]struct {
		change func(*v1alpha1.CloneSet)
		others string
		want   []string
	}{
		"the pod is recreated":           {all(one, inPlace), "a, b", []string{"+new", "-c Update"}},
		"not while another pod is down":  {all(one, inPlace), "a notReady, b", nil},
		"not while the set is paused":    {all(one, inPlace, paused), "a, b", nil},
		"not below the partition":        {all(one, inPlace, partition(3)), "a, b", nil},
		"not with OnDelete":              {all(one, onDelete), "a, b", nil},
		"not with InPlaceOnly":           {all(one, inPlaceOnly), "a, b", nil},
		"a pod of the surge comes first": {all(inPlace, surge(1)), "a, b", []string{"+new"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 3, test.change)
			f.pod(test.others).pod("c Updating", infeasible)
			out := f.wantSteps(t, test.want...)
			if c := out.Status.Conditions; len(c) != 1 || c[0].Reason != "ResizeStuck" || len(out.StatusEvents) != 1 {
				t.Errorf("conditions %+v and events %+v, want ResizeStuck", c, out.StatusEvents)
			}
		})
	}
}

// TestStuckResizeHasOneEvent checks that neither numbers that change in the kubelet's text nor refused writes of another pod cause
// more events.
func TestStuckResizeHasOneEvent(t *testing.T) {
	state, err := json.Marshal(pub.InPlaceUpdateState{UpdateResources: true})
	expect.NoError(t, err)
	f := newFixture(t, 3, all(unavailable(number(1)), inPlace))
	f.pod("a, b").pod("c Updating", func(p *corev1.Pod) {
		p.Annotations[pub.InPlaceUpdateStateKey] = string(state)
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred,
		})
	})
	events := 0
	for i := range 10 {
		conditions := f.pods[2].Status.Conditions
		conditions[len(conditions)-1].Message = fmt.Sprintf("used: %d", i)
		out := f.plan(t)
		events += len(out.StatusEvents)
		f.set.Status = out.Status
		if i%2 == 1 {
			kind := Set(false)
			kind.Failed(&f.set.Status, []planning.Failure{{Update: true, Object: "pod a", Pod: "a", Err: errors.New("refused")}}, now())
		}
	}
	expect.Equal(t, "events in 10 steps", 1, events)
}
