// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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

// play runs the first stages of one side, and returns their costs.
func (d side) play(ctx context.Context, r *harness.Run, s *harness.Server, k *kubelets, size shape, last int) (costs []cost, err error) {
	ctx, cancel := context.WithCancel(ctx)
	controller, err := d.start(ctx, s)
	if err != nil {
		cancel()
		return costs, err
	}
	m := &meter{run: r, server: s, kubelets: k, controller: controller}
	progress, wait, err := d.scaled.follow(ctx, s)
	if err != nil {
		cancel()
		return costs, err
	}
	defer func() {
		cancel()
		err = errors.Join(err, wait(), controller.Stop())
	}()
	scale := func(replicas int) error {
		body := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
		err := each(ctx, size.sets, func(ctx context.Context, i int) error {
			return d.scaled.patch(ctx, s, progress, i, types.MergePatchType, body)
		})
		return errors.Join(err, progress.until(ctx, size.sets, replicas, false, k.failure))
	}
	if err := d.warmUp(ctx, r, s, progress, k, warmPods(r)); err != nil {
		return costs, err
	}
	for stage, do := range []func() (cost, error){
		func() (cost, error) {
			return m.measure(ctx, size.sets, d.scaled, func() error {
				return errors.Join(d.scaled.create(ctx, s, size.sets, size.pods), progress.until(ctx, size.sets, size.pods, false, k.failure))
			})
		},
		func() (cost, error) {
			return m.measure(ctx, 2*size.sets, d.scaled, func() error { return errors.Join(scale(size.pods*2/3), scale(size.pods)) })
		},
		func() (cost, error) { return d.roll(ctx, m, progress, size) },
	} {
		if stage > last {
			break
		}
		c, err := do()
		if err != nil {
			return costs, fmt.Errorf("%s: %w", stageName(stage), err)
		}
		r.Log("%s, %s, %s: %.1f s, API server %.1f s, controller %.1f s, writes %v", d.name, size, stageName(stage),
			c.took.Seconds(), c.apiServer.Seconds(), c.controller.Seconds(), c.writes)
		costs = append(costs, c)
	}
	return costs, nil
}

func stageName(i int) string { return [...]string{"create", "scale", "roll"}[i] }

// warmPods is the number of pods of the set that warms up: a new API server has short buffers for
// watches, and ends them when many pods change, which makes the next stage slower by chance.
func warmPods(r *harness.Run) int { return harness.Pick(r, 1500, 10) }

// warmUp creates a set with the number of pods, and deletes it and its pods when they are ready.
func (d side) warmUp(ctx context.Context, r *harness.Run, s *harness.Server, p *progress, k *kubelets, pods int) error {
	if err := d.scaled.create(ctx, s, 1, pods); err != nil {
		return err
	}
	if err := p.until(ctx, 1, pods, false, k.failure); err != nil {
		return fmt.Errorf("start %s: %w", d.name, err)
	}
	set, err := d.scaled.build(0, 0)
	if err != nil {
		return err
	}
	if err := s.Client.Delete(ctx, set, client.PropagationPolicy("Background")); err != nil {
		return fmt.Errorf("delete set: %w", err)
	}
	if err := p.until(ctx, 0, 0, false, k.failure); err != nil {
		return err
	}
	if err := errors.Join(deleteAll(ctx, s, &corev1.Pod{}), deleteAll(ctx, s, &appsv1.ControllerRevision{})); err != nil {
		return err
	}
	return harness.Idle(ctx, settled(r))
}

// roll changes the image of all sets.
func (d side) roll(ctx context.Context, m *meter, p *progress, size shape) (cost, error) {
	if d.rolled.gvk != d.scaled.gvk {
		var wait func() error
		var err error
		following, cancel := context.WithCancel(ctx)
		if p, wait, err = d.rolled.follow(following, m.server); err != nil {
			cancel()
			return cost{}, err
		}
		defer func() {
			cancel()
			_ = wait()
		}()
		err = errors.Join(d.rolled.create(ctx, m.server, size.sets, size.pods), p.until(ctx, size.sets, size.pods, true, m.kubelets.failure))
		if err != nil {
			return cost{}, fmt.Errorf("adopt: %w", err)
		}
		if err := harness.Idle(ctx, settled(m.run)); err != nil {
			return cost{}, err
		}
	}
	body := `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/team/main:1.2.4"}]`
	return m.measure(ctx, size.sets, d.rolled, func() error {
		err := each(ctx, size.sets, func(ctx context.Context, i int) error {
			return d.rolled.patch(ctx, m.server, p, i, types.JSONPatchType, body)
		})
		return errors.Join(err, p.until(ctx, size.sets, size.pods, true, m.kubelets.failure))
	})
}

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
