// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle implements the hooks with which other programs delay the deletion and the
// in-place update of pods, and until which new pods do not count as available. A pod's state is in a
// label. What a hook marks not ready follows from the state alone, so it is cleared on every way back to
// Normal, also after a crash between two writes or after the hook is removed from the set.
package lifecycle

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// State returns the state of the pod. A pod without a state is Normal.
func State(pod *corev1.Pod) pub.LifecycleStateType {
	if state := pod.Labels[pub.LifecycleStateKey]; state != "" {
		return pub.LifecycleStateType(state)
	}
	return pub.LifecycleStateNormal
}

// Held reports whether the hook holds the pod: the pod has at least one of its handlers. A nil hook
// holds no pod.
func Held(hook *pub.LifecycleHook, pod *corev1.Pod) bool {
	if hook == nil {
		return false
	}
	for key, value := range hook.LabelsHandler {
		if hasLabel(pod, key, value) {
			return true
		}
	}
	return finalizes(hook, pod)
}

// finalizes reports whether the pod has a finalizer of the hook.
func finalizes(hook *pub.LifecycleHook, pod *corev1.Pod) bool {
	return sets.New(pod.Finalizers...).HasAny(hook.FinalizersHandler...)
}

// Restored reports whether the pod has all handlers of the hook. It is true for a nil hook.
func Restored(hook *pub.LifecycleHook, pod *corev1.Pod) bool {
	if hook == nil {
		return true
	}
	for key, value := range hook.LabelsHandler {
		if !hasLabel(pod, key, value) {
			return false
		}
	}
	return sets.New(pod.Finalizers...).HasAll(hook.FinalizersHandler...)
}

func hasLabel(pod *corev1.Pod, key, value string) bool {
	v, ok := pod.Labels[key]
	return ok && v == value
}

func marks(hook *pub.LifecycleHook) bool { return hook != nil && hook.MarkPodNotReady }

// Begin returns the state of a pod that is neither updated nor deleted and may have been created just
// now: PreparingNormal until it has all handlers of the hook preNormal, then Normal.
func Begin(hooks *pub.Lifecycle, pod *corev1.Pod) pub.LifecycleStateType {
	if Restored(hooks.PreNormal, pod) {
		return pub.LifecycleStateNormal
	}
	return pub.LifecycleStatePreparingNormal
}

// AfterUpdate returns the state of a pod whose update in place is done: Updated until all handlers of
// the hook are restored, then Normal.
func AfterUpdate(hooks *pub.Lifecycle, pod *corev1.Pod) pub.LifecycleStateType {
	if Restored(hooks.InPlaceUpdate, pod) {
		return pub.LifecycleStateNormal
	}
	return pub.LifecycleStateUpdated
}

// Enter returns the patch that puts the pod into the state, with the readiness that the hooks demand
// in it. It returns nil if nothing changes.
func Enter(pod *corev1.Pod, state pub.LifecycleStateType, hooks *pub.Lifecycle, now time.Time) *planning.PodPatch {
	patch := &planning.PodPatch{
		Pod: pod, Reason: string(state),
		Conditions: Conditions(pod, state, hooks, now),
	}
	if pod.Labels[pub.LifecycleStateKey] != string(state) {
		label, timestamp := string(state), now.Format(time.RFC3339)
		patch.Labels = map[string]*string{pub.LifecycleStateKey: &label}
		patch.Annotations = map[string]*string{pub.LifecycleTimestampKey: &timestamp}
	}
	if len(patch.Conditions)+len(patch.Labels) == 0 {
		return nil
	}
	return patch
}

// PrepareTerminating returns the patch that puts a terminating pod into PreparingDelete, nil if nothing changes. Somebody else than the set
// has deleted it, and a finalizer of the hook preDelete keeps it: the program of the hook waits for the state. A label does
// not keep a pod.
func PrepareTerminating(pod *corev1.Pod, hooks *pub.Lifecycle, now time.Time) *planning.PodPatch {
	if !planning.Terminating(pod) || hooks.PreDelete == nil || State(pod) == pub.LifecycleStatePreparingDelete || !finalizes(hooks.PreDelete, pod) {
		return nil
	}
	return Enter(pod, pub.LifecycleStatePreparingDelete, hooks, now)
}

