// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// createReplicas creates missing replicas and deletes finished ones, which are created again when they
// are gone. With OrderedReady it stops at the first replica that is not available, and repairs it if a
// revision does. It then reports false: excess pods are not deleted, and the update starts with no further
// pods. With Parallel it stops when as many replicas are unavailable as scaleStrategy.maxUnavailable
// permits, or when the step creates as many as a step may. Replicas that cannot be created now do not count.
func (p *planner) createReplicas() bool {
	budget := p.scaleBudget()
	for i := range p.replicas {
		r := &p.replicas[i]
		switch {
		case r.pod == nil && (r.blocked || !p.create(r)):
			if !p.ordered {
				// The replica does not delay the others.
				continue
			}
		case r.pod == nil:
		case r.pod != nil && planning.Finished(r.pod) && !planning.Terminating(r.pod):
			p.remove(r.pod, "Finished")
		case r.pod != nil && r.pod == p.blocker:
			if !p.busy(r.pod) && !inTransition(r.pod) {
				p.startUpdate(r.pod)
			}
		case !r.blocked && p.available(r.pod):
			continue
		}
		if p.ordered {
			return false
		}
		if budget--; budget <= 0 || len(p.out.Creates) >= planning.MostCreates {
			break
		}
	}
	return true
}

// scaleBudget returns how many replicas may be unavailable while replicas are created.
func (p *planner) scaleBudget() int {
	if p.ordered || p.set.Spec.ScaleStrategy == nil || p.set.Spec.ScaleStrategy.MaxUnavailable == nil {
		return math.MaxInt
	}
	return atLeastOne(p.set.Spec.ScaleStrategy.MaxUnavailable, len(p.replicas))
}

// atLeastOne returns the value, which may be a percentage of total, rounded down, but at least one.
func atLeastOne(value *intstr.IntOrString, total int) int {
	scaled, err := intstr.GetScaledValueFromIntOrPercent(value, total, false)
	if err != nil {
		return 1 // The schema does not permit such a value.
	}
	return max(scaled, 1)
}

// create adds the replica and its claims. It waits while a claim of an earlier pod is being deleted, and then returns false.
func (p *planner) create(r *replica) bool {
	rev := p.History.Update
	if r.old {
		rev = p.History.Current
	}
	if !p.createClaims(r.name, rev) {
		return false
	}
	p.out.Creates = append(p.out.Creates, p.newPod(r, rev))
	p.Event("SuccessfulCreate", r.name, "Created pod %s of revision "+rev.Name+".", "Created %d pods of revision "+rev.Name+": %s.")
	return true
}

// deleteExcess deletes the pods that are not replicas, the highest ordinal first. With OrderedReady it
// deletes one after the other, and does not delete a pod that is not available while a pod with a
// lower ordinal is not available either, and reports whether there are no excess pods: the update starts
// with no further pods before.
func (p *planner) deleteExcess() bool {
	if !p.ordered {
		for _, pod := range p.excess {
			p.removeExcess(pod)
		}
		return true
	}
	if len(p.excess) == 0 {
		return true
	}
	pod := p.excess[0]
	if planning.Terminating(pod) {
		return false
	}
	if p.recovering(pod) && slices.ContainsFunc(p.excess[1:], p.recovering) {
		return false
	}
	p.removeExcess(pod)
	return false
}

// recovering reports whether the pod is not available but may become it. A finished pod never does:
// the built-in StatefulSet waits for it forever.
func (p *planner) recovering(pod *corev1.Pod) bool {
	return !planning.Finished(pod) && !p.available(pod)
}

func (p *planner) removeExcess(pod *corev1.Pod) {
	if !planning.Terminating(pod) {
		p.remove(pod, "ScaleDown")
	}
}
