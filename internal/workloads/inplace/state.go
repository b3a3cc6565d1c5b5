// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
)

// pending is the content of the annotation of the grace period: what is written to the pod after it.
type pending struct {
	Revision             string                                 `json:"revision"`
	ContainerImages      map[string]string                      `json:"containerImages,omitempty"`
	ContainerRefMetadata map[string]metav1.ObjectMeta           `json:"containerRefMetadata,omitempty"`
	ContainerResources   map[string]corev1.ResourceRequirements `json:"containerResources,omitempty"`
	// MetaDataPatch is a merge patch of the pod's labels and annotations.
	MetaDataPatch []byte `json:"metaDataPatch,omitempty"`
	GraceSeconds  int32  `json:"graceSeconds,omitempty"`
}

// metadataPatch is the content of MetaDataPatch.
type metadataPatch struct {
	Metadata struct {
		Labels      map[string]*string `json:"labels,omitempty"`
		Annotations map[string]*string `json:"annotations,omitempty"`
	} `json:"metadata"`
}

// readPending returns the update that waits for the end of its grace period, nil if there is none.
func readPending(pod *corev1.Pod) (*pending, error) {
	text := pod.Annotations[pub.InPlaceUpdateGraceKey]
	if text == "" {
		return nil, nil
	}
	p := &pending{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return nil, fmt.Errorf("decode annotation %s: %w", pub.InPlaceUpdateGraceKey, err)
	}
	return p, nil
}

// change returns the change that waits.
func (p *pending) change() *Change {
	c := newChange()
	maps.Copy(c.Images, p.ContainerImages)
	maps.Copy(c.Resources, p.ContainerResources)
	var patch metadataPatch
	if len(p.MetaDataPatch) > 0 && json.Unmarshal(p.MetaDataPatch, &patch) == nil {
		maps.Copy(c.Labels, patch.Metadata.Labels)
		maps.Copy(c.Annotations, patch.Metadata.Annotations)
	}
	for _, meta := range p.ContainerRefMetadata {
		c.set(meta)
	}
	return c
}

// unwritten returns the change that a previous update has not written to the pod. What cannot be read
// is left out.
func unwritten(pod *corev1.Pod) *Change {
	waiting, err := readPending(pod)
	if err != nil || waiting == nil {
		waiting = &pending{}
	}
	change := waiting.change()
	state, err := readState(pod)
	if err != nil || state == nil {
		return change
	}
	maps.Copy(change.Images, state.NextContainerImages)
	for name, wanted := range state.NextContainerResources {
		if spec := container(pod, name); spec != nil && !applied(spec, wanted) {
			change.Resources[name] = wanted
		}
	}
	for _, meta := range state.NextContainerRefMetadata {
		change.set(meta)
	}
	return change
}

// remaining returns the change that the state contains and that no batch has written, nil if there is
// none.
func remaining(state *pub.InPlaceUpdateState) *Change {
	change := newChange()
	maps.Copy(change.Images, state.NextContainerImages)
	for name, wanted := range state.NextContainerResources {
		if !written(state, name) {
			change.Resources[name] = wanted
		}
	}
	for _, meta := range state.NextContainerRefMetadata {
		change.set(meta)
	}
	if len(change.Images)+len(change.Resources)+len(change.Labels)+len(change.Annotations) == 0 {
		return nil
	}
	return change
}

// written reports whether the container was part of a batch of the update.
func written(state *pub.InPlaceUpdateState, name string) bool {
	return slices.ContainsFunc(state.ContainerBatchesRecord, func(batch pub.InPlaceUpdateContainerBatch) bool {
		return slices.Contains(batch.Containers, name)
	})
}

func newChange() *Change {
	return &Change{
		Images: map[string]string{}, Resources: map[string]corev1.ResourceRequirements{},
		Labels: map[string]*string{}, Annotations: map[string]*string{},
	}
}

// set adds labels and annotations to the change.
func (c *Change) set(meta metav1.ObjectMeta) {
	for key, value := range meta.Labels {
		c.Labels[key] = &value
	}
	for key, value := range meta.Annotations {
		c.Annotations[key] = &value
	}
}

