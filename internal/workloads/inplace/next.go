// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

const (
	// settleTime is the time after a change after which a container that runs the image of its spec is
	// not expected to be replaced any more.
	settleTime = 30 * time.Second
	// restartTime is the same after the start of a container that was replaced after the change, if
	// the kubelet has seen the change. Only a container that crashed before the kubelet saw the change
	// is replaced again. The kubelet stops it as soon as it sees the change.
	restartTime = 5 * time.Second
)

// Start returns the first write of an update in place. It replaces an update in progress: a newer
// revision and a rollback start at once, also while an image cannot be pulled.
func Start(pod *corev1.Pod, change *Change, target Target, now time.Time) *workload.PodPatch {
	previous, err := readState(pod)
	if err != nil {
		previous = nil // The state is written again.
	}
	state := &pub.InPlaceUpdateState{
		Revision: target.Revision, UpdateTimestamp: metav1.NewTime(now),
		UpdateResources: len(change.Resources) > 0, UpdateImages: len(change.Images) > 0,
	}
	patch := &workload.PodPatch{
		Pod: pod, Reason: "UpdateInPlace",
		Labels: map[string]*string{}, Annotations: map[string]*string{},
	}
	for key, value := range target.Labels {
		patch.Labels[key] = &value
	}
	remove(patch, pub.ResizeRefusedKey)
	patch.Conditions = notReady(pod, change, now)
	if target.Grace > 0 && len(patch.Conditions)+len(waitingConditions(pod)) > 0 {
		text, err := writePending(change, target)
		if err == nil {
			// The JSON form has whole seconds: round up, so that the period is not shorter.
			state.UpdateTimestamp = metav1.NewTime(now.Add(time.Second - 1).Truncate(time.Second))
			record(pod, state, previous, nil)
			patch.Annotations[pub.InPlaceUpdateGraceKey] = &text
			setState(patch, state)
			return patch
		}
	}
	apply(patch, change, state, previous, now)
	return patch
}

// waitingConditions returns the condition of a pod that an update has marked not ready before.
func waitingConditions(pod *corev1.Pod) []corev1.PodCondition {
	if c := workload.Condition(pod, pub.InPlaceUpdateReady); c != nil && c.Status == corev1.ConditionFalse {
		return []corev1.PodCondition{*c}
	}
	return nil
}

// apply completes the patch with the first batch of the change, and the state with what waits.
//
// A container that a previous update has changed and that has not been started yet is part of the
// batch of its priority: containers of a lower priority wait for it, too.
func apply(patch *workload.PodPatch, change *Change, state, previous *pub.InPlaceUpdateState, now time.Time) {
	pod := patch.Pod
	images, resources := change.missing(pod)
	names := sets.KeySet(images).Union(sets.KeySet(resources))
	batch := batches(pod, names.Union(sets.KeySet(unfinished(pod, previous))))[0]
	patch.Images, state.NextContainerImages = divide(images, batch)
	patch.Resources, _ = divide(resources, batch)
	record(pod, state, previous, patch.Images)
	// Resources are written after the state: the state keeps them until they are in the spec.
	state.NextContainerResources = resources
	labels, annotations, postponed := change.postpone(pod, batch, names.Difference(batch))
	state.NextContainerRefMetadata = postponed
	state.ContainerBatchesRecord = append(state.ContainerBatchesRecord, pub.InPlaceUpdateContainerBatch{
		Timestamp: metav1.NewTime(now), Containers: sets.List(batch),
	})
	if names.Difference(batch).Len() > 0 {
		state.PreCheckBeforeNext = &pub.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: sets.List(batch)}
	}
	if len(labels) > 0 {
		maps.Copy(labels, patch.Labels)
		patch.Labels = labels
	}
	maps.Copy(patch.Annotations, annotations)
	remove(patch, pub.InPlaceUpdateGraceKey)
	setState(patch, state)
}

