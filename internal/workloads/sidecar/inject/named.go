// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"hash/fnv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// GetsNamed reports whether a new pod gets the revision that injectionStrategy names, and not the latest
// one. matched is the number of pods that have the set. The UID of the request decides for a share of the pods. Each
// call of a webhook has another UID: the injector keeps the first decision. The error is that of an invalid selector
// or percentage.
func GetsNamed(spec *v1alpha1.SidecarSetSpec, of map[string]string, request types.UID, matched int32) (bool, error) {
	named := spec.InjectionStrategy.Revision
	switch update := &spec.UpdateStrategy; {
	case named == nil:
		return false, nil
	case named.Policy != v1alpha1.PartialSidecarSetInjectRevisionPolicy || update.Paused:
		return true, nil
	case update.Selector != nil:
		selector, err := metav1.LabelSelectorAsSelector(update.Selector)
		if err != nil {
			return false, fmt.Errorf("spec.updateStrategy.selector: %w", err)
		}
		if !selector.Matches(labels.Set(of)) {
			return true, nil
		}
	}
	share, err := shareOf(spec.UpdateStrategy.Partition, matched)
	return fraction(request) < share, err
}

// shareOf returns the share of the pods that partition keeps, 0 to 1.
func shareOf(partition *intstr.IntOrString, matched int32) (float64, error) {
	if partition == nil {
		return 0, nil
	}
	if partition.Type == intstr.String {
		percent, err := intstr.GetScaledValueFromIntOrPercent(partition, 100, true)
		if err != nil {
			return 0, fmt.Errorf("spec.updateStrategy.partition: %w", err)
		}
		return float64(percent) / 100, nil
	}
	return min(1, float64(partition.IntVal)/float64(max(1, matched))), nil
}

// fraction returns a number from 0 to 1 for the request, without 1.
func fraction(request types.UID) float64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(request))
	// The high bits of FNV hardly depend on the last characters.
	mixed := hash.Sum64() * 0x9e3779b97f4a7c15
	return float64(mixed>>11) / (1 << 53)
}
