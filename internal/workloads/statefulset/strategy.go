// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
)

// strategy is updateStrategy with its defaults.
type strategy struct {
	// rolling is false for the type OnDelete.
	rolling, paused bool
	// partition is the number of replicas that keep the old revision.
	partition int
	// maxUnavailable is at least one.
	maxUnavailable int
	minReady       time.Duration

	unordered bool
	priority  *pub.UpdatePriorityStrategy

	inPlace, inPlaceOnly bool
	grace                time.Duration

	// claimsFollow reports whether claims follow changes of their templates.
	claimsFollow bool
}

func strategyOf(set *appsv1beta1.StatefulSet) strategy {
	s := strategy{
		rolling:        set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType,
		maxUnavailable: 1,
		claimsFollow:   set.Spec.VolumeClaimUpdateStrategy.Type == appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType,
	}
	spec := set.Spec.UpdateStrategy.RollingUpdate
	if spec == nil {
		return s
	}
	s.paused = spec.Paused
	if spec.Partition != nil {
		s.partition = int(*spec.Partition)
	}
	if spec.MaxUnavailable != nil {
		s.maxUnavailable = atLeastOne(spec.MaxUnavailable, replicasOf(set))
	}
	if spec.MinReadySeconds != nil {
		s.minReady = time.Duration(*spec.MinReadySeconds) * time.Second
	}
	if spec.UnorderedUpdate != nil {
		s.unordered, s.priority = true, spec.UnorderedUpdate.PriorityStrategy
	}
	s.inPlaceOnly = spec.PodUpdatePolicy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	s.inPlace = s.inPlaceOnly || spec.PodUpdatePolicy == appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
	if spec.InPlaceUpdateStrategy != nil {
		s.grace = time.Duration(spec.InPlaceUpdateStrategy.GracePeriodSeconds) * time.Second
	}
	return s
}