// writePending returns the annotation of the grace period. Names, texts and quantities always have a JSON
// form.
func writePending(change *Change, target Target) string {
	var patch metadataPatch
	patch.Metadata.Labels, patch.Metadata.Annotations = change.Labels, change.Annotations
	p := pending{
		Revision:        target.Revision,
		ContainerImages: change.Images, ContainerResources: change.Resources,
		GraceSeconds: int32(min(target.Grace/time.Second, 1<<31-1)),
	}
	if len(change.Labels)+len(change.Annotations) > 0 {
		p.MetaDataPatch, _ = json.Marshal(patch)
	}
	text, _ := json.Marshal(p)
	return string(text)
}

// readState returns the state of the last update, nil if the pod was never updated in place.
func readState(pod *corev1.Pod) (*pub.InPlaceUpdateState, error) {
	text := pod.Annotations[pub.InPlaceUpdateStateKey]
	if text == "" {
		return nil, nil
	}
	state := &pub.InPlaceUpdateState{}
	if err := json.Unmarshal([]byte(text), state); err != nil {
		return nil, fmt.Errorf("decode annotation %s: %w", pub.InPlaceUpdateStateKey, err)
	}
	return state, nil
}

// since returns when the last batch of containers was written.
func since(state *pub.InPlaceUpdateState) time.Time {
	last := state.UpdateTimestamp.Time
	for i := range state.ContainerBatchesRecord {
		if t := state.ContainerBatchesRecord[i].Timestamp.Time; t.After(last) {
			last = t
		}
	}
	return last
}

// record adds to the state what the containers are before they change. If a previous update of a
// container is not done, its container from before that update still counts as the one before.
func record(pod *corev1.Pod, state, previous *pub.InPlaceUpdateState, images map[string]string) {
	left := unfinished(pod, previous)
	if previous != nil && unseen(pod) { // No container can have been started from the current spec.
		left = previous.LastContainerStatuses
	}
	for name, entry := range left {
		if container(pod, name) == nil {
			continue
		}
		if image, changes := images[name]; changes {
			entry.Superseded = append(slices.Clone(entry.Superseded), container(pod, name).Image)
			entry.Superseded = slices.DeleteFunc(entry.Superseded, func(s string) bool { return s == image })
		}
		addStatus(state, name, entry)
	}
	for name := range images {
		status := containerStatus(pod, name)
		if _, known := state.LastContainerStatuses[name]; known || status == nil {
			continue
		}
		addStatus(state, name, pub.InPlaceUpdateContainerStatus{
			ImageID: status.ImageID, ContainerID: status.ContainerID, Image: container(pod, name).Image,
		})
	}
}

func addStatus(state *pub.InPlaceUpdateState, name string, entry pub.InPlaceUpdateContainerStatus) {
	if state.LastContainerStatuses == nil {
		state.LastContainerStatuses = map[string]pub.InPlaceUpdateContainerStatus{}
	}
	state.LastContainerStatuses[name] = entry
}

// unfinished returns the containers of the state that have not been started with their images.
func unfinished(pod *corev1.Pod, state *pub.InPlaceUpdateState) map[string]pub.InPlaceUpdateContainerStatus {
	left := map[string]pub.InPlaceUpdateContainerStatus{}
	if state == nil {
		return left
	}
	for name, entry := range state.LastContainerStatuses {
		if spec := container(pod, name); spec != nil && !started(pod, spec, entry, since(state)) {
			left[name] = entry
		}
	}
	return left
}

// unstarted returns the containers of the batches so far that have not been started with their images.
// A container of a later batch may have an older image that cannot be started.
func unstarted(pod *corev1.Pod, state *pub.InPlaceUpdateState) map[string]pub.InPlaceUpdateContainerStatus {
	left := unfinished(pod, state)
	for name := range state.NextContainerImages {
		delete(left, name)
	}
	for name := range state.NextContainerResources {
		if !written(state, name) {
			delete(left, name)
		}
	}
	return left
}

func containerStatus(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.Name == name {
			return status
		}
	}
	return nil
}