// Refresh returns the patch that gives the pod the readiness that the hooks demand in its state, nil
// if it has it.
func Refresh(pod *corev1.Pod, hooks *pub.Lifecycle, now time.Time) *planning.PodPatch {
	conditions := Conditions(pod, State(pod), hooks, now)
	if len(conditions) == 0 {
		return nil
	}
	return &planning.PodPatch{Pod: pod, Reason: "Readiness", Conditions: conditions}
}

// Create completes a new pod: with its first state, and the readiness gate that the hooks need.
func Create(pod *corev1.Pod, hooks *pub.Lifecycle, now time.Time) {
	state := Begin(hooks, pod)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, pub.LifecycleStateKey, string(state))
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, pub.LifecycleTimestampKey, now.Format(time.RFC3339))
	if marks(hooks.PreDelete) || marks(hooks.InPlaceUpdate) {
		planning.AddGate(&pod.Spec, pub.KruisePodReadyConditionType)
	}
}

// reason is an entry of the message of the condition KruisePodReady, which is a JSON list: why the
// pod is not ready. Other programs may add entries.
type reason struct {
	UserAgent string `json:"userAgent"`
	Key       string `json:"key"`
}

// The reasons that hooks add.
const (
	agent     = "Lifecycle"
	preDelete = "preDeleteHook"
	preUpdate = "preUpdateHook"
)

// Conditions returns the conditions that a pod needs in the state: KruisePodReady, and Ready if it
// becomes False, so that the pod receives no more traffic before the kubelet notices. It is empty if
// the pod has them, or does not have the readiness gate.
func Conditions(
	pod *corev1.Pod, state pub.LifecycleStateType, hooks *pub.Lifecycle, now time.Time,
) []corev1.PodCondition {
	if !planning.HasGate(pod, pub.KruisePodReadyConditionType) {
		return nil
	}
	var wanted []reason
	switch state {
	case pub.LifecycleStatePreparingDelete:
		if marks(hooks.PreDelete) {
			wanted = append(wanted, reason{UserAgent: agent, Key: preDelete})
		}
	case pub.LifecycleStatePreparingUpdate, pub.LifecycleStateUpdating:
		if marks(hooks.InPlaceUpdate) {
			wanted = append(wanted, reason{UserAgent: agent, Key: preUpdate})
		}
	}
	old := planning.Condition(pod, pub.KruisePodReadyConditionType)
	text, ready := message(old, wanted)
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	if old != nil && old.Status == status && old.Message == text {
		return nil
	}
	return planning.GateConditions(pod, corev1.PodCondition{
		Type: pub.KruisePodReadyConditionType, Status: status, Message: text,
	}, now)
}

// message returns the message of the condition with the wanted reasons of the hooks and the reasons
// of others, and whether there are none.
func message(old *corev1.PodCondition, wanted []reason) (string, bool) {
	var had []reason
	valid := old != nil && json.Unmarshal([]byte(old.Message), &had) == nil
	if !valid {
		had = nil
	}
	reasons := slices.DeleteFunc(slices.Clone(had), func(r reason) bool {
		return r.UserAgent == agent && (r.Key == preDelete || r.Key == preUpdate)
	})
	reasons = append(reasons, wanted...)
	slices.SortFunc(reasons, func(a, b reason) int {
		return strings.Compare(a.UserAgent+"\x00"+a.Key, b.UserAgent+"\x00"+b.Key)
	})
	reasons = slices.Compact(reasons)
	if len(reasons) == 0 && (old == nil || old.Message == "") {
		return "", true
	}
	if valid && slices.Equal(reasons, had) {
		return old.Message, len(reasons) == 0
	}
	text, _ := json.Marshal(append([]reason{}, reasons...)) // Two strings always have a JSON form.
	return string(text), len(reasons) == 0
}

// Timestamp returns when the pod entered its state, the zero time if this is not known.
func Timestamp(pod *corev1.Pod) metav1.Time {
	t, err := time.Parse(time.RFC3339, pod.Annotations[pub.LifecycleTimestampKey])
	if err != nil {
		return metav1.Time{}
	}
	return metav1.NewTime(t)
}
