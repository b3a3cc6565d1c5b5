// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// ImageID returns the ID of an image. Images whose names differ only in the suffix "-alias" have the
// same ID.
func ImageID(image string) string { return "sha256:" + strings.TrimSuffix(image, "-alias") }

// kubelet lets something happen to one pod or one claim.
func (w *World) kubelet() {
	w.protect()
	pods := w.store.state().Pods
	if len(pods) == 0 {
		return
	}
	pod := pods[w.Rand.IntN(len(pods))]
	if w.faults.Involuntary && w.Rand.IntN(25) == 0 && pod.Status.Phase == corev1.PodRunning {
		w.status(pod.Name, func(s *corev1.PodStatus) { w.crash(s) })
		return
	}
	w.progress(pod)
}

// kubelets lets every pod make progress.
func (w *World) kubelets() {
	w.protect()
	for _, pod := range w.store.state().Pods {
		w.progress(pod)
	}
}

// protect deletes claims whose owners are all gone, as the garbage collector does, and removes the finalizer
// of claims that are being deleted and that no scheduled pod uses. It gives the others a volume of the size
// that they request.
func (w *World) protect() {
	state := w.store.state()
	for _, claim := range state.Claims {
		if w.collect(state, claim) {
			continue
		}
		if claim.DeletionTimestamp != nil && !slices.ContainsFunc(state.Pods, func(p *corev1.Pod) bool { return uses(p, claim.Name) }) {
			w.change(Write{By: "kubelet", Kind: Claims, Verb: "finalize", Name: claim.Name}, func(o Object) { o.SetFinalizers(nil) })
			continue
		}
		if size := claim.Spec.Resources.Requests; !equality.Semantic.DeepEqual(claim.Status.Capacity, size) {
			w.change(Write{By: "provisioner", Kind: Claims, Verb: "provision", Name: claim.Name}, func(o Object) {
				if stored, ok := o.(*corev1.PersistentVolumeClaim); ok {
					stored.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size}
				}
			})
		}
	}
}

// collect is the garbage collector: it deletes a claim with owners none of which exists, and removes the
// owners that are gone from one that has another. It identifies owners by their UIDs, and reports whether it
// wrote.
func (w *World) collect(state *State, claim *corev1.PersistentVolumeClaim) bool {
	gone := func(ref metav1.OwnerReference) bool {
		return ref.UID != state.Set.GetUID() && !slices.ContainsFunc(state.Pods, func(p *corev1.Pod) bool { return p.UID == ref.UID })
	}
	left := slices.DeleteFunc(slices.Clone(claim.OwnerReferences), gone)
	switch write := (Write{By: "garbage collector", Kind: Claims, Name: claim.Name}); {
	case claim.DeletionTimestamp != nil || len(left) == len(claim.OwnerReferences):
		return false
	case len(left) > 0:
		write.Verb = "update"
		w.change(write, func(o Object) { o.SetOwnerReferences(left) })
	default:
		write.Verb = "delete"
		_ = w.apply(write, func() error { return w.store.Delete("", Claims, keyOf(claim.Name), preconditions{}) })
	}
	return true
}

// uses reports whether a pod protects a claim from its removal. One without a node does not.
func uses(pod *corev1.Pod, claim string) bool {
	return pod.Spec.NodeName != "" && mounts(pod, claim)
}

func mounts(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

// progress is one step of the life of a pod.
func (w *World) progress(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		if planning.Ready(pod) {
			w.status(pod.Name, func(s *corev1.PodStatus) { w.condition(s, corev1.PodReady, false) })
		} else if len(pod.Finalizers) == 0 {
			_ = w.apply(Write{By: "kubelet", Kind: Pods, Verb: "remove", Name: pod.Name}, func() error {
				w.store.Remove("", Pods, keyOf(pod.Name))
				return nil
			})
		}
	case planning.Finished(pod):
	case pod.Spec.NodeName == "":
		if w.hasClaims(pod) {
			w.change(Write{By: "kubelet", Kind: Pods, Verb: "bind", Name: pod.Name}, func(o Object) {
				p := o.(*corev1.Pod)
				p.Spec.NodeName = cmp.Or(nodefit.Target(p), "node")
				w.condition(&p.Status, corev1.PodScheduled, true)
			})
		}
	case pod.Status.Phase == corev1.PodPending && !w.hasClaims(pod):
		// The kubelet does not start a pod whose claim is being deleted.
	default:
		w.status(pod.Name, func(s *corev1.PodStatus) { w.run(pod, s) })
	}
}

