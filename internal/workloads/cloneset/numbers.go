// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// numbers are the fields of the spec that are numbers or percentages of replicas, as numbers.
type numbers struct {
	replicas int
	// partition is how many pods keep an old revision, at most replicas.
	partition int
	// maxUnavailable bounds the pods that are taken down.
	maxUnavailable int
	// maxSurge is how many pods may exist in addition to replicas.
	maxSurge int
	// scaleMaxUnavailable bounds the pods that are created and not available yet.
	scaleMaxUnavailable int
}

// resolve returns the numbers of the spec. Percentages round up, except that of maxUnavailable if
// there is a surge: it rounds down, because the surge already lets the update progress.
func resolve(spec *v1alpha1.CloneSetSpec) (numbers, error) {
	n := numbers{replicas: 1, scaleMaxUnavailable: math.MaxInt32}
	if spec.Replicas != nil {
		n.replicas = int(*spec.Replicas)
	}
	update := &spec.UpdateStrategy
	var err error
	if n.partition, err = scaled("spec.updateStrategy.partition", update.Partition, 0, n.replicas, true); err != nil {
		return n, err
	}
	if p := update.Partition; p != nil && p.Type == intstr.String && p.StrVal != "100%" && n.partition >= n.replicas {
		n.partition = max(n.replicas-1, 0)
	}
	n.partition = min(n.partition, n.replicas)
	if n.maxSurge, err = scaled("spec.updateStrategy.maxSurge", update.MaxSurge, 0, n.replicas, true); err != nil {
		return n, err
	}
	unavailable := update.MaxUnavailable
	if unavailable == nil {
		value := intstr.FromString(v1alpha1.DefaultCloneSetMaxUnavailable)
		unavailable = &value
	}
	n.maxUnavailable, err = scaled("spec.updateStrategy.maxUnavailable", unavailable, 0, n.replicas, n.maxSurge == 0)
	if err != nil {
		return n, err
	}
	n.scaleMaxUnavailable, err = scaled("spec.scaleStrategy.maxUnavailable",
		spec.ScaleStrategy.MaxUnavailable, n.scaleMaxUnavailable, n.replicas, true)
	return n, err
}

// scaled returns the number that the value means, or the fallback if there is no value.
func scaled(field string, value *intstr.IntOrString, fallback, replicas int, roundUp bool) (int, error) {
	if value == nil {
		return fallback, nil
	}
	number, err := intstr.GetScaledValueFromIntOrPercent(value, replicas, roundUp)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is invalid: must be a number or a percentage", field, value.String())
	}
	return max(number, 0), nil
}
