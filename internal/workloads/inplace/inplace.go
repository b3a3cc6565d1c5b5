// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inplace updates pods without recreating them: images of containers, labels and annotations
// by a patch of the pod, CPU and memory by its subresource resize.
//
// An update goes through these steps; each is a function of the pod, so that it continues after a
// crash at any write: Start marks the pod not ready and records the update in an annotation, Next
// changes the containers after the grace period, in batches by their launch priorities, waits until
// the containers of the new images have been started, and marks the pod ready. The annotations are those
// of OpenKruise, so an update that OpenKruise started is continued, and the other way round.
package inplace

import (
	"encoding/json"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// Change is what an update in place changes in a pod.
type Change struct {
	// Images are the new images of containers, by name. They include images that the pod already has.
	Images map[string]string
	// Resources are the new requests and limits of containers, by name.
	Resources map[string]corev1.ResourceRequirements
	// Labels and Annotations are set, or removed if the value is nil.
	Labels, Annotations map[string]*string
}

// Progress is the next step of a started update.
type Progress struct {
	// Patch is the next write, nil if there is none.
	Patch *planning.PodPatch
	// After is the time after which the next step must be computed although nothing changes, zero for
	// never.
	After time.Duration
	// Refused is why the update cannot be finished in place, for example because the node does not
	// have the resources. It is empty otherwise. The pod must be recreated.
	Refused string
	// Stuck is why a resize of the update has not taken effect, empty if it has. It may still do so unless Refused is set.
	Stuck string
}

// Target is the revision that Start updates a pod to.
type Target struct {
	// Revision is the name of the revision.
	Revision string
	// Labels are the labels of the pod that contain the revision. They are written together with the
	// change, or at the start of the grace period.
	Labels map[string]string
	// Grace is the time between the pod becoming not ready and the change of its containers.
	Grace time.Duration
}

// InProgress reports whether the pod is being updated in place: the update has started, also if only
// the first of its writes was executed, and is not done.
func InProgress(pod *corev1.Pod) bool {
	return isFalse(pod) || !Done(pod)
}

// Begun reports whether the state of the pod says that it is being updated in place, without the cost of
// decoding the annotations of the update. It may still do so for a moment after the update is done, until the state of
// the pod is written.
func Begun(pod *corev1.Pod) bool {
	return isFalse(pod) || lifecycle.State(pod) == pub.LifecycleStateUpdating
}

// Interrupted reports whether only the first of the two writes of Start was executed in a pod of an old revision: the pod
// is not ready for its update, and nothing else has changed, because the program ended or the API server refuses the other
// write. Start again while the update is wanted, which repeats only the other write: to undo the first one before would let
// the pod become ready and not ready again and again. Otherwise, the patch of Next undoes it. A pod that the hook
// inPlaceUpdate holds still waits for the first write.
func Interrupted(pod *corev1.Pod, hooks *pub.Lifecycle) bool {
	switch lifecycle.State(pod) {
	case pub.LifecycleStateNormal, pub.LifecycleStatePreparingNormal:
		return isFalse(pod)
	case pub.LifecycleStatePreparingUpdate:
		return isFalse(pod) && !lifecycle.Held(hooks.InPlaceUpdate, pod)
	default:
		return false
	}
}

// Idle reports whether a pod in the state Normal needs no write of an update in place, without the cost of
// decoding the annotations of the last update, which pods keep. An update that takes the pod out of service makes the
// readiness gate False until it is done. Of others, only the state shows it, which is a label that users can change.
func Idle(pod *corev1.Pod) bool {
	_, grace := pod.Annotations[pub.InPlaceUpdateGraceKey]
	if _, inService := pod.Annotations[pub.InServiceContainersKey]; grace || inService || lifecycle.State(pod) != pub.LifecycleStateNormal {
		return false
	}
	return !planning.HasGate(pod, pub.InPlaceUpdateReady) || isTrue(pod, pub.InPlaceUpdateReady)
}

const (
	// convergenceTime is the time after a change after which a container that runs the image of its spec is
	// not expected to be replaced any more. One that was started before the change may take the termination grace period
	// longer to stop.
	convergenceTime = 30 * time.Second
	// restartTime is the same after the start of a container that was replaced after the change, if
	// the kubelet has seen the change. Only a container that crashed before the kubelet saw the change
	// is replaced again. The kubelet stops it as soon as it sees the change.
	restartTime = 5 * time.Second
)

// Start returns the first write of an update in place. It replaces an update in progress: a newer
// revision and a rollback start at once, also while an image cannot be pulled.
func Start(pod *corev1.Pod, change *Change, target Target, now time.Time) *planning.PodPatch {
	previous, err := readState(pod)
	if err != nil {
		previous = nil // The state is written again.
	}
	state := &pub.InPlaceUpdateState{
		Revision: target.Revision, UpdateTimestamp: metav1.NewTime(now),
		UpdateResources: len(change.Resources) > 0, UpdateImages: len(change.Images) > 0,
	}
	patch := newPatch(pod, "UpdateInPlace")
	for key, value := range target.Labels {
		patch.Labels[key] = &value
	}
	remove(patch, pub.ResizeRefusedKey)
	patch.Conditions = notReady(pod, change, now)
	if target.Grace > 0 && (len(patch.Conditions) > 0 || isFalse(pod)) {
		// The JSON form has whole seconds: round up, so that the period is not shorter.
		state.UpdateTimestamp = metav1.NewTime(now.Add(time.Second - 1).Truncate(time.Second))
		record(pod, state, previous, nil)
		patch.Annotations[pub.InPlaceUpdateGraceKey] = new(writePending(change, target))
		setState(patch, state)
		return patch
	}
	apply(patch, change, state, previous, now)
	return patch
}

// isTrue reports whether the pod has the condition, and it is True.
func isTrue(pod *corev1.Pod, conditionType corev1.PodConditionType) bool {
	c := planning.Condition(pod, conditionType)
	return c != nil && c.Status == corev1.ConditionTrue
}

// isFalse reports whether an update has marked the pod not ready.
func isFalse(pod *corev1.Pod) bool {
	c := planning.Condition(pod, pub.InPlaceUpdateReady)
	return c != nil && c.Status == corev1.ConditionFalse
}

// apply completes the patch with the first batch of the change, and the state with what waits.
//
// A container that a previous update has changed and that has not been started yet is part of the
// batch of its priority: containers of a lower priority wait for it, too.
func apply(patch *planning.PodPatch, change *Change, state, previous *pub.InPlaceUpdateState, now time.Time) {
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
func setState(patch *planning.PodPatch, state *pub.InPlaceUpdateState) {
	text, _ := json.Marshal(state)
	patch.Annotations[pub.InPlaceUpdateStateKey] = new(string(text))
}

// remove removes an annotation if the pod has it.
func remove(patch *planning.PodPatch, key string) {
	delete(patch.Annotations, key)
	if _, ok := patch.Pod.Annotations[key]; ok {
		patch.Annotations[key] = nil
	}
}

// notReady returns the conditions of the start of an update, empty if the pod has them or if the
// change does not take the pod out of service.
func notReady(pod *corev1.Pod, change *Change, now time.Time) []corev1.PodCondition {
	if !planning.HasGate(pod, pub.InPlaceUpdateReady) || !change.TakesDown(pod) || isFalse(pod) {
		return nil
	}
	return planning.GateConditions(pod, corev1.PodCondition{
		Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse, Reason: "StartInPlaceUpdate",
	}, now)
}

// Next returns the next step of the update of the pod. It also sets the condition InPlaceUpdateReady
// of a pod that has the readiness gate and was never updated. Call it for every active pod of the set
// in each step of the planner.
func Next(pod *corev1.Pod, now time.Time) Progress {
	state, err := readState(pod)
	waiting, errPending := readPending(pod)
	switch {
	case errPending != nil || waiting != nil && state == nil:
		return Progress{Refused: "what to change after the grace period is not known"}
	case err != nil || waiting != nil && !revision.Is(pod, waiting.Revision):
		return Progress{Patch: drop(pod, now)}
	case waiting != nil:
		return afterGrace(pod, state, waiting, now)
	}
	if state == nil {
		return Progress{Patch: ready(pod, nil, now)}
	}
	why, never := stuck(pod, state)
	if never {
		return Progress{Refused: why, Stuck: why}
	}
	progress := proceeds(pod, state, now)
	progress.Stuck = why
	return progress
}

// proceeds returns the next step of an update that is not refused and whose grace period has ended.
func proceeds(pod *corev1.Pod, state *pub.InPlaceUpdateState, now time.Time) Progress {
	if patch := resizeAgain(pod, state); patch != nil {
		return Progress{Patch: patch}
	}
	if patch := nextBatch(pod, state, now); patch != nil {
		return Progress{Patch: patch}
	}
	if done(pod, state) {
		return Progress{Patch: ready(pod, state, now)}
	}
	finished, at, ok := converged(pod, state)
	if !ok {
		return Progress{}
	}
	if left := at.Sub(now); left > 0 {
		return Progress{After: min(left, convergenceTime)}
	}
	patch := newPatch(pod, "UpdatedInPlace")
	setState(patch, finished)
	return Progress{Patch: patch}
}

// drop removes the annotations of an update that is not continued, because somebody changed them or
// the revision of the pod, and makes the pod ready. Its containers are what its spec says.
func drop(pod *corev1.Pod, now time.Time) *planning.PodPatch {
	patch := newPatch(pod, "DropInPlaceUpdate")
	if _, err := readState(pod); err != nil {
		remove(patch, pub.InPlaceUpdateStateKey)
	}
	remove(patch, pub.InPlaceUpdateGraceKey)
	return patch.Merge(ready(pod, nil, now))
}

// afterGrace waits for the end of the grace period, then changes the containers.
func afterGrace(pod *corev1.Pod, state *pub.InPlaceUpdateState, waiting *pending, now time.Time) Progress {
	grace := time.Duration(waiting.GraceSeconds) * time.Second
	if left := state.UpdateTimestamp.Add(grace).Sub(now); left > 0 {
		return Progress{After: min(left, grace)}
	}
	change := waiting.change()
	state.UpdateResources = state.UpdateResources || len(change.Resources) > 0
	state.UpdateImages = state.UpdateImages || len(change.Images) > 0
	return Progress{Patch: proceed(pod, state, change, now)}
}

// nextBatch returns the next batch of an update: containers of a lower priority change when those of
// the previous batch have been started and are ready.
func nextBatch(pod *corev1.Pod, state *pub.InPlaceUpdateState, now time.Time) *planning.PodPatch {
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
	return proceed(pod, state, change, now)
}

// proceed returns the patch that writes the first batch of the rest of an update.
func proceed(pod *corev1.Pod, state *pub.InPlaceUpdateState, change *Change, now time.Time) *planning.PodPatch {
	next := &pub.InPlaceUpdateState{
		Revision: state.Revision, UpdateTimestamp: state.UpdateTimestamp,
		UpdateResources: state.UpdateResources, UpdateImages: state.UpdateImages,
		ContainerBatchesRecord: state.ContainerBatchesRecord,
	}
	patch := newPatch(pod, "UpdateInPlace")
	patch.Conditions = notReady(pod, change, now)
	apply(patch, change, next, state, now)
	return patch
}

func newPatch(pod *corev1.Pod, reason string) *planning.PodPatch {
	return &planning.PodPatch{Pod: pod, Reason: reason, Labels: map[string]*string{}, Annotations: map[string]*string{}}
}

// resizeAgain returns the resize of resources of the batches so far that are not in the spec, because
// the program ended between the two writes.
func resizeAgain(pod *corev1.Pod, state *pub.InPlaceUpdateState) *planning.PodPatch {
	left := map[string]corev1.ResourceRequirements{}
	for name, wanted := range state.NextContainerResources {
		if spec := container(pod, name); spec != nil && written(state, name) && !applied(spec, wanted) {
			left[name] = wanted
		}
	}
	if len(left) == 0 {
		return nil
	}
	patch := newPatch(pod, "Resize")
	patch.Resources = left
	return patch
}

// ready returns the patch of a pod whose update is done, nil if it has nothing to write.
func ready(pod *corev1.Pod, state *pub.InPlaceUpdateState, now time.Time) *planning.PodPatch {
	patch := newPatch(pod, "UpdatedInPlace")
	if planning.HasGate(pod, pub.InPlaceUpdateReady) && !isTrue(pod, pub.InPlaceUpdateReady) {
		patch.Conditions = planning.GateConditions(pod, corev1.PodCondition{
			Type: pub.InPlaceUpdateReady, Status: corev1.ConditionTrue,
		}, now)
	}
	if state != nil && len(state.NextContainerResources) > 0 {
		finished := *state
		finished.NextContainerResources = nil
		setState(patch, &finished)
	}
	if len(patch.Conditions)+len(patch.Annotations) == 0 {
		return nil
	}
	return patch
}
