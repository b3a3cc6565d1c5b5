// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/expect"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	deleteKey = `{"userAgent":"Lifecycle","key":"preDeleteHook"}`
	updateKey = `{"userAgent":"Lifecycle","key":"preUpdateHook"}`
	otherKey  = `{"userAgent":"ContainerRecreateRequest","key":"x"}`
)

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
	planning.AddGate(&p.Spec, pub.KruisePodReadyConditionType)
	change(p)
	return p
}

func in(state pub.LifecycleStateType, message string, status corev1.ConditionStatus) *corev1.Pod {
	return pod(func(p *corev1.Pod) {
		p.Labels[pub.LifecycleStateKey] = string(state)
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: pub.KruisePodReadyConditionType, Status: status, Message: message},
		}
	})
}

func marking() *pub.Lifecycle {
	hook := func() *pub.LifecycleHook {
		return &pub.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}, MarkPodNotReady: true}
	}
	return &pub.Lifecycle{PreDelete: hook(), InPlaceUpdate: hook()}
}

func TestHandlers(t *testing.T) {
	hook := &pub.LifecycleHook{LabelsHandler: map[string]string{"a": "1", "b": ""}, FinalizersHandler: []string{"x/y"}}
	for name, test := range map[string]struct {
		hook           *pub.LifecycleHook
		labels         map[string]string
		finalizers     []string
		held, restored bool
	}{
		"no hook":          {nil, map[string]string{"a": "1"}, nil, false, true},
		"no handler":       {hook, nil, nil, false, false},
		"label":            {hook, map[string]string{"a": "1"}, nil, true, false},
		"other value":      {hook, map[string]string{"a": "2"}, nil, false, false},
		"empty value":      {hook, map[string]string{"b": ""}, nil, true, false},
		"finalizer":        {hook, nil, []string{"x/y", "z"}, true, false},
		"other finalizer":  {hook, nil, []string{"z"}, false, false},
		"all":              {hook, map[string]string{"a": "1", "b": ""}, []string{"x/y"}, true, true},
		"one label misses": {hook, map[string]string{"a": "1"}, []string{"x/y"}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: test.labels, Finalizers: test.finalizers}}
			expect.Equal(t, "Held", test.held, lifecycle.Held(test.hook, p))
			expect.Equal(t, "Restored", test.restored, lifecycle.Restored(test.hook, p))
		})
	}
}

func TestEnter(t *testing.T) {
	const (
		normal, preparingDelete = pub.LifecycleStateNormal, pub.LifecycleStatePreparingDelete
		preparingUpdate         = pub.LifecycleStatePreparingUpdate
		updating, updated       = pub.LifecycleStateUpdating, pub.LifecycleStateUpdated
	)
	quiet := marking()
	quiet.PreDelete.MarkPodNotReady, quiet.InPlaceUpdate.MarkPodNotReady = false, false
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		state pub.LifecycleStateType
		hooks *pub.Lifecycle
		// message and status are of KruisePodReady, empty if it is not written.
		message string
		status  corev1.ConditionStatus
		label   bool
		ready   bool
	}{
		"first condition":              {pod(func(p *corev1.Pod) { p.Labels[pub.LifecycleStateKey] = "Normal" }), normal, &pub.Lifecycle{}, "", "True", false, false},
		"no gate":                      {&corev1.Pod{}, preparingDelete, marking(), "", "", true, false},
		"nothing changes":              {in(normal, "", "True"), normal, marking(), "", "", false, false},
		"before deletion":              {in(normal, "", "True"), preparingDelete, marking(), "[" + deleteKey + "]", "False", true, true},
		"before deletion, not marking": {in(normal, "", "True"), preparingDelete, quiet, "", "", true, false},
		"before update":                {in(normal, "[]", "True"), preparingUpdate, marking(), "[" + updateKey + "]", "False", true, true},
		"update starts":                {in(preparingUpdate, "["+updateKey+"]", "False"), updating, marking(), "", "", true, false},
		"update ends":                  {in(updating, "["+updateKey+"]", "False"), updated, marking(), "[]", "True", true, false},
		"back to normal from PreparingDelete": {
			in(preparingDelete, "["+deleteKey+"]", "False"), normal, marking(), "[]", "True", true, false,
		},
		"back to normal from PreparingUpdate": {
			in(preparingUpdate, "["+updateKey+"]", "False"), normal, marking(), "[]", "True", true, false,
		},
		"back to normal from Updating": {in(updating, "["+updateKey+"]", "False"), normal, marking(), "[]", "True", true, false},
		"back to normal from Updated":  {in(updated, "["+updateKey+"]", "False"), normal, marking(), "[]", "True", true, false},
		"deletion during an update": {
			in(updating, "["+updateKey+"]", "False"), preparingDelete, marking(), "[" + deleteKey + "]", "False", true, true,
		},
		"hook removed from the set": {
			in(preparingDelete, "["+deleteKey+"]", "False"), preparingDelete, &pub.Lifecycle{}, "[]", "True", false, false,
		},
		"crash before the label": {in(normal, "["+deleteKey+"]", "False"), preparingDelete, marking(), "", "", true, false},
		"reasons of others are kept": {
			in(preparingDelete, "["+otherKey+","+deleteKey+"]", "False"), normal, marking(), "[" + otherKey + "]", "False", true, true,
		},
		"added to the reasons of others": {
			in(normal, "["+otherKey+"]", "False"), preparingDelete, marking(), "[" + otherKey + "," + deleteKey + "]", "False", true, true,
		},
		"message that is not JSON": {in(normal, "x", "False"), normal, marking(), "[]", "True", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			patch := lifecycle.Enter(test.pod, test.state, test.hooks, now)
			if patch == nil {
				patch = &planning.PodPatch{}
			}
			var got corev1.PodCondition
			ready := false
			for _, c := range patch.Conditions {
				if c.Type == pub.KruisePodReadyConditionType {
					got = c
				}
				ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse
			}
			if got.Message != test.message || got.Status != test.status {
				t.Errorf("condition %s %s, want %s %s", got.Status, got.Message, test.status, test.message)
			}
			expect.Equal(t, "Ready becomes False", test.ready, ready)
			label := patch.Labels[pub.LifecycleStateKey]
			if (label != nil) != test.label || label != nil && *label != string(test.state) {
				t.Errorf("labels %v, want the state: %v", patch.Labels, test.label)
			}
			if timestamp := patch.Annotations[pub.LifecycleTimestampKey]; test.label &&
				(timestamp == nil || *timestamp != "2026-11-21T12:00:00Z") {
				t.Errorf("annotations %v, want the time", patch.Annotations)
			}
		})
	}
}