func (w *World) hasClaims(pod *corev1.Pod) bool {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		o, ok := w.store.Tables[Claims].Objects[keyOf(v.PersistentVolumeClaim.ClaimName)]
		if !ok || o.GetDeletionTimestamp() != nil {
			return false
		}
	}
	return true
}

// run starts containers, restarts those with another image, and updates the conditions.
func (w *World) run(pod *corev1.Pod, s *corev1.PodStatus) {
	now := metav1.NewTime(w.store.now.Truncate(time.Second))
	started := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	if s.Phase == corev1.PodPending {
		s.Phase, s.StartTime, s.PodIP = corev1.PodRunning, &now, "10.0.0.1"
		w.condition(s, corev1.PodInitialized, true)
		s.ContainerStatuses = nil
		for _, c := range pod.Spec.Containers {
			s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
				Name: c.Name, Image: c.Image, ImageID: ImageID(c.Image), State: started,
			})
		}
		w.condition(s, corev1.ContainersReady, false)
		w.condition(s, corev1.PodReady, false)
		return
	}
	ready := true
	for i := range s.ContainerStatuses {
		c, spec := &s.ContainerStatuses[i], &pod.Spec.Containers[i]
		switch {
		case c.Image != spec.Image && c.Ready && w.Rand.IntN(2) == 0:
			// The old container has stopped.
			c.Ready, c.State = false, corev1.ContainerState{}
		case c.Image != spec.Image || c.State.Running == nil:
			c.Image, c.ImageID, c.Ready, c.State = spec.Image, ImageID(spec.Image), false, started
			c.RestartCount++
		default:
			c.Ready = true
		}
		ready = ready && c.Ready
	}
	w.resize(pod, s)
	w.condition(s, corev1.ContainersReady, ready)
	for _, gate := range pod.Spec.ReadinessGates {
		c := planning.Condition(pod, gate.ConditionType)
		ready = ready && c != nil && c.Status == corev1.ConditionTrue
	}
	w.condition(s, corev1.PodReady, ready)
}

// resize gives the containers the resources of the spec. In runs with involuntary disruptions, the node may have no room
// for them, now or ever, until the faults end.
func (w *World) resize(pod *corev1.Pod, s *corev1.PodStatus) {
	resizes := false
	for i := range s.ContainerStatuses {
		have := s.ContainerStatuses[i].Resources
		resizes = resizes || have != nil && !equality.Semantic.DeepEqual(*have, pod.Spec.Containers[i].Resources)
	}
	pending := resizes && w.chaos && w.faults.Involuntary && w.Rand.IntN(2) == 0
	if pending || planning.Condition(&corev1.Pod{Status: *s}, corev1.PodResizePending) != nil {
		w.condition(s, corev1.PodResizePending, pending)
	}
	if pending {
		planning.Condition(&corev1.Pod{Status: *s}, corev1.PodResizePending).Reason = OneOf(w.Rand, corev1.PodReasonDeferred, corev1.PodReasonInfeasible)
		return
	}
	for i := range s.ContainerStatuses {
		s.ContainerStatuses[i].Resources = pod.Spec.Containers[i].Resources.DeepCopy()
	}
}

// crash ends one container of a pod.
func (w *World) crash(s *corev1.PodStatus) {
	if len(s.ContainerStatuses) == 0 {
		return
	}
	c := &s.ContainerStatuses[w.Rand.IntN(len(s.ContainerStatuses))]
	c.Ready = false
	c.RestartCount++
	w.condition(s, corev1.ContainersReady, false)
	w.condition(s, corev1.PodReady, false)
}

func (w *World) status(name string, change func(*corev1.PodStatus)) {
	w.change(Write{By: "kubelet", Kind: Pods, Verb: "status", Name: name}, func(o Object) { change(&o.(*corev1.Pod).Status) })
}

// condition sets a condition, with the time if the status changes.
func (w *World) condition(s *corev1.PodStatus, conditionType corev1.PodConditionType, value bool) {
	status := corev1.ConditionFalse
	if value {
		status = corev1.ConditionTrue
	}
	now := metav1.NewTime(w.store.now.Truncate(time.Second))
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == conditionType {
			if c.Status != status {
				c.Status, c.LastTransitionTime = status, now
			}
			return
		}
	}
	s.Conditions = append(s.Conditions, corev1.PodCondition{Type: conditionType, Status: status, LastTransitionTime: now})
}
