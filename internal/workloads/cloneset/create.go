// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// scaleOut creates the missing pods, as many as scaleStrategy.maxUnavailable permits. The surge is how
// many pods above replicas the set uses now.
func (p *planner) scaleOut(surge int) {
	total, unavailable := 0, 0
	for _, m := range p.members {
		if m.deleted || m.state == pub.LifecycleStatePreparingDelete && p.excluding() {
			continue
		}
		total++
		// A pod that waits for the hook inPlaceUpdate still serves, and may wait for the new pods.
		if !m.available && (!m.ready || m.state != pub.LifecycleStatePreparingUpdate) {
			unavailable++
		}
	}
	n := min(p.replicas+surge-total-len(p.reserving()), max(p.scaleMaxUnavailable-unavailable, 0), planning.MostCreates)
	if n <= 0 {
		return
	}
	old, _ := p.remaining()
	fromOld := min(n, max(p.partition-len(old), 0))
	if p.History.Current.Name == p.History.Update.Name {
		fromOld = 0
	}
	assign := p.newNames(n)
	for i := range n {
		rev := p.History.Update
		if i < fromOld {
			rev = p.History.Current
		}
		serial, id := assign.next()
		p.out.Creates = append(p.out.Creates, p.newPod(rev, serial, id))
	}
}

// newPod returns the pod of the revision with the serial number and the instance ID.
func (p *planner) newPod(rev *appsv1.ControllerRevision, serial int64, id string) *corev1.Pod {
	labels := revisionLabels(rev.Name)
	labels[v1alpha1.CloneSetInstanceID] = id
	pod := p.NewPod(rev, p.Set.Name+"-"+id, labels)
	pod.Annotations[v1alpha1.PodSerialAnnotationKey] = strconv.FormatInt(serial, 10)
	pod.Labels[pub.LifecycleStateKey] = string(pub.LifecycleStatePreparingNormal)
	return pod
}

// revisionLabels returns the labels of a pod that contain its revision.
func revisionLabels(name string) map[string]string {
	return map[string]string{
		appsv1.ControllerRevisionHashLabelKey:  name,
		appsv1.DefaultDeploymentUniqueLabelKey: revision.Hash(name),
	}
}
