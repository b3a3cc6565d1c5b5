// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// Invariant is checked after each successful write.
type Invariant = func(before, after *State, write Write) error

// pod returns the pod with the name, nil if there is none.
func (s *State) pod(name string) *corev1.Pod {
	for _, p := range s.Pods {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// HooksHold is the invariant that no leader deletes a pod that the hook holds. The function returns
// the hook preDelete of a set, nil if it has none.
func HooksHold(hook func(set Object) *pub.LifecycleHook) Invariant {
	return func(before, _ *State, w Write) error {
		if !w.Controller() || w.Kind != Pods || w.Verb != "delete" {
			return nil
		}
		if pod := before.pod(w.Name); held(hook(w.View.Set), pod) && held(hook(before.Set), pod) {
			return fmt.Errorf("deletes a pod that the hook preDelete holds")
		}
		return nil
	}
}

func held(hook *pub.LifecycleHook, pod *corev1.Pod) bool {
	if hook == nil {
		return false
	}
	for k, v := range hook.LabelsHandler {
		if value, ok := pod.Labels[k]; ok && value == v {
			return true
		}
	}
	return slices.ContainsFunc(hook.FinalizersHandler, func(f string) bool { return slices.Contains(pod.Finalizers, f) })
}

// Identity is the invariant that no two pods have the same key. Pods with an empty key have none.
func Identity(what string, key func(*corev1.Pod) string) Invariant {
	return func(_, after *State, w Write) error {
		if w.Kind != Pods {
			return nil
		}
		owner := map[string]string{}
		for _, p := range after.Pods {
			if k := key(p); k != "" {
				if other, ok := owner[k]; ok {
					return fmt.Errorf("pods %s and %s have the same %s %s", other, p.Name, what, k)
				}
				owner[k] = p.Name
			}
		}
		return nil
	}
}

// NoOrphan is the invariant that a leader keeps the owner reference of every pod that matches the
// selector.
func NoOrphan(selector func(set Object) labels.Selector) Invariant {
	return func(before, after *State, w Write) error {
		if !w.Controller() || w.Kind != Pods {
			return nil
		}
		old, pod := before.pod(w.Name), after.pod(w.Name)
		if pod == nil || pod.DeletionTimestamp != nil {
			return nil
		}
		if w.Verb == "create" && !metav1.IsControlledBy(pod, after.Set) {
			return fmt.Errorf("creates a pod without a reference to the set")
		}
		if old != nil && metav1.IsControlledBy(old, after.Set) && !metav1.IsControlledBy(pod, after.Set) &&
			selector(after.Set).Matches(labels.Set(pod.Labels)) {
			return fmt.Errorf("releases a pod that matches the selector")
		}
		return nil
	}
}

// ClaimsAreKept is the invariant that no claim is deleted that a pod of the set uses, unless the pod is being
// deleted or has ended.
func ClaimsAreKept(before, _ *State, w Write) error {
	if w.Kind != Claims || w.Verb != "delete" {
		return nil
	}
	for _, pod := range before.Pods {
		if metav1.IsControlledBy(pod, before.Set) && planning.Active(pod) && mounts(pod, w.Name) {
			return fmt.Errorf("pod %s uses the claim", pod.Name)
		}
	}
	return nil
}

// Serving reports whether a pod serves: it is active and ready, its readiness gates are True, and its
// containers run the images of the spec.
func Serving(pod *corev1.Pod) bool {
	if !planning.Active(pod) || !planning.Ready(pod) {
		return false
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if c := planning.Condition(pod, gate.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			return false
		}
	}
	for i, c := range pod.Status.ContainerStatuses {
		if i >= len(pod.Spec.Containers) || c.Image != pod.Spec.Containers[i].Image {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) == len(pod.Spec.Containers)
}

// serving returns the number of pods of the set that serve.
func serving(s *State) int {
	n := 0
	for _, p := range s.Pods {
		if metav1.IsControlledBy(p, s.Set) && Serving(p) {
			n++
		}
	}
	return n
}

// ServingSteps checks each step against its own view: after it has taken down pods that serve, at
// least minimum(set) pods serve. The function voluntary selects the deletions that this applies to,
// by their reason; it applies to all patches.
func ServingSteps(minimum func(set Object) int, voluntary func(reason string) bool) func(*State, *Step) error {
	return func(view *State, s *Step) error {
		var down []string
		for _, d := range s.Deletes {
			if Serving(d.Pod) && voluntary(d.Reason) {
				down = append(down, d.Pod.Name)
			}
		}
		for _, p := range s.Patches {
			if Serving(p.Pod) && stops(&p) {
				down = append(down, p.Pod.Name)
			}
		}
		if left := serving(view) - len(down); len(down) > 0 && left < minimum(view.Set) {
			return fmt.Errorf("takes down %v, so that %d pods serve, want at least %d", down, left, minimum(view.Set))
		}
		return nil
	}
}

// stops reports whether a patch makes a serving pod not ready or restarts a container.
func stops(p *planning.PodPatch) bool {
	for _, c := range p.Conditions {
		gate := slices.ContainsFunc(p.Pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == c.Type })
		if gate && c.Status != corev1.ConditionTrue {
			return true
		}
	}
	for _, c := range p.Pod.Spec.Containers {
		if image, ok := p.Images[c.Name]; ok && image != c.Image {
			return true
		}
	}
	return false
}

// ServingWrites checks the true state in runs in which no other disruption and no unknown outcome of
// a write can make a decision outdated: after a leader has taken down a pod that served, at least
// minimum(set) pods serve. See ServingSteps for voluntary.
func ServingWrites(minimum func(set Object) int, voluntary func(reason string) bool) Invariant {
	return func(before, after *State, w Write) error {
		f := w.Faults
		if f.Involuntary || f.Stale || f.Two || f.Lose > 0 || f.Crash > 0 || !w.Controller() || w.Kind != Pods {
			return nil
		}
		old, pod := before.pod(w.Name), after.pod(w.Name)
		if old == nil || !Serving(old) || pod != nil && Serving(pod) || w.Verb == "delete" && !voluntary(w.Reason) {
			return nil
		}
		if n, want := serving(after), min(minimum(w.View.Set), minimum(after.Set)); n < want {
			return fmt.Errorf("takes down a pod, so that %d pods serve, want at least %d", n, want)
		}
		return nil
	}
}

// Side is a container for templates whose pods are updated in place in batches: its launch priority is
// higher than that of containers without one.
func Side() corev1.Container {
	return corev1.Container{
		Name: "side", Image: "side:1", Env: []corev1.EnvVar{{Name: pub.ContainerLaunchPriorityEnv, Value: "1"}},
	}
}

// InBatches is the invariant that an update in place that changes the images of the container Side and of
// the first one changes the first one only when Side is ready with its image. It may change only one of
// them: then the other one does not matter.
func InBatches(before, after *State, w Write) error {
	old, pod := before.pod(w.Name), after.pod(w.Name)
	if !w.Controller() || w.Kind != Pods || old == nil || pod == nil || old.Spec.NodeName == "" || len(pod.Spec.Containers) < 2 ||
		pod.Spec.Containers[0].Image == old.Spec.Containers[0].Image {
		return nil
	}
	main, side := &pod.Spec.Containers[0], &pod.Spec.Containers[1]
	var state pub.InPlaceUpdateState
	if err := json.Unmarshal([]byte(pod.Annotations[pub.InPlaceUpdateStateKey]), &state); err != nil {
		return fmt.Errorf("decode the state of the update: %w", err)
	}
	changed := slices.ContainsFunc(state.ContainerBatchesRecord, func(batch pub.InPlaceUpdateContainerBatch) bool {
		return slices.Contains(batch.Containers, side.Name)
	})
	_, waits := state.NextContainerImages[side.Name]
	running := slices.ContainsFunc(old.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == side.Name && s.Ready && s.Image == old.Spec.Containers[1].Image
	})
	if waits || side.Image != old.Spec.Containers[1].Image || changed && !running {
		return fmt.Errorf("changes container %s before container %s is ready", main.Name, side.Name)
	}
	return nil
}

// StayInService lets the updates of the sets of some seeds keep pods in service: those of one container, or of all.
func StayInService(seed uint64, template *corev1.PodTemplateSpec) {
	names := []string{"side", template.Spec.Containers[0].Name, template.Spec.Containers[0].Name + ",side"}
	if i := seed % 8; i < uint64(len(names)) {
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, pub.InServiceContainersKey, names[i])
	}
}

