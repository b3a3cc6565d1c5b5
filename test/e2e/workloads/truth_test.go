// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// holdLabel is the label of the preDelete hook.
const holdLabel = "example.com/hold"

// held is a CloneSet with three pods, which a hook holds.
type held struct {
	*suite
	set *v1alpha1.CloneSet
	// names are the pods at the start.
	names []string
}

func newHeld(t *testing.T, exclude bool, changes ...func(*v1alpha1.CloneSet)) *held {
	t.Helper()
	h := &held{suite: newSuite(t)}
	h.set = newCloneSet("held", 3, append(changes, func(set *v1alpha1.CloneSet) {
		set.Spec.Template.Labels[holdLabel] = "true"
		set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{holdLabel: "true"}}}
		if exclude {
			set.Labels = map[string]string{v1alpha1.CloneSetScalingExcludePreparingDeleteKey: "true"}
		}
	})...)
	h.Create(h.set)
	h.names = h.settled("held", 3)
	return h
}

// scale changes the number of replicas, and the pods to delete.
func (h *held) scale(replicas int32, podsToDelete ...string) {
	h.Helper()
	patch(h.suite, h.set, func(set *v1alpha1.CloneSet) {
		*set.Spec.Replicas = replicas
		set.Spec.ScaleStrategy.PodsToDelete = podsToDelete
	})
}

// preparing waits until exactly one pod has the state PreparingDelete, and returns its name.
func (h *held) preparing() string {
	h.Helper()
	var name string
	h.Eventually("one pod is PreparingDelete", func(ctx context.Context) error {
		pods, err := h.pods(ctx, "held")
		if err != nil {
			return err
		}
		var found []string
		for _, pod := range pods {
			if inState(pub.LifecycleStatePreparingDelete)(&pod) == nil {
				found = append(found, pod.Name)
			}
		}
		if len(found) != 1 {
			return fmt.Errorf("pods in the state PreparingDelete: %v", found)
		}
		name = found[0]
		return nil
	})
	return name
}

// release removes the label of the hook.
func (h *held) release(name string) {
	h.Helper()
	patch(h.suite, h.get(name), func(pod *corev1.Pod) { delete(pod.Labels, holdLabel) })
}

// count expects a number of pods.
func (h *held) count(ctx context.Context, want int) error {
	pods, err := h.pods(ctx, "held")
	if err != nil {
		return err
	}
	if len(pods) != want {
		return fmt.Errorf("%d pods, want %d: %v", len(pods), want, slices.Sorted(maps.Keys(pods)))
	}
	return nil
}

// replaced checks that the pod is replaced at once, or not before the hook has released it, and
// that three pods remain.
func (h *held) replaced(a string, atOnce bool) {
	h.Helper()
	if atOnce {
		h.Eventually("a pod is created while the hook holds another", func(ctx context.Context) error { return h.count(ctx, 4) })
		h.Never(time.Second, "the held pod is deleted, or more pods are created", func(ctx context.Context) error { return h.count(ctx, 4) })
	} else {
		h.Never(2*time.Second, "a pod is created while the hook holds another", func(ctx context.Context) error { return h.count(ctx, 3) })
	}
	h.release(a)
	h.Eventually("the released pod is deleted, and three others are ready", func(ctx context.Context) error {
		pods, err := h.pods(ctx, "held")
		if err != nil {
			return err
		}
		if _, still := pods[a]; still || len(pods) != 3 {
			return fmt.Errorf("pods %v", slices.Sorted(maps.Keys(pods)))
		}
		for _, pod := range pods {
			if err := ready(&pod); err != nil {
				return err
			}
		}
		return nil
	})
	if got := h.settled("held", 3); slices.Contains(got, a) {
		h.Errorf("pods %v, want others than %s", got, a)
	}
}

// TestPreparingDelete covers the table of docs/cloneset.md: what happens to a pod A that the hook
// holds when the number of replicas returns to what it was.
func TestPreparingDelete(t *testing.T) {
	t.Parallel()
	for _, exclude := range []bool{false, true} {
		column := map[bool]string{false: "default", true: "with the exclude label"}[exclude]
		t.Run("scaled down and up again/"+column, func(t *testing.T) {
			t.Parallel()
			h := newHeld(t, exclude)
			h.scale(2)
			a := h.preparing()
			h.scale(3)
			if got := h.settled("held", 3, inState(pub.LifecycleStateNormal)); !slices.Equal(got, h.names) {
				t.Errorf("pods %v, want %v: %s returns to Normal", got, h.names, a)
			}
			h.Never(time.Second, "pods change", func(ctx context.Context) error { return h.count(ctx, 3) })
		})
		t.Run("scaled down with A named and up again/"+column, func(t *testing.T) {
			t.Parallel()
			h := newHeld(t, exclude)
			a := h.names[1]
			h.scale(2, a)
			if got := h.preparing(); got != a {
				t.Fatalf("%s is PreparingDelete, want %s", got, a)
			}
			h.scale(3, a)
			h.replaced(a, exclude)
		})
		t.Run("A named at a constant number of replicas/"+column, func(t *testing.T) {
			t.Parallel()
			h := newHeld(t, exclude)
			a := h.names[1]
			h.scale(3, a)
			if got := h.preparing(); got != a {
				t.Fatalf("%s is PreparingDelete, want %s", got, a)
			}
			h.replaced(a, exclude)
		})
	}
}

// TestPreparingDeleteEnds checks that a released pod is deleted although scaleStrategy allows one
// unavailable pod, and the exclude label is set. Upstream never deletes it.
func TestPreparingDeleteEnds(t *testing.T) {
	t.Parallel()
	h := newHeld(t, true, func(set *v1alpha1.CloneSet) {
		one := v1alpha1.CloneSetScaleStrategy{MaxUnavailable: number(1)}
		set.Spec.ScaleStrategy = one
	})
	a := h.names[0]
	patch(h.suite, h.set, func(set *v1alpha1.CloneSet) { set.Spec.ScaleStrategy.PodsToDelete = []string{a} })
	h.replaced(a, true)
}
