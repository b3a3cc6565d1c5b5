// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

func TestRounding(t *testing.T) {
	for name, test := range map[string]struct {
		replicas                                   int32
		partition, unavailable, surge, scaleAtOnce *intstr.IntOrString
		want                                       numbers
	}{
		"defaults": {
			replicas: 6, want: numbers{replicas: 6, maxUnavailable: 2, scaleMaxUnavailable: math.MaxInt32},
		},
		"no replicas": {
			replicas: 0, partition: percent("50%"), want: numbers{scaleMaxUnavailable: math.MaxInt32},
		},
		"maxUnavailable rounds up without a surge": {
			replicas: 10, unavailable: percent("11%"),
			want: numbers{replicas: 10, maxUnavailable: 2, scaleMaxUnavailable: math.MaxInt32},
		},
		"maxUnavailable rounds down with a surge": {
			replicas: 10, unavailable: percent("19%"), surge: number(1),
			want: numbers{replicas: 10, maxUnavailable: 1, maxSurge: 1, scaleMaxUnavailable: math.MaxInt32},
		},
		"surge rounds up": {
			replicas: 10, unavailable: number(1), surge: percent("11%"),
			want: numbers{replicas: 10, maxUnavailable: 1, maxSurge: 2, scaleMaxUnavailable: math.MaxInt32},
		},
		"partition rounds up": {
			replicas: 10, unavailable: number(1), partition: percent("41%"),
			want: numbers{replicas: 10, partition: 5, maxUnavailable: 1, scaleMaxUnavailable: math.MaxInt32},
		},
		"a percentage that resolves to all replicas": {
			replicas: 3, unavailable: number(1), partition: percent("99%"),
			want: numbers{replicas: 3, partition: 2, maxUnavailable: 1, scaleMaxUnavailable: math.MaxInt32},
		},
		"a percentage of one replica": {
			replicas: 1, unavailable: number(1), partition: percent("50%"),
			want: numbers{replicas: 1, maxUnavailable: 1, scaleMaxUnavailable: math.MaxInt32},
		},
		"100%": {
			replicas: 3, unavailable: number(1), partition: percent("100%"),
			want: numbers{replicas: 3, partition: 3, maxUnavailable: 1, scaleMaxUnavailable: math.MaxInt32},
		},
		"a partition above replicas": {
			replicas: 3, unavailable: number(1), partition: number(7),
			want: numbers{replicas: 3, partition: 3, maxUnavailable: 1, scaleMaxUnavailable: math.MaxInt32},
		},
		"scaleStrategy rounds up": {
			replicas: 10, unavailable: number(1), scaleAtOnce: percent("11%"),
			want: numbers{replicas: 10, maxUnavailable: 1, scaleMaxUnavailable: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.CloneSetSpec{Replicas: &test.replicas}
			spec.UpdateStrategy.Partition, spec.UpdateStrategy.MaxUnavailable = test.partition, test.unavailable
			spec.UpdateStrategy.MaxSurge, spec.ScaleStrategy.MaxUnavailable = test.surge, test.scaleAtOnce
			if got, err := resolve(spec); err != nil || got != test.want {
				t.Errorf("numbers %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestInvalidNumberIsNamed(t *testing.T) {
	f := newFixture(t, 3, unavailable(percent("many")))
	_, err := Plan(f.input())
	if err == nil || !strings.Contains(err.Error(), `spec.updateStrategy.maxUnavailable: "many" is invalid`) {
		t.Errorf("error %v, want one that names the field and the value", err)
	}
}
