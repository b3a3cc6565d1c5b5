// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// pick returns a random pod, nil if there is none.
func (w *World) pick() *corev1.Pod {
	pods := w.store.state().Pods
	if len(pods) == 0 {
		return nil
	}
	return pods[w.Rand.IntN(len(pods))]
}

// KillPod is a user who deletes a pod. It does nothing in runs without involuntary disruptions.
func KillPod(weight int) User {
	return User{Name: "kill pod", Weight: weight, Do: func(w *World) string {
		pod := w.pick()
		if pod == nil || !w.faults.Involuntary {
			return ""
		}
		_ = w.apply(Write{By: "user", Kind: Pods, Verb: "delete", Name: pod.Name}, func() error {
			return w.store.delete(Pods, pod.Name, preconditions{})
		})
		return pod.Name
	}}
}

// EvictPod is a node that ends a pod: its phase becomes Failed. It does nothing in runs without
// involuntary disruptions.
func EvictPod(weight int) User {
	return User{Name: "evict pod", Weight: weight, Do: func(w *World) string {
		pod := w.pick()
		if pod == nil || !w.faults.Involuntary || !workload.Active(pod) || pod.Spec.NodeName == "" {
			return ""
		}
		w.status(pod.Name, func(s *corev1.PodStatus) {
			s.Phase, s.Reason = corev1.PodFailed, "Evicted"
			w.condition(s, corev1.PodReady, false)
		})
		return pod.Name
	}}
}

// LabelPod is a marker that gives a pod one of the values of a label, or removes the label if the
// value is empty.
func LabelPod(weight int, key string, values ...string) User {
	return User{Name: "label pod", Weight: weight, Do: func(w *World) string {
		pod := w.pick()
		if pod == nil {
			return ""
		}
		value := values[w.Rand.IntN(len(values))]
		w.EditPod(pod.Name, func(p *corev1.Pod) { set(&p.Labels, key, value) })
		return fmt.Sprintf("%s %s=%s", pod.Name, key, value)
	}}
}

// AnnotatePod is like LabelPod for an annotation, for example the deletion cost.
func AnnotatePod(weight int, key string, values ...string) User {
	return User{Name: "annotate pod", Weight: weight, Do: func(w *World) string {
		pod := w.pick()
		if pod == nil {
			return ""
		}
		value := values[w.Rand.IntN(len(values))]
		w.EditPod(pod.Name, func(p *corev1.Pod) { set(&p.Annotations, key, value) })
		return fmt.Sprintf("%s %s=%s", pod.Name, key, value)
	}}
}

// Quota is an administrator who limits the number of pods, or removes the limit.
func Quota(weight int) User {
	return User{Name: "quota", Weight: weight, Do: func(w *World) string {
		quota := 0
		if w.store.quota == 0 {
			quota = 1 + w.Rand.IntN(6)
		}
		w.SetQuota(quota)
		return fmt.Sprintf("pods=%d", quota)
	}}
}

// set sets a key, or removes it if the value is empty.
func set(to *map[string]string, key, value string) {
	if value == "" {
		delete(*to, key)
		return
	}
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[key] = value
}

// handler is the program that handles the hooks of pods. In the first phase, it handles one pod.
func (w *World) handler() {
	if w.config.HookLabel == "" && w.config.HookFinalizer == "" {
		return
	}
	pods := w.store.state().Pods
	if w.chaos && len(pods) > 0 {
		i := w.Rand.IntN(len(pods))
		pods = pods[i : i+1]
	}
	for _, pod := range pods {
		w.handle(pod)
	}
}

func (w *World) handle(pod *corev1.Pod) {
	state := pub.LifecycleStateType(pod.Labels[pub.LifecycleStateKey])
	hold := state == pub.LifecycleStateUpdated || state == pub.LifecycleStateNormal || state == pub.LifecycleStatePreparingNormal
	if pod.DeletionTimestamp != nil {
		hold = false
	}
	label, finalizer := w.config.HookLabel, w.config.HookFinalizer
	w.change(Write{By: "hook", Kind: Pods, Verb: "update", Name: pod.Name}, func(o Object) {
		p := o.(*corev1.Pod)
		if label != "" {
			set(&p.Labels, label, map[bool]string{true: "true"}[hold])
		}
		if finalizer == "" {
			return
		}
		p.Finalizers = slices.DeleteFunc(p.Finalizers, func(f string) bool { return f == finalizer })
		if hold {
			p.Finalizers = append(p.Finalizers, finalizer)
		}
	})
}
