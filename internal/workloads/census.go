// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	metrics "github.com/seamark-dev/seamark/internal/workloads/metrics"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler/cloneset"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler/statefulset"
)

// census counts the sets in the cache for the metrics.
type census struct {
	// leads is closed when this process leads.
	leads <-chan struct{}
	// cloneSets and statefulSets are nil if their controller is not enabled.
	cloneSets, statefulSets workload.Store
}

// count returns the counts of all sets by kind, nil if this process does not lead.
func (c *census) count() map[string][]metrics.Count {
	select {
	case <-c.leads:
	default:
		return nil
	}
	counts := map[string][]metrics.Count{}
	if c.cloneSets != nil {
		counts[cloneset.Kind().Kind] = countAll(c.cloneSets, countCloneSet)
	}
	if c.statefulSets != nil {
		counts[statefulset.Kind().Kind] = countAll(c.statefulSets, countStatefulSet)
	}
	return counts
}

func countAll[T any](store workload.Store, count func(T) metrics.Count) []metrics.Count {
	counts := []metrics.Count{}
	for _, object := range store.GetIndexer().List() {
		if set, ok := object.(T); ok {
			counts = append(counts, count(set))
		}
	}
	return counts
}

func countCloneSet(set *v1alpha1.CloneSet) metrics.Count {
	count := metrics.Count{
		Desired: 1, Ready: set.Status.ReadyReplicas, Available: set.Status.AvailableReplicas, Updated: set.Status.UpdatedReplicas,
		Updating: set.Status.UpdatedReplicas < set.Status.ExpectedUpdatedReplicas,
	}
	if set.Spec.Replicas != nil {
		count.Desired = *set.Spec.Replicas
	}
	for _, c := range set.Status.Conditions {
		count.Failing = count.Failing || c.Status == corev1.ConditionTrue &&
			(c.Type == v1alpha1.CloneSetConditionFailedScale || c.Type == v1alpha1.CloneSetConditionFailedUpdate)
	}
	return count
}

func countStatefulSet(set *v1beta1.StatefulSet) metrics.Count {
	count := metrics.Count{
		Desired: 1, Ready: set.Status.ReadyReplicas, Available: set.Status.AvailableReplicas, Updated: set.Status.UpdatedReplicas,
		Updating: set.Status.CurrentRevision != set.Status.UpdateRevision,
	}
	if set.Spec.Replicas != nil {
		count.Desired = *set.Spec.Replicas
	}
	for _, c := range set.Status.Conditions {
		count.Failing = count.Failing || c.Status == corev1.ConditionTrue &&
			(c.Type == v1beta1.FailedCreatePod || c.Type == v1beta1.FailedUpdatePod)
	}
	return count
}
