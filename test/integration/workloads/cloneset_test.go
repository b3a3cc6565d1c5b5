// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/await"
)

const inMatch = "example.com/in-match"

// await waits until the pods of the set are as wanted. The function returns what is missing.
func (w *world) await(what string, set *v1alpha1.CloneSet, missing func(pods map[string]*corev1.Pod) string) {
	w.Helper()
	await.Until(w, what, func(ctx context.Context) (string, error) {
		pods, err := w.pods(ctx, set.Name)
		if err != nil {
			return "", err
		}
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return "", err
		}
		if set.Status.ObservedGeneration != set.Generation {
			return fmt.Sprintf("status of generation %d, want %d", set.Status.ObservedGeneration, set.Generation), nil
		}
		return missing(pods), nil
	})
}

// awaitState waits until the pod has the lifecycle state, and the set has so many pods.
func (w *world) awaitState(set *v1alpha1.CloneSet, name string, state pub.LifecycleStateType, total int) {
	w.Helper()
	w.await(fmt.Sprintf("%s is %s among %d pods", name, state, total), set, func(pods map[string]*corev1.Pod) string {
		switch pod := pods[name]; {
		case pod == nil:
			return "the pod does not exist"
		case pod.Labels[pub.LifecycleStateKey] != string(state):
			return "state " + pod.Labels[pub.LifecycleStateKey]
		case len(pods) != total:
			return fmt.Sprintf("%d pods", len(pods))
		}
		return ""
	})
}

// awaitGone waits until the pod does not exist, and the set has so many ready pods.
func (w *world) awaitGone(set *v1alpha1.CloneSet, name string, total int) {
	w.Helper()
	w.await(fmt.Sprintf("%s is gone and %d pods are ready", name, total), set, func(pods map[string]*corev1.Pod) string {
		if pods[name] != nil || len(pods) != total || int(set.Status.AvailableReplicas) != total {
			return fmt.Sprintf("pods %v, %d available", slices.Sorted(maps.Keys(pods)), set.Status.AvailableReplicas)
		}
		return ""
	})
}

// preparing creates a set of three pods with a preDelete hook that holds all of them. It returns the
// name of the pod that is deleted first.
func (w *world) preparing(name string, exclude bool) (*v1alpha1.CloneSet, string) {
	w.Helper()
	set := w.cloneSet(name, 3, func(set *v1alpha1.CloneSet) {
		set.Spec.Template.Labels[inMatch] = "true"
		set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{inMatch: "true"}}}
		if exclude {
			set.Labels = map[string]string{v1alpha1.CloneSetScalingExcludePreparingDeleteKey: "true"}
		}
	})
	w.settled(set, 3, "image:1")
	pods, err := w.pods(w.Context(), name)
	w.must(err)
	first := slices.Sorted(maps.Keys(pods))[0]
	w.patch(pods[first], `{"metadata":{"annotations":{%q:"-100"}}}`, corev1.PodDeletionCost)
	return set, first
}

// letGo removes the handler of the hook from the pod.
func (w *world) letGo(name string) {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	w.patch(pod, `{"metadata":{"labels":{%q:null}}}`, inMatch)
}

// TestPreparingDelete plays the truth table of PreparingDelete, row by row.
func TestPreparingDelete(t *testing.T) {
	w := newWorld(t)
	for _, exclude := range []bool{false, true} {
		suffix := map[bool]string{false: "", true: "-excluded"}[exclude]
		// While a is held, a set with the label has a replacement of a named pod.
		waiting := 3
		if exclude {
			waiting = 4
		}
		t.Run("replicas decreases and increases"+suffix, func(t *testing.T) {
			w := &world{TB: t, env: w.env, client: w.client, namespace: w.namespace}
			set, a := w.preparing("up-and-down"+suffix, exclude)
			w.patch(set, `{"spec":{"replicas":2}}`)
			w.awaitState(set, a, pub.LifecycleStatePreparingDelete, 3)
			w.patch(set, `{"spec":{"replicas":3}}`)
			w.awaitState(set, a, pub.LifecycleStateNormal, 3)
			w.patch(set, `{"spec":{"replicas":2}}`)
			w.awaitState(set, a, pub.LifecycleStatePreparingDelete, 3)
			w.letGo(a)
			w.awaitGone(set, a, 2)
		})
		t.Run("named while replicas decreases and increases"+suffix, func(t *testing.T) {
			w := &world{TB: t, env: w.env, client: w.client, namespace: w.namespace}
			set, a := w.preparing("named-up-and-down"+suffix, exclude)
			w.patch(set, `{"spec":{"replicas":2,"scaleStrategy":{"podsToDelete":[%q]}}}`, a)
			w.awaitState(set, a, pub.LifecycleStatePreparingDelete, 3)
			w.patch(set, `{"spec":{"replicas":3}}`)
			w.awaitState(set, a, pub.LifecycleStatePreparingDelete, waiting)
			w.letGo(a)
			w.awaitGone(set, a, 3)
		})
		t.Run("named at constant replicas"+suffix, func(t *testing.T) {
			w := &world{TB: t, env: w.env, client: w.client, namespace: w.namespace}
			set, a := w.preparing("named"+suffix, exclude)
			w.patch(set, `{"spec":{"scaleStrategy":{"podsToDelete":[%q]}}}`, a)
			w.awaitState(set, a, pub.LifecycleStatePreparingDelete, waiting)
			w.letGo(a)
			w.awaitGone(set, a, 3)
		})
	}
}

