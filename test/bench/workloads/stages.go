// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// shape is a number of sets and of pods in each.
type shape struct{ sets, pods int }

func (s shape) String() string {
	if s.sets == 1 {
		return "one set"
	}
	return fmt.Sprintf("%d sets", s.sets)
}

// side is one of the two that are compared.
type side struct {
	name string
	// scaled is created and scaled, rolled is rolled. If they differ, rolled adopts what scaled created.
	scaled, rolled kind
	start          func(context.Context, *harness.Server) (*harness.Program, error)
}

// cost is what a stage costs.
type cost struct {
	took, apiServer, controller time.Duration
	// writes are the write requests of the controller, by resource and subresource.
	writes map[string]int
}

func (c cost) total() int {
	sum := 0
	for _, n := range c.writes {
		sum += n
	}
	return sum
}

// median returns the medians of the times, and the writes of the round whose number of writes is the
// median. The number of rounds is odd.
func median(rounds []cost) cost {
	of := func(value func(cost) time.Duration) time.Duration {
		values := make([]time.Duration, len(rounds))
		for i, c := range rounds {
			values[i] = value(c)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	byWrites := slices.SortedStableFunc(slices.Values(rounds), func(a, b cost) int { return a.total() - b.total() })
	return cost{
		took:       of(func(c cost) time.Duration { return c.took }),
		apiServer:  of(func(c cost) time.Duration { return c.apiServer }),
		controller: of(func(c cost) time.Duration { return c.controller }),
		writes:     byWrites[len(rounds)/2].writes,
	}
}

// The stages, by index.
const (
	stageCreate = iota
	stageScale
	stageRoll
	stages
)

// settled returns how long the controllers may write after a stage is complete: longer than Seamark
// collects events. These writes count, the time does not.
func settled(r *harness.Run) time.Duration {
	return harness.Pick(r, 6*time.Second, 200*time.Millisecond)
}

func stageName(i int) string { return [...]string{"create", "scale", "roll"}[i] }

// meter measures stages.
type meter struct {
	run        *harness.Run
	server     *harness.Server
	kubelets   *kubelets
	controller *harness.Program
}

// measure returns the cost of do, which writes to sets of the kind the number of times.
func (m *meter) measure(ctx context.Context, written int, k kind, do func() error) (cost, error) {
	before, err := m.server.Counters(ctx)
	if err != nil {
		return cost{}, err
	}
	used, err := m.controller.Usage()
	if err != nil {
		return cost{}, err
	}
	kubelets, start := m.kubelets.writes.Load(), time.Now()
	if err := do(); err != nil {
		return cost{}, err
	}
	took := time.Since(start)
	if err := harness.Idle(ctx, settled(m.run)); err != nil {
		return cost{}, err
	}
	after, err := m.server.Counters(ctx)
	if err != nil {
		return cost{}, err
	}
	now, err := m.controller.Usage()
	if err != nil {
		return cost{}, err
	}
	difference := after.Since(before)
	c := cost{took: took, apiServer: difference.APIServer, controller: now.CPU - used.CPU, writes: writesOf(difference.Requests)}
	c.subtract("pods/status", int(m.kubelets.writes.Load()-kubelets))
	c.subtract(strings.ToLower(k.gvk.Kind)+"s", written)
	return c, nil
}

// subtract removes writes that the benchmark itself has made.
func (c cost) subtract(resource string, n int) {
	if c.writes[resource] -= n; c.writes[resource] <= 0 {
		delete(c.writes, resource)
	}
}

// writesOf returns the numbers of all write requests, including those that failed.
func writesOf(requests env.Requests) map[string]int {
	out := map[string]int{}
	for request, n := range requests {
		if !request.IsWrite() || request.Resource == "leases" {
			continue
		}
		name := request.Resource
		if request.Subresource != "" {
			name += "/" + request.Subresource
		}
		out[name] += n
	}
	return out
}

// deleteAll deletes all objects of a kind, and not what they own.
func deleteAll(ctx context.Context, s *harness.Server, kind client.Object) error {
	err := s.Client.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.PropagationPolicy("Background"))
	if err != nil {
		return fmt.Errorf("delete all %T: %w", kind, err)
	}
	return nil
}
