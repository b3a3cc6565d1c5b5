// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager measures the writes of plans and the resources of the manager.
package manager

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// Measures returns the measures in the order of the page.
func Measures() []harness.Measure {
	return []harness.Measure{
		{Name: "manager/plans", Rows: []string{rowPlansTime, rowPlansWrites, rowPlansConflicts}, Run: measurePlans},
		{Name: "manager/replace", Rows: []string{rowReplaceWrites, rowReplaceCPU, rowReplaceOwn}, Run: measureReplace},
		{Name: "manager/resources", Run: measureResources, Rows: []string{
			rowCPU, rowCPULarge, rowMemory, rowMemoryLarge, rowPeakLarge, rowMemoryPerPod, rowStart,
			rowStatusWrites,
		}},
		{Name: "manager/stale", Run: measureStale, Rows: []string{rowStaleRate, rowStaleCPU, rowStaleHeartbeat}},
		{Name: "manager/elections", Run: measureElections, Rows: []string{rowElectAll, rowHandOver, rowHandOverP99, rowHandOverCost}},
		{Name: "manager/neighbour", Run: measureNeighbour, Rows: []string{rowNeighbour, rowNeighbourP90}},
		{Name: "manager/large", Run: measureLarge, Rows: []string{
			rowLargePlans, rowLargeMarks, rowLargeEdit, rowLargeEditCPU, rowLargeEditMost, rowLargeRestart, rowLargeStart, rowLargeStartCPU,
			rowLargeScrape, rowLargeSize, rowLargeMemory, rowLargePeak,
		}},
	}
}

// The rows of the measure of plans.
const (
	rowPlansTime      = "10 markers are created: until all plans of 3,000 pods are stored"
	rowPlansWrites    = "plan writes of these 100 nodes"
	rowPlansConflicts = "conflicts of all writes to markers and plans"
)

// measurePlans creates markers that all select all pods while the manager runs, and then writes
// the same plans again without the manager.
func measurePlans(b *harness.Bench) harness.Output {
	markers := harness.Pick(b, 10, 2)
	c := fixture.Cluster{Name: "all", Nodes: harness.Pick(b, 100, 4), Pods: harness.Pick(b, 3000, 20)}
	s := b.Server()
	c.Create(b, s)
	manager := s.Manager()
	b.Until("every node has a NodePodProbe", 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		plans, err := fixture.Plans(ctx, s)
		return len(plans) == c.Nodes, err
	})
	settle := harness.Pick(b, 4*time.Second, time.Second)
	b.Idle(settle)
	slices := (c.Pods/c.Nodes + slicing.MaxPods - 1) / slicing.MaxPods
	var took time.Duration
	requests := s.Counted(func() {
		took = markersUntilPlanned(b, s, markers, c.Pods*markers)
		// Status writes of the markers follow.
		b.Idle(settle)
	}).Requests
	manager.Stop()
	return harness.Output{
		Results: []harness.Result{
			{
				Name: rowPlansTime, Value: took.Seconds(), Unit: "s", Floor: writePlans(b, s).Seconds(),
				FloorName: "bare writes of the same plans", Budget: harness.AtMost(2),
			},
			{
				Name: rowPlansWrites, Value: float64(requests.Writes("nodepodprobes", "") + requests.Writes("probeplans", "")),
				Budget: harness.AtMost(float64(c.Nodes * (slices + 1))),
			},
			{
				Name:   rowPlansConflicts,
				Value:  float64(requests.Conflicts("podprobemarkers") + requests.Conflicts("nodepodprobes") + requests.Conflicts("probeplans")),
				Budget: harness.AtMost(0),
			},
		},
		Notes: []string{fmt.Sprintf(
			"%d nodes with %d pods; each of the %d markers selects all pods, and half of the probes are network probes. Time starts before the first marker is created.",
			c.Nodes, c.Pods, markers)},
	}
}

// markersUntilPlanned creates markers and returns the time until the plans have so many probes.
func markersUntilPlanned(b *harness.Bench, s *harness.Server, markers, want int) time.Duration {
	b.Helper()
	plans := followPlans(b, s)
	began := time.Now()
	for i := range markers {
		name := fmt.Sprintf("marker-%d", i)
		marker := fixture.Marker(name, "all", "example.com/"+name).Build()
		if i%2 == 0 {
			marker.Spec.Probes[0].Probe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}
		}
		b.Must(s.Client.Create(b.Context(), marker))
	}
	plans.until(b, fmt.Sprintf("they have all %d probes", want), func() bool { return plans.probes == want })
	return time.Since(began)
}

// writePlans empties all ProbePlans and returns how long it takes to write them again.
func writePlans(b *harness.Bench, s *harness.Server) time.Duration {
	b.Helper()
	var plans []*seamarkv1alpha1.ProbePlan
	b.Must(cluster.Each(b.Context(), s.Client, &seamarkv1alpha1.ProbePlanList{}, func(slice *seamarkv1alpha1.ProbePlan) { plans = append(plans, slice) }))
	write := func(pods func(slice *seamarkv1alpha1.ProbePlan) []v1alpha1.PodProbe) time.Duration {
		began := time.Now()
		b.Each(len(plans), harness.Clients, func(ctx context.Context, i int) error {
			changed := plans[i].DeepCopy()
			changed.Pods = pods(plans[i])
			err := s.Client.Update(ctx, changed)
			plans[i].ResourceVersion = changed.ResourceVersion
			return err
		})
		return time.Since(began)
	}
	write(func(*seamarkv1alpha1.ProbePlan) []v1alpha1.PodProbe { return nil })
	return write(func(slice *seamarkv1alpha1.ProbePlan) []v1alpha1.PodProbe { return slice.Pods })
}

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
