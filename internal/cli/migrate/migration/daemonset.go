// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// checkDaemonSets returns the findings about DaemonSets that the CRD refuses.
func checkDaemonSets(ctx context.Context, c Cluster, objects []*unstructured.Unstructured) ([]Finding, error) {
	found, err := checkWorkloads(ctx, objects, c.Markers)
	for i := range found {
		if strings.HasPrefix(found[i].Field, "spec.lifecycle.preNormal") {
			found[i].OpenKruise, found[i].Action = "ignores it", "remove the field"
		}
	}
	return found, err
}

// daemonSetsOf returns the DaemonSets that have the form of their kind.
func daemonSetsOf(objects []*unstructured.Unstructured) []*set {
	var found []*set
	for _, object := range objects {
		from := &v1alpha1.DaemonSet{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, from) != nil {
			continue
		}
		rolling := ptr.Deref(from.Spec.UpdateStrategy.RollingUpdate, v1alpha1.RollingUpdateDaemonSet{})
		found = append(found, &set{
			object: object, template: &from.Spec.Template, selector: selectorOf(from.Spec.Selector), hooks: from.Spec.Lifecycle,
			inPlace:        rolling.Type == v1alpha1.InplaceRollingUpdateType && !onDelete(&from.Spec),
			updateRevision: object.GetName() + "-" + from.Status.DaemonSetHash, daemon: &from.Spec,
		})
	}
	return found
}

func onDelete(spec *v1alpha1.DaemonSetSpec) bool {
	return spec.UpdateStrategy.Type == v1alpha1.OnDeleteDaemonSetStrategyType
}

// percentage reports whether the partition is one.
func percentage(spec *v1alpha1.DaemonSetSpec) bool {
	partition := ptr.Deref(spec.UpdateStrategy.RollingUpdate, v1alpha1.RollingUpdateDaemonSet{}).Partition
	return partition != nil && partition.Type == intstr.String
}

// daemonChanges returns what a take-over changes for a DaemonSet, besides what it changes for all sets.
func (s *set) daemonChanges() []Finding {
	return applying(
		rule{!onDelete(s.daemon) && percentage(s.daemon), s.finding(Changes,
			"spec.updateStrategy.rollingUpdate.partition",
			"takes the percentage of the number of nodes in the status, which is 0 for a new set",
			"takes the percentage of the nodes that fit now", "")},
		rule{!onDelete(s.daemon) && s.daemon.MinReadySeconds > 0, s.finding(Changes, "spec.minReadySeconds",
			"replaces pods that are not ready for this time yet without regard to maxUnavailable: two updates in short order can take all pods down",
			"counts such a pod as one that the update makes unavailable", "")},
	)
}

// daemonChangesBack returns what a return to OpenKruise changes for a DaemonSet, besides what it changes for all sets.
func (s *set) daemonChangesBack() []Finding {
	annotations := s.object.GetAnnotations()
	return applying(
		rule{percentage(s.daemon), s.finding(Blocks, "spec.updateStrategy.rollingUpdate.partition",
			"until version 1.8, cannot read any DaemonSet while one has a percentage: its manager ends after two minutes, again and again",
			"takes the percentage of the nodes that fit now", "set the number of nodes")},
		rule{annotations[v1alpha1.ExemptUnreachableNodesKey] == "true", s.finding(Changes, "metadata.annotations["+v1alpha1.ExemptUnreachableNodesKey+"]",
			"ignores it: pods on unreachable nodes use up maxUnavailable", "does not count these pods", "")},
		rule{
			s.daemon.ScaleStrategy != nil && s.daemon.ScaleStrategy.PartitionedScaling && annotations[v1alpha1.ProgressiveCreatePodKey] != "true",
			s.finding(Changes, "spec.scaleStrategy.partitionedScaling",
				"removes the field from objects of v1alpha1: nodes without a pod get one, whatever the partition",
				"limits the creation of pods to the nodes that partition permits",
				"set the annotation "+v1alpha1.ProgressiveCreatePodKey+`: "true" instead`),
		},
	)
}
