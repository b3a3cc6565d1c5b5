// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/builders"
)

// pick returns a random pod, nil if there is none.
func (w *World) pick() *corev1.Pod {
	pods := w.store.state().Pods
	if len(pods) == 0 {
		return nil
	}
	return pods[w.Rand.IntN(len(pods))]
}

// OneOf returns one of the values.
func OneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// Edit is a user who changes the set. The function returns what changes.
func Edit[S Object](name string, weight int, change func(w *World, set S) string) User {
	return User{Name: name, Weight: weight, Do: func(w *World) string {
		did := ""
		w.EditSet(func(o Object) { did = change(w, o.(S)) })
		return did
	}}
}

// EditImages is a user who changes the images of the template.
func EditImages[S Object](weight int, template func(set S) *corev1.PodTemplateSpec) User {
	return Edit("image", weight, func(w *World, set S) string {
		containers := template(set).Spec.Containers
		containers[0].Image = OneOf(w.Rand, "app:1", "app:2", "app:3", "app:3-alias")
		for i := range containers[1:] {
			containers[1+i].Image = OneOf(w.Rand, "side:1", "side:2", "side:3")
		}
		return containers[0].Image
	})
}

// EditEnvironment is a user who changes the template so that pods cannot be updated in place.
func EditEnvironment[S Object](weight int, template func(set S) *corev1.PodTemplateSpec) User {
	return Edit("environment", weight, func(w *World, set S) string {
		value := OneOf(w.Rand, "0", "1", "2")
		template(set).Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: value}}
		return value
	})
}

// EditResources is a user who changes the resources of the template, which pods get in place if they had some before.
func EditResources[S Object](weight int, template func(set S) *corev1.PodTemplateSpec) User {
	return Edit("resources", weight, func(w *World, set S) string {
		value := OneOf(w.Rand, "1", "2", "3")
		template(set).Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(value)}
		return value
	})
}

// Policy is an administrator who lets the API server refuse the images of pods that change, or accept them again. It ends
// with the first phase.
func Policy(weight int) User {
	return User{Name: "policy", Weight: weight, Do: func(w *World) string {
		w.store.refuses = !w.store.refuses
		return fmt.Sprintf("refuses images: %t", w.store.refuses)
	}}
}

// Ungate makes a pod that is not being updated one that was created before all pods had the readiness gate of updates in
// place.
func Ungate(weight int) User {
	return User{Name: "pod without gate", Weight: weight, Do: func(w *World) string {
		pod := w.pick()
		if pod == nil || pub.LifecycleStateType(pod.Labels[pub.LifecycleStateKey]) != pub.LifecycleStateNormal {
			return ""
		}
		if c := planning.Condition(pod, pub.InPlaceUpdateReady); c == nil || c.Status != corev1.ConditionTrue {
			return ""
		}
		w.EditPod(pod.Name, func(p *corev1.Pod) {
			p.Spec.ReadinessGates = slices.DeleteFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
				return g.ConditionType == pub.InPlaceUpdateReady
			})
			p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == pub.InPlaceUpdateReady })
		})
		return pod.Name
	}}
}

// KillPod is a user who deletes a pod. It does nothing in runs without involuntary disruptions.
func KillPod(weight int) User {
	return User{Name: "kill pod", Weight: weight, Do: func(w *World) string {
		pod := w.pick()
		if pod == nil || !w.faults.Involuntary {
			return ""
		}
		w.DeletePod(pod.Name)
		return pod.Name
	}}
}

// EvictPod is a node that ends a pod: its phase becomes Failed. It does nothing in runs without
// involuntary disruptions.
func EvictPod(weight int) User {
	return User{Name: "evict pod", Weight: weight, Do: func(w *World) string {
		pod := w.pick()
		if pod == nil || !w.faults.Involuntary || !planning.Active(pod) || pod.Spec.NodeName == "" {
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
		value := OneOf(w.Rand, values...)
		w.EditPod(pod.Name, func(p *corev1.Pod) { set(&p.Labels, key, value) })
		return fmt.Sprintf("%s %s=%s", pod.Name, key, value)
	}}
}

// GuardPod is a marker that marks a pod as busy, or ends it: see builders.Guards.
func GuardPod(weight int) User { return LabelPod(weight, builders.GuardLabel, "", "delete", "update") }

// AnnotatePod is like LabelPod for an annotation, for example the deletion cost.
func AnnotatePod(weight int, key string, values ...string) User {
	return User{Name: "annotate pod", Weight: weight, Do: func(w *World) string {
		pod := w.pick()
		if pod == nil {
			return ""
		}
		value := OneOf(w.Rand, values...)
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