// progressing waits until the condition Progressing of the set has the reason.
func (w *world) progressing(set *v1alpha1.CloneSet, reason v1alpha1.CloneSetConditionReason) v1alpha1.CloneSetCondition {
	w.Helper()
	var found v1alpha1.CloneSetCondition
	w.await("Progressing is "+string(reason), set, func(map[string]*corev1.Pod) string {
		for _, c := range set.Status.Conditions {
			if found = c; c.Type == v1alpha1.CloneSetConditionTypeProgressing && c.Reason == string(reason) {
				return ""
			}
		}
		return fmt.Sprintf("conditions %+v", set.Status.Conditions)
	})
	return found
}

// TestProgressDeadline has a template whose pods do not become ready, and then another one.
func TestProgressDeadline(t *testing.T) {
	w := newWorld(t)
	set := w.cloneSet("web", 2, func(set *v1alpha1.CloneSet) {
		set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/never"}}
		set.Spec.ProgressDeadlineSeconds = new(int32(2))
	})
	begun := w.progressing(set, v1alpha1.CloneSetProgressUpdated)
	late := w.progressing(set, v1alpha1.CloneSetProgressDeadlineExceeded)
	if late.Status != corev1.ConditionFalse || late.LastUpdateTime.Sub(begun.LastUpdateTime.Time) < 2*time.Second ||
		late.Message != "CloneSet revision "+set.Status.UpdateRevision+" has timed out progressing" {
		t.Errorf("condition %+v, want False at least 2 s after %s", late, begun.LastUpdateTime)
	}
	w.patch(set, `{"spec":{"template":{"spec":{"readinessGates":null}}}}`)
	w.settled(set, 2, "image:1")
	if c := w.progressing(set, v1alpha1.CloneSetAvailable); c.Status != corev1.ConditionTrue || c.LastUpdateTime.Before(&late.LastUpdateTime) {
		t.Errorf("condition %+v, want True since %s or later", c, late.LastUpdateTime)
	}
	w.patch(set, `{"spec":{"progressDeadlineSeconds":null}}`)
	w.await("there is no condition", set, func(map[string]*corev1.Pod) string {
		if len(set.Status.Conditions) > 0 {
			return fmt.Sprintf("conditions %+v", set.Status.Conditions)
		}
		return ""
	})
}

// TestOnDelete changes the template and deletes one of two pods.
func TestOnDelete(t *testing.T) {
	w := newWorld(t)
	set := w.cloneSet("web", 2, func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteCloneSetUpdateStrategyType
	})
	w.settled(set, 2, "image:1")
	before, err := w.pods(t.Context(), "web")
	w.must(err)
	w.patch(set, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:2"}]}}}}`)
	images := func(want ...string) {
		w.await(fmt.Sprintf("the images are %v", want), set, func(pods map[string]*corev1.Pod) string {
			var got []string
			for _, pod := range pods {
				got = append(got, pod.Spec.Containers[0].Image)
			}
			if slices.Sort(got); !slices.Equal(got, want) || set.Status.AvailableReplicas != 2 {
				return fmt.Sprintf("images %v, %d available", got, set.Status.AvailableReplicas)
			}
			return ""
		})
	}
	images("image:1", "image:1")
	deleted := slices.Sorted(maps.Keys(before))[0]
	w.must(w.client.Delete(t.Context(), before[deleted]))
	images("image:1", "image:2")
	pods, err := w.pods(t.Context(), "web")
	w.must(err)
	for name, pod := range pods {
		if isNew := pod.Spec.Containers[0].Image == "image:2"; isNew != (before[name] == nil) {
			t.Errorf("pod %s has %s, which exists before the deletion: %t", name, pod.Spec.Containers[0].Image, before[name] != nil)
		}
	}
}