// TestLeave looks at pods that somebody else than the set deletes.
func TestLeave(t *testing.T) {
	finalizer := &pub.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}, FinalizersHandler: []string{"x/y"}}
	for name, test := range map[string]struct {
		hook        *pub.LifecycleHook
		finalizers  []string
		state       pub.LifecycleStateType
		terminating bool
		want        bool
	}{
		"a finalizer of the hook":     {finalizer, []string{"x/y", "z"}, pub.LifecycleStateNormal, true, true},
		"while the pod is updated":    {finalizer, []string{"x/y"}, pub.LifecycleStateUpdating, true, true},
		"the pod is not terminating":  {finalizer, []string{"x/y"}, pub.LifecycleStateNormal, false, false},
		"the state is there":          {finalizer, []string{"x/y"}, pub.LifecycleStatePreparingDelete, true, false},
		"another finalizer":           {finalizer, []string{"z"}, pub.LifecycleStateNormal, true, false},
		"a label does not keep a pod": {marking().PreDelete, nil, pub.LifecycleStateNormal, true, false},
		"no hook":                     {nil, []string{"x/y"}, pub.LifecycleStateNormal, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(func(p *corev1.Pod) {
				p.Labels = map[string]string{"hook": "on", pub.LifecycleStateKey: string(test.state)}
				p.Finalizers = test.finalizers
				if test.terminating {
					p.DeletionTimestamp = new(metav1.NewTime(now))
				}
			})
			patch := lifecycle.PrepareTerminating(p, &pub.Lifecycle{PreDelete: test.hook}, now)
			if (patch != nil) != test.want {
				t.Fatalf("patch %+v, want one: %t", patch, test.want)
			}
			if state := pub.LifecycleStatePreparingDelete; patch != nil && *patch.Labels[pub.LifecycleStateKey] != string(state) {
				t.Errorf("labels %v, want the state %s", patch.Labels, state)
			}
		})
	}
}

func TestTransitionTimeChangesWithTheStatusOnly(t *testing.T) {
	p := in(pub.LifecycleStateNormal, "["+otherKey+"]", corev1.ConditionFalse)
	old := metav1.NewTime(now.Add(-time.Hour))
	p.Status.Conditions[1].LastTransitionTime = old
	patch := lifecycle.Enter(p, pub.LifecycleStatePreparingDelete, marking(), now)
	if got := patch.Conditions[0].LastTransitionTime; !got.Equal(&old) {
		t.Errorf("LastTransitionTime = %v, want %v", got, old)
	}
}