// OutOfService is the invariant that a leader changes an image only in a pod that is not ready, except those of containers that
// need not be out of service.
func OutOfService(before, after *State, w Write) error {
	old, pod := before.pod(w.Name), after.pod(w.Name)
	if !w.Controller() || w.Kind != Pods || old == nil || pod == nil || !planning.Ready(old) {
		return nil
	}
	for i := range pod.Spec.Containers {
		inService := slices.Contains(strings.Split(pod.Annotations[pub.InServiceContainersKey], ","), pod.Spec.Containers[i].Name)
		if pod.Spec.Containers[i].Image != old.Spec.Containers[i].Image && !inService {
			return fmt.Errorf("changes the image of container %s while the pod is ready", pod.Spec.Containers[i].Name)
		}
	}
	return nil
}

// Describe prints a state, one line per object.
func Describe(s *State) string {
	var out strings.Builder
	if s.Set != nil {
		fmt.Fprintf(&out, "set @%s %s\n", s.Set.GetResourceVersion(), encode(s.Set))
	}
	for _, p := range s.Pods {
		var images, ids []string
		for _, c := range p.Spec.Containers {
			images = append(images, c.Image)
		}
		for _, c := range p.Status.ContainerStatuses {
			ids = append(ids, c.Image)
		}
		var conditions []string
		for _, c := range p.Status.Conditions {
			conditions = append(conditions, fmt.Sprintf("%s=%s", c.Type, c.Status))
		}
		fmt.Fprintf(&out, "pod %s @%s %s terminating=%t owned=%t images=%v running=%v finalizers=%v\n    labels=%v\n    annotations=%v\n    conditions=%v\n",
			p.Name, p.ResourceVersion, p.Status.Phase, p.DeletionTimestamp != nil, s.Set != nil && metav1.IsControlledBy(p, s.Set),
			images, ids, p.Finalizers, p.Labels, p.Annotations, conditions)
	}
	for _, c := range s.Claims {
		fmt.Fprintf(&out, "claim %s @%s terminating=%t labels=%v\n", c.Name, c.ResourceVersion, c.DeletionTimestamp != nil, c.Labels)
	}
	for _, r := range s.Revisions {
		fmt.Fprintf(&out, "revision %s @%s number %d\n", r.Name, r.ResourceVersion, r.Revision)
	}
	return out.String()
}