// setState writes the state. Times and names always have a JSON form.
func setState(patch *workload.PodPatch, state *pub.InPlaceUpdateState) {
	text, err := json.Marshal(state)
	if err != nil {
		return
	}
	value := string(text)
	patch.Annotations[pub.InPlaceUpdateStateKey] = &value
}

// remove removes an annotation if the pod has it.
func remove(patch *workload.PodPatch, key string) {
	delete(patch.Annotations, key)
	if _, ok := patch.Pod.Annotations[key]; ok {
		patch.Annotations[key] = nil
	}
}

// notReady returns the conditions of the start of an update, empty if the pod has them or if the
// change does not restart a container.
func notReady(pod *corev1.Pod, change *Change, now time.Time) []corev1.PodCondition {
	if !workload.HasGate(pod, pub.InPlaceUpdateReady) || !restarts(pod, change) || waitingConditions(pod) != nil {
		return nil
	}
	return workload.GateConditions(pod, corev1.PodCondition{
		Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse, Reason: "StartInPlaceUpdate",
	}, now)
}

// restarts reports whether the change restarts a container of the pod.
func restarts(pod *corev1.Pod, change *Change) bool {
	for i := range pod.Spec.Containers {
		if change.restarts(&pod.Spec.Containers[i]) {
			return true
		}
	}
	return false
}

// Next returns the next step of the update of the pod. It also sets the condition InPlaceUpdateReady
// of a pod that has the readiness gate and was never updated. Call it for every active pod of the set
// in each step of the planner.
func Next(pod *corev1.Pod, now time.Time) Step {
	state, err := readState(pod)
	waiting, errPending := readPending(pod)
	switch {
	case errPending != nil || waiting != nil && state == nil:
		return Step{Refused: "what to change after the grace period is not known"}
	case err != nil || waiting != nil && !revision.Is(pod, waiting.Revision):
		return Step{Patch: drop(pod, now)}
	case waiting != nil:
		return afterGrace(pod, state, waiting, now)
	}
	if state == nil {
		return Step{Patch: ready(pod, nil, now)}
	}
	if why := infeasible(pod, state); why != "" {
		return Step{Refused: why}
	}
	if patch := resizeAgain(pod, state); patch != nil {
		if why := pod.Annotations[pub.ResizeRefusedKey]; why != "" {
			return Step{Refused: why}
		}
		return Step{Patch: patch}
	}
	if patch := nextBatch(pod, state, now); patch != nil {
		return Step{Patch: patch}
	}
	if done(pod, state) {
		return Step{Patch: ready(pod, state, now)}
	}
	finished, at, ok := settled(pod, state)
	if !ok {
		return Step{}
	}
	if left := at.Sub(now); left > 0 {
		return Step{After: min(left, settleTime)}
	}
	patch := &workload.PodPatch{Pod: pod, Reason: "UpdatedInPlace", Annotations: map[string]*string{}}
	setState(patch, finished)
	return Step{Patch: patch}
}

// drop removes the annotations of an update that is not continued, because somebody changed them or
// the revision of the pod, and makes the pod ready. Its containers are what its spec says.
func drop(pod *corev1.Pod, now time.Time) *workload.PodPatch {
	patch := &workload.PodPatch{Pod: pod, Reason: "DropInPlaceUpdate", Annotations: map[string]*string{}}
	if _, err := readState(pod); err != nil {
		remove(patch, pub.InPlaceUpdateStateKey)
	}
	remove(patch, pub.InPlaceUpdateGraceKey)
	return patch.Merge(ready(pod, nil, now))
}