func TestGateOfNewPods(t *testing.T) {
	for name, test := range map[string]struct {
		hooks *pub.Lifecycle
		want  bool
	}{
		"no hooks":       {&pub.Lifecycle{}, false},
		"hooks":          {&pub.Lifecycle{PreDelete: &pub.LifecycleHook{}}, false},
		"update marks":   {&pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{MarkPodNotReady: true}}, true},
		"deletion marks": {&pub.Lifecycle{PreDelete: &pub.LifecycleHook{MarkPodNotReady: true}}, true},
	} {
		created := &corev1.Pod{}
		lifecycle.Create(created, test.hooks, now)
		expect.Equal(t, name+": readiness gate", test.want, planning.HasGate(created, pub.KruisePodReadyConditionType))
	}
}

// FuzzStates walks through states with crashes between the writes of a patch, with hooks that are
// edited, and with reasons that others add. In Normal, no hook keeps the pod from being ready.
func FuzzStates(f *testing.F) {
	f.Add([]byte{4, 0, 1, 2, 3, 0})
	f.Add([]byte{20, 0, 33, 18, 3, 64, 0, 4, 130, 0})
	f.Fuzz(func(t *testing.T, steps []byte) {
		states := []pub.LifecycleStateType{
			pub.LifecycleStateNormal, pub.LifecycleStatePreparingUpdate, pub.LifecycleStateUpdating,
			pub.LifecycleStateUpdated, pub.LifecycleStatePreparingDelete,
		}
		p := in(pub.LifecycleStateNormal, "", corev1.ConditionTrue)
		for i, step := range steps {
			hooks := marking()
			hooks.PreDelete.MarkPodNotReady = step&32 == 0
			hooks.InPlaceUpdate.MarkPodNotReady = step&64 == 0
			if step&128 != 0 {
				hooks = &pub.Lifecycle{}
			}
			patch := lifecycle.Enter(p, states[step%8%5], hooks, now)
			apply(p, patch, step&16 == 0)
			apply(p, lifecycle.Refresh(p, hooks, now), true)
			if again := lifecycle.Refresh(p, hooks, now); again != nil {
				t.Fatalf("step %d: a second write: %v", i, again)
			}
			c := planning.Condition(p, pub.KruisePodReadyConditionType)
			if lifecycle.State(p) == pub.LifecycleStateNormal && strings.Contains(c.Message, "Lifecycle") {
				t.Fatalf("step %d: a Normal pod is not ready: %s", i, c.Message)
			}
			if ready := c.Message == "" || c.Message == "[]"; ready != (c.Status == corev1.ConditionTrue) {
				t.Fatalf("step %d: status %s with message %s", i, c.Status, c.Message)
			}
			if !slices.Contains([]string{"", "[]"}, c.Message) && !json.Valid([]byte(c.Message)) {
				t.Fatalf("step %d: message %q", i, c.Message)
			}
		}
	})
}

// apply executes the writes of a patch in order, the second only if the program survives the first.
func apply(p *corev1.Pod, patch *planning.PodPatch, survives bool) {
	if patch == nil {
		return
	}
	for _, c := range patch.Conditions {
		i := slices.IndexFunc(p.Status.Conditions, func(o corev1.PodCondition) bool { return o.Type == c.Type })
		if i < 0 {
			p.Status.Conditions = append(p.Status.Conditions, c)
			continue
		}
		p.Status.Conditions[i] = c
	}
	for key, value := range patch.Labels {
		if survives {
			p.Labels[key] = *value
		}
	}
}

func TestMerge(t *testing.T) {
	p := in(pub.LifecycleStateNormal, "", corev1.ConditionTrue)
	one, two := "1", "2"
	a := &planning.PodPatch{Pod: p, Reason: "A", Labels: map[string]*string{"x": &one, "y": &one}}
	b := &planning.PodPatch{Pod: p, Reason: "B", Labels: map[string]*string{"y": &two}, Controller: planning.Release}
	got := a.Merge(b)
	want := &planning.PodPatch{
		Pod: p, Reason: "A", Labels: map[string]*string{"x": &one, "y": &two}, Controller: planning.Release,
	}
	expect.Equal(t, "merged patch", want, got)
	if *a.Labels["y"] != "1" {
		t.Error("Merge changes its receiver")
	}
	var none *planning.PodPatch
	if none.Merge(a) != a || a.Merge(nil) != a || none.Merge(nil) != nil {
		t.Error("Merge with nil does not return the other")
	}
}
