// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// planned follows the stored plans.
type planned struct {
	mu sync.Mutex
	// slices are the plans, and periods how many pods have a marker's probe with a period, as "MARKER PERIOD".
	slices       map[string]*seamarkv1alpha1.ProbePlan
	pods, probes int
	periods      map[string]int
	changed      chan struct{}
}

func followPlans(b *harness.Bench, s *harness.Server) *planned {
	b.Helper()
	p := &planned{slices: map[string]*seamarkv1alpha1.ProbePlan{}, periods: map[string]int{}, changed: make(chan struct{}, 1)}
	fixture.Follow(b, s, &seamarkv1alpha1.ProbePlanList{}, func(event watch.Event) {
		if slice, is := event.Object.(*seamarkv1alpha1.ProbePlan); is {
			p.see(slice)
		}
	})
	return p
}

func (p *planned) see(slice *seamarkv1alpha1.ProbePlan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := func(slice *seamarkv1alpha1.ProbePlan, n int) {
		p.pods += n * len(slice.Pods)
		for _, pod := range slice.Pods {
			p.probes += n * len(pod.Probes)
			for _, probe := range pod.Probes {
				p.periods[fmt.Sprintf("%s %d", markerOf(probe), probe.Probe.PeriodSeconds)] += n
			}
		}
	}
	if old := p.slices[slice.Name]; old != nil {
		count(old, -1)
	}
	count(slice, 1)
	p.slices[slice.Name] = slice
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// markerOf returns the marker of a planned probe, whose name is MARKER#PROBE.
func markerOf(probe v1alpha1.ContainerProbe) string {
	name, _, _ := strings.Cut(probe.Name, "#")
	return name
}

// until waits until the condition holds.
func (p *planned) until(b *harness.Bench, what string, holds func() bool) {
	b.Helper()
	met := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return holds()
	}
	for !met() {
		select {
		case <-p.changed:
		case <-time.After(5 * time.Minute):
			b.Fatalf("waited 5 minutes for a plan until %s", what)
		}
	}
}

// of returns copies of the plans with the marker's pods.
func (p *planned) of(marker string) (out []*seamarkv1alpha1.ProbePlan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, slice := range p.slices {
		for _, pod := range slice.Pods {
			if len(pod.Probes) > 0 && markerOf(pod.Probes[0]) == marker {
				out = append(out, slice.DeepCopy())
				break
			}
		}
	}
	return out
}