// TestPreNormal creates the pods of two sets one after the other: the next when a program has added the
// handler of the hook to the one before.
func TestPreNormal(t *testing.T) {
	w := newWorld(t)
	hooks := &pub.Lifecycle{PreNormal: &pub.LifecycleHook{LabelsHandler: map[string]string{inMatch: "true"}}}
	clones := w.cloneSet("web", 2, func(set *v1alpha1.CloneSet) {
		set.Spec.Lifecycle = hooks
		set.Spec.ScaleStrategy.MaxUnavailable = &intstr.IntOrString{IntVal: 1}
	})
	ordered := w.statefulSet("db", 2, func(set *v1beta1.StatefulSet) { set.Spec.Lifecycle = hooks })
	for _, set := range []client.Object{clones, ordered} {
		for i := range int32(2) {
			await.Until(t, fmt.Sprintf("%s waits for the handler of pod %d", set.GetName(), i), func(ctx context.Context) (string, error) {
				pods, err := w.pods(ctx, set.GetName())
				if err != nil {
					return "", err
				}
				if err := w.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
					return "", err
				}
				ready, available := clones.Status.ReadyReplicas, clones.Status.AvailableReplicas
				if set == ordered {
					ready, available = ordered.Status.ReadyReplicas, ordered.Status.AvailableReplicas
				}
				if len(pods) != int(i)+1 || ready != i+1 || available != i {
					return fmt.Sprintf("%d pods, %d ready, %d available", len(pods), ready, available), nil
				}
				return "", nil
			})
			pods, err := w.pods(t.Context(), set.GetName())
			w.must(err)
			for _, pod := range pods {
				if pod.Labels[pub.LifecycleStateKey] == string(pub.LifecycleStatePreparingNormal) {
					w.patch(pod, `{"metadata":{"labels":{%q:"true"}}}`, inMatch)
				}
			}
		}
		w.settled(set, 2, "image:1")
	}
}

// Pods keep their UIDs, and their containers change in the order of their launch priorities.
func TestInPlaceUpdateKeepsPods(t *testing.T) {
	w := newWorld(t)
	set := w.cloneSet("web", 4, func(set *v1alpha1.CloneSet) {
		set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers, corev1.Container{
			Name: "side", Image: "side:1", Env: []corev1.EnvVar{{Name: pub.ContainerLaunchPriorityEnv, Value: "1"}},
		})
		set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
		set.Spec.UpdateStrategy.Partition = &intstr.IntOrString{IntVal: 1}
	})
	w.settled(set, 4, "image:1")
	before, err := w.pods(t.Context(), "web")
	w.must(err)
	updated := func(want int) func(map[string]*corev1.Pod) string {
		return func(pods map[string]*corev1.Pod) string {
			n := 0
			for name, pod := range pods {
				if before[name] == nil || before[name].UID != pod.UID {
					return fmt.Sprintf("pod %s is new", name)
				}
				if pod.Spec.Containers[0].Image == "image:2" && pod.Spec.Containers[1].Image == "side:2" && isReady(pod) &&
					pod.Labels[pub.LifecycleStateKey] == string(pub.LifecycleStateNormal) {
					if got := batches(pod); got != "[side] [main]" {
						return fmt.Sprintf("containers of pod %s change in the batches %s", name, got)
					}
					n++
				}
			}
			if n != want || int(set.Status.UpdatedReadyReplicas) != want {
				return fmt.Sprintf("%d pods are updated, %d by the status", n, set.Status.UpdatedReadyReplicas)
			}
			return ""
		}
	}
	w.patch(set, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:2"},`+
		`{"name":"side","image":"side:2","env":[{"name":"KRUISE_CONTAINER_PRIORITY","value":"1"}]}]}}}}`)
	w.await("three pods are updated in place", set, updated(3))
	w.patch(set, `{"spec":{"updateStrategy":{"partition":0}}}`)
	w.await("all pods are updated in place", set, updated(4))
}

