// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1beta1"
)

// statefulSetsOf returns the StatefulSets that have the form of their kind.
func statefulSetsOf(objects []*unstructured.Unstructured) []*set {
	var found []*set
	for _, object := range objects {
		from := &v1beta1.StatefulSet{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, from) != nil {
			continue
		}
		s := &set{
			object: object, template: &from.Spec.Template, selector: selectorOf(from.Spec.Selector),
			replicas: ptr.Deref(from.Spec.Replicas, 1), hooks: from.Spec.Lifecycle,
			strategy: "spec.updateStrategy.rollingUpdate.unorderedUpdate.priorityStrategy",
			reserves: len(from.Spec.ReserveOrdinals) > 0, updateRevision: from.Status.UpdateRevision,
			expands: from.Spec.VolumeClaimUpdateStrategy.Type == v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType,
		}
		if update := from.Spec.UpdateStrategy.RollingUpdate; update != nil {
			s.rolling = from.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
			s.several = from.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && update.MaxUnavailable != nil && update.MaxUnavailable.String() != "1"
			s.inPlace = update.PodUpdatePolicy == v1beta1.InPlaceIfPossiblePodUpdateStrategyType ||
				update.PodUpdatePolicy == v1beta1.InPlaceOnlyPodUpdateStrategyType
			if update.UnorderedUpdate != nil {
				s.priority = update.UnorderedUpdate.PriorityStrategy
			}
		}
		if policy := from.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
			s.deletes = policy.WhenDeleted == v1beta1.DeletePersistentVolumeClaimRetentionPolicyType ||
				policy.WhenScaled == v1beta1.DeletePersistentVolumeClaimRetentionPolicyType
		}
		if from.Spec.Ordinals != nil {
			s.start = from.Spec.Ordinals.Start
		}
		found = append(found, s)
	}
	return found
}
