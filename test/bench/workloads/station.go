// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// The stages, by index.
const (
	stageCreate = iota
	stageScale
	stageRoll
	stages
)

// side is one of the two that are compared.
type side struct {
	name string
	// scaled is created and scaled, rolled is rolled. If they differ, rolled adopts what scaled created.
	scaled, rolled kind
	start          func(*harness.Server) *harness.Program
}

// station is a side that is ready to be measured.
type station struct {
	side
	*harness.Bench
	server     *harness.Server
	kubelets   *kubelets
	controller *harness.Program
	// progress follows the sets of each kind.
	progress map[string]*progress
}

// warmPods is the number of pods of the set that warms up: a new API server has short buffers for
// watches, and ends them when many pods change, which makes the next stage slower by chance.
func warmPods(b *harness.Bench) int { return harness.Pick(b, 1500, 10) }

// open starts a station and warms it up.
func (d side) open(b *harness.Bench) *station {
	b.Helper()
	st := newStation(b, d, d.scaled, d.rolled)
	st.create(d.scaled, shape{1, warmPods(b)})
	st.reset(d.scaled)
	return st
}

// newStation starts a station that follows the kinds.
func newStation(b *harness.Bench, d side, kinds ...kind) *station {
	b.Helper()
	s := b.Server(env.FeatureGates(gates))
	st := &station{side: d, Bench: b, server: s, kubelets: startKubelets(b, s), progress: map[string]*progress{}}
	for _, k := range kinds {
		st.progress[k.gvk.Kind] = k.follow(b, s)
	}
	st.controller = d.start(s)
	return st
}

// settled returns how long the controllers may write after a stage is complete: longer than Seamark
// collects events. These writes count, the time does not.
func (st *station) settled() time.Duration {
	return harness.Pick(st.Bench, 6*time.Second, 200*time.Millisecond)
}

// until waits until n sets have the number of replicas, all ready, and with update all updated.
func (st *station) until(k kind, size shape, update bool) {
	st.Helper()
	st.Must(st.progress[k.gvk.Kind].until(st.Context(), size.sets, size.pods, update, st.kubelets.failure))
}

// create creates sets and waits until they are complete.
func (st *station) create(k kind, size shape) {
	st.Helper()
	st.Each(size.sets, harness.Clients, func(ctx context.Context, i int) error { return k.create(ctx, st.server.Client, i, size.pods) })
	st.until(k, size, false)
}

func (st *station) patch(k kind, sets int, patchType types.PatchType, body string) {
	st.Helper()
	st.Each(sets, harness.Clients, func(ctx context.Context, i int) error {
		generation, err := k.patch(ctx, st.server.Client, i, patchType, body)
		st.progress[k.gvk.Kind].wrote(i, generation)
		return err
	})
}

// measure runs a stage. The stages are run in their order.
func (st *station) measure(stage int, size shape) cost {
	st.Helper()
	var c cost
	switch stage {
	case stageCreate:
		c = st.cost(size.sets, st.scaled, func() { st.create(st.scaled, size) })
	case stageScale:
		c = st.cost(2*size.sets, st.scaled, func() {
			for _, pods := range []int{size.pods * 2 / 3, size.pods} {
				st.patch(st.scaled, size.sets, types.MergePatchType, fmt.Sprintf(`{"spec":{"replicas":%d}}`, pods))
				st.until(st.scaled, shape{size.sets, pods}, false)
			}
		})
	default:
		if st.rolled.gvk != st.scaled.gvk {
			st.create(st.rolled, size)
			st.until(st.rolled, size, true)
			st.Idle(st.settled())
		}
		c = st.cost(size.sets, st.rolled, func() {
			st.patch(st.rolled, size.sets, types.JSONPatchType,
				`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/team/main:1.2.4"}]`)
			st.until(st.rolled, size, true)
		})
	}
	st.Logf("%s, %+v, stage %d: %.1f s, API server %.1f s, controller %.1f s, writes %v", st.name, size, stage,
		c.took.Seconds(), c.apiServer.Seconds(), c.controller.Seconds(), c.writes)
	return c
}

// reset deletes the sets of the kinds, all pods, and what sets leave behind: nothing collects garbage.
func (st *station) reset(kinds ...kind) {
	st.Helper()
	for _, k := range kinds {
		st.Must(deleteAll(st.Context(), st.server, k.object()))
		st.until(k, shape{}, false)
	}
	st.Must(deleteAll(st.Context(), st.server, &appsv1.ControllerRevision{}))
	st.Until("no pods exist", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		if err := deleteAll(ctx, st.server, &corev1.Pod{}); err != nil {
			return false, err
		}
		pods := &corev1.PodList{}
		err := st.server.Client.List(ctx, pods, client.InNamespace(fixture.Namespace), client.Limit(1))
		return len(pods.Items) == 0, err
	})
	st.Idle(st.settled())
}

// deleteAll deletes all objects of a kind, and not what they own.
func deleteAll(ctx context.Context, s *harness.Server, kind client.Object) error {
	err := s.Client.DeleteAllOf(ctx, kind, client.InNamespace(fixture.Namespace), client.PropagationPolicy("Background"))
	if err != nil {
		return fmt.Errorf("delete all %T: %w", kind, err)
	}
	return nil
}

// cost is what a stage costs.
type cost struct {
	took, apiServer, controller time.Duration
	// writes are the write requests of the controller, by resource and subresource.
	writes map[string]int
}

// cost returns the cost of do, which writes to sets of the kind the number of times.
func (st *station) cost(written int, k kind, do func()) cost {
	st.Helper()
	used, kubelets, binds := st.controller.Usage(), st.kubelets.writes.Load(), st.kubelets.binds.Load()
	c := cost{}
	difference := st.server.Counted(func() {
		start := time.Now()
		do()
		c.took = time.Since(start)
		st.Idle(st.settled())
	})
	c.apiServer, c.controller = difference.CPU, st.controller.Usage().CPU-used.CPU
	c.writes = writesOf(difference.Requests)
	c.subtract("pods/status", int(st.kubelets.writes.Load()-kubelets))
	c.subtract("pods/binding", int(st.kubelets.binds.Load()-binds))
	c.subtract(strings.ToLower(k.gvk.Kind)+"s", written)
	return c
}

func (c cost) total() int {
	sum := 0
	for _, n := range c.writes {
		sum += n
	}
	return sum
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
		out[strings.TrimSuffix(request.Resource+"/"+request.Subresource, "/")] += n
	}
	return out
}

// median returns the medians of the times, and the writes of the round whose number of writes is the
// median. The number of rounds is odd.
func median(rounds []cost) cost {
	by := func(value func(cost) time.Duration) cost {
		return slices.SortedStableFunc(slices.Values(rounds), func(a, b cost) int { return int(value(a) - value(b)) })[len(rounds)/2]
	}
	return cost{
		took:       by(func(c cost) time.Duration { return c.took }).took,
		apiServer:  by(func(c cost) time.Duration { return c.apiServer }).apiServer,
		controller: by(func(c cost) time.Duration { return c.controller }).controller,
		writes:     by(func(c cost) time.Duration { return time.Duration(c.total()) }).writes,
	}
}