// afterGrace waits for the end of the grace period, then changes the containers.
func afterGrace(pod *corev1.Pod, state *pub.InPlaceUpdateState, waiting *pending, now time.Time) Step {
	grace := time.Duration(waiting.GraceSeconds) * time.Second
	if left := state.UpdateTimestamp.Add(grace).Sub(now); left > 0 {
		return Step{After: min(left, grace)}
	}
	change := waiting.change()
	next := &pub.InPlaceUpdateState{
		Revision: state.Revision, UpdateTimestamp: state.UpdateTimestamp,
		UpdateResources:        state.UpdateResources || len(change.Resources) > 0,
		UpdateImages:           state.UpdateImages || len(change.Images) > 0,
		ContainerBatchesRecord: state.ContainerBatchesRecord,
	}
	patch := &workload.PodPatch{
		Pod: pod, Reason: "UpdateInPlace",
		Labels: map[string]*string{}, Annotations: map[string]*string{},
		Conditions: notReady(pod, change, now),
	}
	apply(patch, change, next, state, now)
	return Step{Patch: patch}
}

// nextBatch returns the next batch of an update: containers of a lower priority change when those of
// the previous batch have been started and are ready.
func nextBatch(pod *corev1.Pod, state *pub.InPlaceUpdateState, now time.Time) *workload.PodPatch {
	change := remaining(state)
	if change == nil || lagging(pod) || !batchStarted(pod, state) {
		return nil
	}
	if check := state.PreCheckBeforeNext; check != nil {
		for _, name := range check.ContainersRequiredReady {
			if status := containerStatus(pod, name); status == nil || !status.Ready {
				return nil
			}
		}
	}
	next := &pub.InPlaceUpdateState{
		Revision: state.Revision, UpdateTimestamp: state.UpdateTimestamp,
		UpdateResources: state.UpdateResources, UpdateImages: state.UpdateImages,
		ContainerBatchesRecord: state.ContainerBatchesRecord,
	}
	patch := &workload.PodPatch{
		Pod: pod, Reason: "UpdateInPlace",
		Labels: map[string]*string{}, Annotations: map[string]*string{},
		Conditions: notReady(pod, change, now),
	}
	apply(patch, change, next, state, now)
	return patch
}

// resizeAgain returns the resize of resources of the batches so far that are not in the spec, because
// the program ended between the two writes.
func resizeAgain(pod *corev1.Pod, state *pub.InPlaceUpdateState) *workload.PodPatch {
	var left map[string]corev1.ResourceRequirements
	for name, wanted := range state.NextContainerResources {
		if spec := container(pod, name); spec != nil && written(state, name) && !applied(spec, wanted) {
			if left == nil {
				left = map[string]corev1.ResourceRequirements{}
			}
			left[name] = wanted
		}
	}
	if left == nil {
		return nil
	}
	return &workload.PodPatch{Pod: pod, Reason: "Resize", Resources: left}
}

// infeasible returns why the node of the pod can never provide the resources.
func infeasible(pod *corev1.Pod, state *pub.InPlaceUpdateState) string {
	c := workload.Condition(pod, corev1.PodResizePending)
	if !state.UpdateResources || c == nil || c.Status != corev1.ConditionTrue || c.Reason != corev1.PodReasonInfeasible {
		return ""
	}
	return fmt.Sprintf("the resize is infeasible: %s", c.Message)
}

// ready returns the patch of a pod whose update is done, nil if it has nothing to write.
func ready(pod *corev1.Pod, state *pub.InPlaceUpdateState, now time.Time) *workload.PodPatch {
	patch := &workload.PodPatch{Pod: pod, Reason: "UpdatedInPlace"}
	c := workload.Condition(pod, pub.InPlaceUpdateReady)
	if workload.HasGate(pod, pub.InPlaceUpdateReady) && (c == nil || c.Status != corev1.ConditionTrue) {
		patch.Conditions = workload.GateConditions(pod, corev1.PodCondition{
			Type: pub.InPlaceUpdateReady, Status: corev1.ConditionTrue,
		}, now)
	}
	if state != nil && len(state.NextContainerResources) > 0 {
		finished := state.DeepCopy()
		finished.NextContainerResources = nil
		patch.Annotations = map[string]*string{}
		setState(patch, finished)
	}
	if len(patch.Conditions)+len(patch.Annotations) == 0 {
		return nil
	}
	return patch
}
