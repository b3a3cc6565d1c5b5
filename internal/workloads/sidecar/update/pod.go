// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// newView returns the pod as an update in place sees it: native sidecars are containers, the state is that of the
// set, and the readiness gate, which belongs to the workload of the pod, does not exist. It shares with the pod what is the same,
// because each step has a view of most pods. Nothing changes views.
func newView(pod *corev1.Pod, set string) *corev1.Pod {
	view := *pod
	view.Annotations = nil
	annotate := func(key, value string) {
		if view.Annotations == nil {
			view.Annotations = map[string]string{}
		}
		view.Annotations[key] = value
	}
	if state, found := states(pod)[set]; found {
		annotate(pub.InPlaceUpdateStateKey, string(state))
	}
	if why, found := pod.Annotations[pub.ResizeRefusedKey]; found {
		annotate(pub.ResizeRefusedKey, why)
	}
	view.Spec.ReadinessGates = nil
	if len(pod.Spec.InitContainers) > 0 {
		view.Spec.Containers, view.Spec.InitContainers = slices.Grow(slices.Clip(pod.Spec.Containers), len(pod.Spec.InitContainers)), nil
		for i := range pod.Spec.InitContainers {
			if c := pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				view.Spec.Containers = append(view.Spec.Containers, c)
			} else {
				view.Spec.InitContainers = append(view.Spec.InitContainers, c)
			}
		}
		view.Status.ContainerStatuses = slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses)
	}
	isGate := func(c corev1.PodCondition) bool { return c.Type == pub.InPlaceUpdateReady }
	if slices.ContainsFunc(pod.Status.Conditions, isGate) {
		view.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), isGate)
	}
	return &view
}

// states returns the states of the last updates in place, by set.
func states(pod *corev1.Pod) map[string]json.RawMessage {
	var found map[string]json.RawMessage
	if text := pod.Annotations[v1alpha1.SidecarSetInPlaceStateKey]; text == "" || json.Unmarshal([]byte(text), &found) != nil {
		return nil
	}
	return found
}

// isDone reports whether the pod has become ready since its last update, and runs the images of its containers.
// It does not decode the state of the update, which pods keep.
func isDone(pod *corev1.Pod, updated time.Time) bool {
	ready := planning.Condition(pod, corev1.PodReady)
	if ready == nil || ready.Status != corev1.ConditionTrue || !ready.LastTransitionTime.After(updated) ||
		pod.Status.ObservedGeneration != pod.Generation || strings.Contains(pod.Annotations[v1alpha1.SidecarSetInPlaceStateKey], `"updateResources":true`) {
		return false
	}
	return runs(pod.Spec.Containers, pod.Status.ContainerStatuses) && runs(pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
}

// runs reports whether the statuses have the images of the containers.
func runs(all []corev1.Container, statuses []corev1.ContainerStatus) bool {
	for i := range all {
		if !slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == all[i].Name && s.Image == all[i].Image }) {
			return false
		}
	}
	return true
}

// isDisturbed reports whether the last update of the pod has made it unavailable: its containers have not been
// started, or it became unready after that.
func isDisturbed(view *corev1.Pod) bool {
	text := view.Annotations[pub.InPlaceUpdateStateKey]
	if text == "" {
		return false
	}
	if !inplace.Done(view) {
		return true
	}
	var state pub.InPlaceUpdateState
	if json.Unmarshal([]byte(text), &state) != nil || planning.Ready(view) {
		return false
	}
	ready := planning.Condition(view, corev1.PodReady)
	return ready != nil && !ready.LastTransitionTime.Time.Before(state.UpdateTimestamp.Truncate(time.Second))
}

// advance continues the updates that have started: resources follow the other changes.
func (p *planner) advance() {
	for _, m := range p.members {
		if m.done || m.view.Annotations[pub.InPlaceUpdateStateKey] == "" || p.Held {
			continue
		}
		next := inplace.Next(m.view, p.Now)
		if next.Refused != "" && m.why == "" {
			m.why = next.Refused
		}
		if next.Patch != nil && m.updated && !p.guarded(m, &inplace.Change{Images: next.Patch.Images, Resources: next.Patch.Resources}) {
			p.patch(m, next.Patch)
		}
		p.out.RequeueAfter = earliest.Wait(p.out.RequeueAfter, next.After)
	}
}

// update starts the update of the pod, and reports whether it can be.
func (p *planner) update(m *member) bool {
	change := p.differences.change(m)
	if change == nil {
		return false
	}
	patch := inplace.Start(m.view, change, inplace.Target{Revision: p.latest.Name}, p.Now)
	if patch.Annotations == nil {
		patch.Annotations = map[string]*string{}
	}
	for key, value := range inject.Stamp(m.pod, p.latest, metav1.NewTime(p.Now.Truncate(time.Second))) {
		patch.Annotations[key] = &value
	}
	changes, kept := inject.Annotations(m.pod, p.latest, false)
	for key, value := range changes {
		patch.Annotations[key] = &value
	}
	for _, key := range kept {
		p.out.Events = planning.AddEvent(p.out.Events, planning.Event{
			Type: corev1.EventTypeWarning, Reason: "AnnotationKept", Pods: []string{m.name()},
			One:  "Annotation " + key + " of pod %s stays as it is: it is no JSON object.",
			Many: "Annotation " + key + " of %d pods stays as it is, because it is no JSON object: %s.",
		})
	}
	p.out.Events = planning.AddEvent(p.out.Events, planning.StartedInPlace(m.name(), p.latest.Name))
	p.patch(m, patch)
	return true
}

// patch adds the patch of the view as one of the pod.
func (p *planner) patch(m *member, patch *planning.PodPatch) {
	if state, found := patch.Annotations[pub.InPlaceUpdateStateKey]; found {
		stored := states(m.pod)
		if stored == nil {
			stored = map[string]json.RawMessage{}
		}
		delete(stored, p.Set.Name)
		if state != nil {
			stored[p.Set.Name] = json.RawMessage(*state)
		}
		// The states are JSON.
		encoded, _ := json.Marshal(stored)
		delete(patch.Annotations, pub.InPlaceUpdateStateKey)
		patch.Annotations[v1alpha1.SidecarSetInPlaceStateKey] = new(string(encoded))
	}
	patch.Pod, m.patched = m.pod, true
	p.out.Patches = append(p.out.Patches, *patch)
}
