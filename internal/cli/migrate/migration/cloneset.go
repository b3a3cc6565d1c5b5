// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// cloneSetVersions returns how the fields of other versions differ, as far as OpenKruise has them.
func cloneSetVersions() map[string]string {
	return map[string]string{"v1beta1": ": move the fields of updateStrategy.rollingUpdate to updateStrategy and its podUpdatePolicy to updateStrategy.type, " +
		"and set scaleStrategy.disablePVCReuse: true in place of enablePVCReuse: false, its default"}
}

// cloneSets returns the number of CloneSets.
func cloneSets(c Cluster) int { return len(c.Objects["CloneSet"]) }

// cloneSetsOf returns the CloneSets that have the form of their kind.
func cloneSetsOf(objects []*unstructured.Unstructured) []*set {
	var found []*set
	for _, object := range objects {
		from := &v1alpha1.CloneSet{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, from) != nil {
			continue
		}
		kind := from.Spec.UpdateStrategy.Type
		found = append(found, &set{
			object: object, template: &from.Spec.Template, selector: selectorOf(from.Spec.Selector),
			replicas: ptr.Deref(from.Spec.Replicas, 1), hooks: from.Spec.Lifecycle,
			inPlace: kind == v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType ||
				kind == v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType,
			priority: from.Spec.UpdateStrategy.PriorityStrategy, strategy: "spec.updateStrategy.priorityStrategy",
			held:         from.Spec.Lifecycle != nil && from.Spec.Lifecycle.PreDelete != nil,
			excludes:     from.Spec.ScaleStrategy.ExcludePreparingDelete || from.Labels[v1alpha1.CloneSetScalingExcludePreparingDeleteKey] == "true",
			podsToDelete: from.Spec.ScaleStrategy.PodsToDelete, scatters: from.Spec.UpdateStrategy.ScatterStrategy,
			updateRevision: from.Status.UpdateRevision,
		})
	}
	return found
}

func (s *set) clone() bool { return s.object.GetKind() == "CloneSet" }
