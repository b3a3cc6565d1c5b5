// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// node is a model of the kubelet for one pod: it replaces containers whose image changes, reports
// image names as a runtime does, and observes changes late.
type node struct {
	pod *corev1.Pod
	// runs are the images in the specs that the containers were started from.
	runs map[string]string
	// unpullable are images that cannot be pulled. alias are image IDs that differ from the name.
	unpullable map[string]bool
	alias      map[string]string
	started    int
}

func newNode(p *corev1.Pod) *node {
	n := &node{pod: p, runs: map[string]string{}, unpullable: map[string]bool{}, alias: map[string]string{}}
	for i := range p.Spec.Containers {
		n.runs[p.Spec.Containers[i].Name] = p.Spec.Containers[i].Image
	}
	p.Generation, p.Status.ObservedGeneration = 1, 1
	return n
}

// write executes a patch as the API server does: up to the number of its writes that the program
// survives.
func (n *node) write(patch *planning.PodPatch, writes int) {
	if patch == nil {
		return
	}
	p := n.pod
	if len(patch.Conditions) > 0 && writes > 0 {
		writes--
		for _, c := range patch.Conditions {
			i := slices.IndexFunc(p.Status.Conditions, func(o corev1.PodCondition) bool { return o.Type == c.Type })
			if i < 0 {
				p.Status.Conditions = append(p.Status.Conditions, c)
			} else {
				p.Status.Conditions[i] = c
			}
		}
	}
	if len(patch.Labels)+len(patch.Annotations)+len(patch.Images) > 0 && writes > 0 {
		writes--
		set(p.Labels, patch.Labels)
		set(p.Annotations, patch.Annotations)
		for i := range p.Spec.Containers {
			if image, ok := patch.Images[p.Spec.Containers[i].Name]; ok {
				p.Spec.Containers[i].Image = image
				p.Generation++
			}
		}
	}
	if len(patch.Resources) > 0 && writes > 0 {
		p.Generation++
		for i := range p.Spec.Containers {
			if r, ok := patch.Resources[p.Spec.Containers[i].Name]; ok {
				into := &p.Spec.Containers[i].Resources
				into.Requests, into.Limits = with(into.Requests, r.Requests), with(into.Limits, r.Limits)
			}
		}
	}
}

// with returns the resources with those of a patch, as the API server merges them.
func with(list, patch corev1.ResourceList) corev1.ResourceList {
	all := list.DeepCopy()
	for name, quantity := range patch {
		if all == nil {
			all = corev1.ResourceList{}
		}
		all[name] = quantity
	}
	return all
}

func set(values map[string]string, changes map[string]*string) {
	for key, value := range changes {
		if value == nil {
			delete(values, key)
		} else {
			values[key] = *value
		}
	}
}

// observe reports that the kubelet has seen the spec, without replacing containers yet.
func (n *node) observe() { n.pod.Status.ObservedGeneration = n.pod.Generation }

// sync replaces the containers whose image has changed.
func (n *node) sync(at time.Time) {
	for i := range n.pod.Spec.Containers {
		c := &n.pod.Spec.Containers[i]
		status := &n.pod.Status.ContainerStatuses[i]
		changed := n.runs[c.Name] != c.Image
		if !changed && status.State.Running != nil {
			status.Resources = c.Resources.DeepCopy()
			continue
		}
		if n.unpullable[c.Image] {
			status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}
			status.Ready, n.runs[c.Name] = false, ""
			continue
		}
		n.start(c, status, at)
	}
	n.observe()
	n.ready()
}

// crash restarts the first container from the spec that the kubelet has seen.
func (n *node) crash(at time.Time) {
	if n.pod.Status.ObservedGeneration == n.pod.Generation {
		n.sync(at)
	}
	c := n.pod.Spec.Containers[0].DeepCopy()
	if image := n.runs[c.Name]; image != "" {
		c.Image = image
		n.start(c, &n.pod.Status.ContainerStatuses[0], at)
		n.ready()
	}
}

func (n *node) start(c *corev1.Container, status *corev1.ContainerStatus, at time.Time) {
	n.started++
	name, id := c.Image, "id-"+c.Image
	if other := n.alias[c.Image]; other != "" { // The runtime reports another name of the ID.
		name, id = other, "id-"+other
	}
	*status = corev1.ContainerStatus{
		Name: c.Name, Image: name, ImageID: id, ContainerID: fmt.Sprintf("c%d-%s", n.started+1, c.Name),
		Ready: true, RestartCount: status.RestartCount + 1, Resources: c.Resources.DeepCopy(),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}},
	}
	n.runs[c.Name] = c.Image
}

// ready sets the condition Ready.
func (n *node) ready() {
	status := corev1.ConditionTrue
	for i := range n.pod.Status.ContainerStatuses {
		if !n.pod.Status.ContainerStatuses[i].Ready {
			status = corev1.ConditionFalse
		}
	}
	if c := planning.Condition(n.pod, pub.InPlaceUpdateReady); c == nil || c.Status != corev1.ConditionTrue {
		status = corev1.ConditionFalse
	}
	planning.Condition(n.pod, corev1.PodReady).Status = status
}

// current reports whether all containers run what the spec of the pod says.
func (n *node) current() bool {
	for i := range n.pod.Spec.Containers {
		if c := &n.pod.Spec.Containers[i]; n.runs[c.Name] != c.Image {
			return false
		}
	}
	return true
}
