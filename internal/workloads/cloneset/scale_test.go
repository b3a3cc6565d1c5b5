// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

func partition(n int32) func(*v1alpha1.CloneSet) {
	return func(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.Partition = number(n) }
}

func surge(n int32) func(*v1alpha1.CloneSet) {
	return func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.MaxSurge, set.Spec.UpdateStrategy.MaxUnavailable = number(n), number(0)
	}
}

func paused(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.Paused = true }

func scaleLimit(n int32) func(*v1alpha1.CloneSet) {
	return func(set *v1alpha1.CloneSet) { set.Spec.ScaleStrategy.MaxUnavailable = number(n) }
}

func all(changes ...func(*v1alpha1.CloneSet)) func(*v1alpha1.CloneSet) {
	return func(set *v1alpha1.CloneSet) {
		for _, c := range changes {
			c(set)
		}
	}
}

func TestScale(t *testing.T) {
	runCases(t, map[string]planCase{
		"no pods":       {replicas: 2, want: []string{"+new", "+new"}},
		"nothing to do": {replicas: 2, pods: "a, b"},
		"terminating and finished pods do not count": {replicas: 1, pods: "a terminating, b failed", want: []string{"+new", "-b Finished"}},
		"a finished pod that the hook holds":         {replicas: 0, change: holding, pods: "a held failed", want: []string{"~a PreparingDelete"}},
		"pods that others delete, with a finalizer of the hook": {
			replicas: 2, change: finalizing, pods: "a terminating, b terminating app=other, c terminating foreign, d terminating PreparingDelete",
			want: []string{"+new", "+new", "~a PreparingDelete"},
		},
		"finished pods of others":                                 {replicas: 0, pods: "a failed app=other, b failed orphan"},
		"creates as many as maxUnavailable permits":               {replicas: 5, change: scaleLimit(2), pods: "a notReady, b", want: []string{"+new"}},
		"creates none while a pod lacks the handler of preNormal": {replicas: 5, change: all(scaleLimit(1), preNormal), pods: "a, b PreparingNormal"},
		"a pod that returns lacks the handler of preNormal": {
			replicas: 1, change: preNormal, pods: "a PreparingDelete",
			want: []string{"~a PreparingNormal"},
		},
		"creates none while too many are unavailable":        {replicas: 5, change: scaleLimit(1), pods: "a notReady, b notReady"},
		"creates old pods while the partition requires them": {replicas: 4, change: partition(2), pods: "a old, b", want: []string{"+new", "+old"}},
		"scale in, not ready first":                          {replicas: 1, pods: "a, b notReady, c ready=1m", want: []string{"-b ScaleIn", "-c ScaleIn"}},
		"scale in, lower deletion cost first":                {replicas: 1, pods: "a cost=10, b cost=-1, c", want: []string{"-b ScaleIn", "-c ScaleIn"}},
		"scale in, old revisions first":                      {replicas: 3, change: partition(1), pods: "a old, b old, c cost=-5, d", want: []string{"-a ScaleIn"}},
		"scale in, old revisions until the partition is met": {
			replicas: 2, change: partition(1), pods: "a old, b old, c, d",
			want: []string{"-a ScaleIn", "-c ScaleIn"},
		},
		"scale in below the partition": {replicas: 1, change: partition(4), pods: "a old, b old, c old", want: []string{"-a ScaleIn", "-b ScaleIn"}},
		"scale in leaves enough available pods": {
			replicas: 4, change: unavailable(number(1)), pods: "a old, b old, c old, d notReady, e notReady",
			// Old pods come first. Only 3 pods are available, and 3 must be: no old pod may be deleted.
		},
		"named pods that are not ready at once": {
			replicas: 3, change: all(naming("a"), unavailable(number(0)), surge(1)), pods: "a notReady, b, c", want: []string{"+new", "-a SpecifiedDelete"},
		},
		"named pods that are ready as maxUnavailable permits": {
			replicas: 4, change: all(naming("a", "b", "c"), unavailable(number(2))), pods: "a held, b held, c held, d held", want: []string{"+new", "+new", "-a SpecifiedDelete", "-b SpecifiedDelete"},
		},
		"pods that are not ready count": {replicas: 4, change: all(naming("a"), unavailable(number(1))), pods: "a, b notReady, c, d"},
		"named pods before others when replicas decreases": {
			replicas: 2, change: naming("c"), pods: "a cost=-9, b, c", want: []string{"-c SpecifiedDelete"},
		},
		"the label names a pod, whatever its value is": {
			replicas: 2, pods: "a, b apps.kruise.io/specified-delete=false",
			want: []string{"+new", "-b SpecifiedDelete"},
		},
		"a surge replaces a named pod first":      {replicas: 2, change: all(naming("a"), surge(1)), pods: "a, b", want: []string{"+new"}},
		"a surge also while the update is paused": {replicas: 2, change: all(naming("a"), surge(1), paused), pods: "a, b", want: []string{"+new"}},
		"the replacement is available":            {replicas: 2, change: all(naming("a"), surge(1)), pods: "a, b, c", want: []string{"-a SpecifiedDelete"}},
		"a set that is being deleted":             {replicas: 2, change: func(set *v1alpha1.CloneSet) { at := ago(0); set.DeletionTimestamp = &at }},
		"pods that were never pods of the set": {
			replicas: 0, pods: "a orphan anonymous, b orphan apps.kruise.io/cloneset-instance-id=c, d orphan controller-revision-hash=web-unknown",
		},
		"adoption and release come before everything else": {
			replicas: 5, pods: "a orphan, b app=other, c foreign, d orphan app=other", want: []string{"~a Adopted", "~b Released"},
		},
		"a pod that is released while creates are limited": {
			replicas: 3, change: all(holding, excluding, scaleLimit(1)), pods: "a PreparingDelete named, b, c notReady",
			want: []string{"-a PreparedDelete"},
		},
		"scale in continues while a hook is pending": {
			replicas: 1, change: holding, pods: "a held PreparingDelete, b held, c cost=5, d cost=9",
			want: []string{"-c ScaleIn", "~b PreparingDelete"},
		},
	})
}

func TestMinReadySecondsDelayAvailability(t *testing.T) {
	f := newFixture(t, 2, naming("a"), unavailable(number(1)), func(set *v1alpha1.CloneSet) {
		set.Spec.MinReadySeconds = 30
	})
	f.pod("a").pod("b ready=10s")
	out := f.wantSteps(t)
	if out.RequeueAfter != 20*time.Second || out.Status.ReadyReplicas != 2 || out.Status.AvailableReplicas != 1 {
		t.Errorf("requeue after %s with %d ready and %d available pods, want 20s, 2 and 1",
			out.RequeueAfter, out.Status.ReadyReplicas, out.Status.AvailableReplicas)
	}
}

func TestScaleInTakesPodsOfCrowdedZones(t *testing.T) {
	f := newFixture(t, 2, func(set *v1alpha1.CloneSet) {
		set.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}}
	})
	f.pod("a old, b old, c old") // The template has changed.
	f.nodes = map[string]map[string]string{"node-a": {"zone": "x"}, "node-b": {"zone": "y"}, "node-c": {"zone": "y"}}
	paused(f.set)
	f.wantSteps(t, "-b ScaleIn")
}

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
	_, err := Plan(f.set, f.input(), false)
	expect.ErrorWith(t, "Plan()", `spec.updateStrategy.maxUnavailable: "many" is invalid`, err)
}