// batches returns the names of the containers that were updated together.
func batches(pod *corev1.Pod) string {
	var state pub.InPlaceUpdateState
	if err := json.Unmarshal([]byte(pod.Annotations[pub.InPlaceUpdateStateKey]), &state); err != nil {
		return err.Error()
	}
	var names []string
	for _, batch := range state.ContainerBatchesRecord {
		names = append(names, fmt.Sprint(batch.Containers))
	}
	return strings.Join(names, " ")
}

// The pods are updated one after the other, in the order of their labels.
func TestUpdateFollowsThePriority(t *testing.T) {
	w := newWorld(t)
	set := w.cloneSet("web", 3, func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
		set.Spec.UpdateStrategy.MaxUnavailable = &intstr.IntOrString{IntVal: 1}
		set.Spec.UpdateStrategy.PriorityStrategy = &pub.UpdatePriorityStrategy{
			OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "role"}},
		}
	})
	w.settled(set, 3, "image:1")
	pods, err := w.pods(t.Context(), "web")
	w.must(err)
	order := slices.Sorted(maps.Keys(pods))
	for i, name := range order { // The first name has the highest priority, the last one has no role.
		if i < 2 {
			w.patch(pods[name], `{"metadata":{"labels":{"role":"r-%d"}}}`, 9-i)
		}
	}
	w.patch(set, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:2"}]}}}}`)
	w.settled(set, 3, "image:2")
	pods, err = w.pods(t.Context(), "web")
	w.must(err)
	started := func(name string) string { return pods[name].Annotations[pub.InPlaceUpdateStateKey] }
	slices.SortStableFunc(order, func(a, b string) int {
		return strings.Compare(updateTime(started(a)), updateTime(started(b)))
	})
	if !slices.IsSorted(order) {
		t.Errorf("order of the updates %v, want by name", order)
	}
}

// updateTime returns the time when the update started. Times have seconds: pods that were updated in
// the same second compare as equal.
func updateTime(state string) string {
	_, after, _ := strings.Cut(state, `"updateTimestamp":"`)
	at, _, _ := strings.Cut(after, `"`)
	return at
}

func TestPodsAreAdoptedAndReleased(t *testing.T) {
	w := newWorld(t)
	stranger := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "stranger", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image:0"}}},
	}
	w.must(w.client.Create(t.Context(), stranger))
	set := w.cloneSet("web", 2, func(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.Paused = true })
	var first *corev1.Pod
	w.await("the set has two pods of its own and reports the other one", set, func(pods map[string]*corev1.Pod) string {
		delete(pods, stranger.Name)
		i := slices.IndexFunc(set.Status.Conditions, func(c v1alpha1.CloneSetCondition) bool {
			return c.Type == "PodsNotAdopted" && c.Status == corev1.ConditionTrue && strings.Contains(c.Message, stranger.Name)
		})
		if len(pods) != 2 || i < 0 {
			return fmt.Sprintf("pods %v, conditions %+v", slices.Sorted(maps.Keys(pods)), set.Status.Conditions)
		}
		first = pods[slices.Sorted(maps.Keys(pods))[0]]
		return ""
	})
	// As after the deletion of the set without its pods.
	w.patch(first, `{"metadata":{"ownerReferences":null}}`)
	w.await("the pod is adopted", set, func(pods map[string]*corev1.Pod) string {
		if pod := pods[first.Name]; len(pods) != 3 || pod == nil || pod.UID != first.UID || !metav1.IsControlledBy(pod, set) {
			return fmt.Sprintf("pods %v", slices.Sorted(maps.Keys(pods)))
		}
		return ""
	})
	w.patch(first, `{"metadata":{"labels":{"app":"other"}}}`)
	w.await("the pod is replaced", set, func(pods map[string]*corev1.Pod) string {
		if len(pods) != 3 || pods[first.Name] != nil {
			return fmt.Sprintf("pods %v", slices.Sorted(maps.Keys(pods)))
		}
		return ""
	})
	for _, pod := range []*corev1.Pod{first, stranger} {
		w.must(w.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		if len(pod.OwnerReferences) != 0 {
			t.Errorf("owners of pod %s: %+v, want none", pod.Name, pod.OwnerReferences)
		}
	}
}
