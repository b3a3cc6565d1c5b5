// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// Rules are what the set of a pod demands before the pod counts as available.
type Rules struct {
	// MinReady is for how long a pod must be ready.
	MinReady time.Duration
	// Hooks are those of the set. Nil means that there are none.
	Hooks *pub.Lifecycle
	// Now is the current time.
	Now time.Time
}

// Wait is what a pod waits for.
type Wait struct {
	// Why completes the sentence "the pod ...". It is empty if the pod is available.
	Why string
	// Wrong reports whether a user has to do something, as far as the pod shows it.
	Wrong bool
}

// WaitOf returns what a pod waits for before it is available, or gone if it is deleted.
func WaitOf(pod *corev1.Pod, rules Rules) Wait {
	if hook := held(pod, rules.Hooks); hook != "" {
		return Wait{Why: hook}
	}
	switch _, left := planning.Available(pod, rules.MinReady, rules.Now); {
	case planning.Terminating(pod):
		// The timestamp is the end of the grace period.
		since := pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
		why := fmt.Sprintf("has been terminating for %s", age(rules.Now, since))
		if len(pod.Finalizers) > 0 {
			why += ", and waits for its finalizers: " + strings.Join(pod.Finalizers, ", ")
		}
		return Wait{Why: why}
	case pod.Status.Phase == corev1.PodFailed:
		return Wait{Why: "failed" + end(pod), Wrong: true}
	case !planning.Ready(pod):
		return notReady(pod)
	case left > 0:
		return Wait{Why: fmt.Sprintf("is ready, and available in %s", left.Round(time.Second))}
	}
	return Wait{}
}

// held returns which hook holds the pod, and by what. It is empty if none does.
func held(pod *corev1.Pod, hooks *pub.Lifecycle) string {
	if hooks == nil {
		return ""
	}
	switch state := pub.LifecycleStateType(pod.Labels[pub.LifecycleStateKey]); state {
	case pub.LifecycleStatePreparingDelete:
		return handlers("spec.lifecycle.preDelete holds it in the state PreparingDelete", "until %s removed", hooks.PreDelete, pod, true)
	case pub.LifecycleStatePreparingUpdate:
		return handlers("spec.lifecycle.inPlaceUpdate holds it in the state PreparingUpdate", "until %s removed", hooks.InPlaceUpdate, pod, true)
	case pub.LifecycleStateUpdated:
		return handlers("spec.lifecycle.inPlaceUpdate holds it in the state Updated", "until %s added", hooks.InPlaceUpdate, pod, false)
	case pub.LifecycleStatePreparingNormal:
		return handlers("spec.lifecycle.preNormal holds it in the state PreparingNormal", "until %s added", hooks.PreNormal, pod, false)
	}
	return ""
}

// handlers describes a hook with those of its handlers that the pod has, or that it lacks. It is empty if there are none: the
// controller continues.
func handlers(what, until string, hook *pub.LifecycleHook, pod *corev1.Pod, has bool) string {
	if hook == nil {
		return ""
	}
	var names []string
	for _, key := range slices.Sorted(maps.Keys(hook.LabelsHandler)) {
		value, ok := pod.Labels[key]
		if (ok && value == hook.LabelsHandler[key]) == has {
			names = append(names, fmt.Sprintf("the label %s=%s", key, hook.LabelsHandler[key]))
		}
	}
	for _, finalizer := range slices.Sorted(slices.Values(hook.FinalizersHandler)) {
		if slices.Contains(pod.Finalizers, finalizer) == has {
			names = append(names, "the finalizer "+finalizer)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return what + " " + fmt.Sprintf(until, names[0]+" is")
	}
	return what + " " + fmt.Sprintf(until, strings.Join(names[:len(names)-1], ", ")+" and "+names[len(names)-1]+" are")
}

// notReady returns why a pod is not ready.
func notReady(pod *corev1.Pod) Wait {
	if pod.Spec.NodeName == "" {
		if c := planning.Condition(pod, corev1.PodScheduled); c != nil && c.Message != "" {
			return Wait{Why: "waits for the scheduler: " + c.Message, Wrong: true}
		}
		return Wait{Why: "waits for the scheduler"}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing" {
			continue
		}
		why := fmt.Sprintf("container %s waits: %s", status.Name, waiting.Reason)
		if waiting.Message != "" {
			why += ": " + waiting.Message
		}
		return Wait{Why: why, Wrong: true}
	}
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		if c := planning.Condition(pod, kind); c != nil && c.Status != corev1.ConditionTrue && c.Message != "" {
			return Wait{Why: "is not ready: " + c.Message}
		}
	}
	return Wait{Why: "is not ready"}
}

// end describes how the containers of a pod ended that failed.
func end(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			how := fmt.Sprintf(": container %s ended with the exit code %d (%s): %s", status.Name, ended.ExitCode, cmp.Or(ended.Reason, "Error"), ended.Message)
			return strings.TrimSuffix(how, ": ")
		}
	}
	if pod.Status.Reason != "" || pod.Status.Message != "" {
		return strings.TrimSuffix(": "+cmp.Or(pod.Status.Reason, "Failed")+": "+pod.Status.Message, ": ")
	}
	return ""
}

func age(now, at time.Time) string { return duration.HumanDuration(max(0, now.Sub(at))) }
