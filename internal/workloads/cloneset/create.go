// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"maps"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// scaleOut creates the missing pods, as many as scaleStrategy.maxUnavailable permits. The surge is how
// many pods above replicas the set uses now. It returns the pods.
func (p *planner) scaleOut(surge int) ([]*corev1.Pod, error) {
	total, old, unavailable := 0, 0, 0
	for _, m := range p.members {
		if m.deleted || m.state == pub.LifecycleStatePreparingDelete && p.excluding() {
			continue
		}
		total++
		// A pod that waits for the hook inPlaceUpdate still serves, and may wait for the new pods.
		if !m.available && (!m.ready || m.state != pub.LifecycleStatePreparingUpdate) {
			unavailable++
		}
		if !m.updated && !m.leaving() {
			old++
		}
	}
	n := min(p.replicas+surge-total-len(p.reserving()), max(p.scaleMaxUnavailable-unavailable, 0), workload.MostCreates)
	if n <= 0 {
		return nil, nil
	}
	fromOld := min(n, max(p.partition-old, 0))
	if p.revisions.Current.Name == p.revisions.Update.Name {
		fromOld = 0
	}
	pods := make([]*corev1.Pod, 0, n)
	assign := p.newNames()
	for i := range n {
		rev, template := p.revisions.Update, &p.Set.Spec.Template
		if i < fromOld {
			var err error
			rev = p.revisions.Current
			if template, err = p.template(rev); err != nil {
				return nil, err
			}
		}
		serial, id := assign.next()
		pods = append(pods, p.newPod(rev, template, serial, id))
	}
	p.out.Creates = pods
	return pods, nil
}

// newPod returns a complete pod: no further write follows, except the first one of the conditions of
// its readiness gates.
func (p *planner) newPod(
	rev *appsv1.ControllerRevision, template *corev1.PodTemplateSpec, serial int64, id string,
) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       p.Set.Namespace,
			Name:            p.Set.Name + "-" + id,
			Labels:          union(template.Labels, revisionLabels(rev.Name)),
			Annotations:     union(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.Set, Kind())},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	labels, annotations := lifecycle.Labels(lifecycle.Begin(p.Set.Spec.Lifecycle, pod), p.Now)
	maps.Copy(pod.Labels, labels)
	maps.Copy(pod.Annotations, annotations)
	pod.Labels[v1alpha1.CloneSetInstanceID] = id
	pod.Annotations[v1alpha1.PodSerialAnnotationKey] = strconv.FormatInt(serial, 10)
	switch p.Set.Spec.UpdateStrategy.Type {
	case v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType:
		workload.AddGate(&pod.Spec, pub.InPlaceUpdateReady)
	}
	if lifecycle.Gated(p.Set.Spec.Lifecycle) {
		workload.AddGate(&pod.Spec, pub.KruisePodReadyConditionType)
	}
	p.mount(pod, id)
	return pod
}

// revisionLabels returns the labels of a pod that contain its revision.
func revisionLabels(name string) map[string]string {
	return map[string]string{
		appsv1.ControllerRevisionHashLabelKey:  name,
		appsv1.DefaultDeploymentUniqueLabelKey: revision.Hash(name),
	}
}

// union returns a new map with the entries of all maps. Later maps take precedence.
func union(all ...map[string]string) map[string]string {
	result := make(map[string]string)
	for _, m := range all {
		maps.Copy(result, m)
	}
	return result
}

// clamp returns n as an int32.
func clamp(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) } //nolint:gosec // Bounded.
