// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/follow"
)

// The rows of the measure of plans.
const (
	rowPlansTime      = "10 markers are created: until all plans of 3,000 pods are stored"
	rowPlansWrites    = "plan writes of these 100 nodes"
	rowPlansConflicts = "conflicts of all writes to markers and plans"
)

func plansMeasure() harness.Measure {
	return harness.Measure{
		Name: "manager/plans",
		Rows: []string{rowPlansTime, rowPlansWrites, rowPlansConflicts},
		Run:  measurePlans,
	}
}

// measurePlans creates markers that all select all pods while the manager runs, and then writes
// the same plans again without the manager.
func measurePlans(ctx context.Context, r *harness.Run) (harness.Output, error) {
	nodes, pods, markers := harness.Pick(r, 100, 4), harness.Pick(r, 3000, 20), harness.Pick(r, 10, 2)
	c, err := newCluster(ctx, r, nodes, pods, func(int) string { return "all" })
	if err != nil {
		return harness.Output{}, err
	}
	manager, err := c.Manager(ctx)
	if err != nil {
		return harness.Output{}, err
	}
	if err := c.everyNodeHasAPlan(ctx); err != nil {
		return harness.Output{}, err
	}
	if err := harness.Idle(ctx, 3*time.Second); err != nil {
		return harness.Output{}, err
	}
	before, err := c.Counters(ctx)
	if err != nil {
		return harness.Output{}, err
	}
	took, err := c.markersUntilPlanned(ctx, markers)
	if err != nil {
		return harness.Output{}, err
	}
	r.Log("all plans are stored after %.2f s", took.Seconds())
	// Status writes of the markers follow.
	if err := harness.Idle(ctx, 4*time.Second); err != nil {
		return harness.Output{}, err
	}
	after, err := c.Counters(ctx)
	if err != nil {
		return harness.Output{}, err
	}
	profiles, err := c.Profiled(ctx, harness.Pick(r, 10*time.Second, time.Second), map[string]*harness.Program{"seamark-manager": manager}, c.editMarker)
	if err != nil {
		return harness.Output{}, err
	}
	if err := manager.Stop(); err != nil {
		return harness.Output{}, err
	}
	bare, err := c.writePlans(ctx)
	if err != nil {
		return harness.Output{}, err
	}
	requests := after.Since(before).Requests
	conflicts := requests.Conflicts("podprobemarkers") + requests.Conflicts("nodepodprobes")
	return harness.Output{Profiles: profiles, Results: []harness.Result{
		{
			Name: rowPlansTime, Value: took.Seconds(), Unit: "s", Floor: bare.Seconds(),
			FloorName: "bare writes of the same plans", Budget: harness.AtMost(2),
			Note: "Markers settle for 0.3 s before plans are written. Where the bare writes alone take longer than the budget, the API server is the limit.",
		},
		{Name: rowPlansWrites, Value: float64(requests.Writes("nodepodprobes", "")), Budget: harness.AtMost(float64(nodes))},
		{Name: rowPlansConflicts, Value: float64(conflicts), Budget: harness.AtMost(0)},
	}, Notes: []string{fmt.Sprintf(
		"%d nodes with %d pods; each of the %d markers selects all pods, and half of the probes are network probes. Time starts before the first marker is created.",
		nodes, pods, markers)}}, nil
}

// markersUntilPlanned creates markers and returns the time until all plans have all probes.
func (c *cluster) markersUntilPlanned(ctx context.Context, markers int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	watcher, err := client.NewWithWatch(c.Config, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		return 0, fmt.Errorf("build client: %w", err)
	}
	total, want, all := 0, c.pods*markers, make(chan struct{})
	probes := map[string]int{}
	wait, err := follow.Objects(ctx, watcher, &v1alpha1.NodePodProbeList{}, func(event watch.Event) {
		plan, ok := event.Object.(*v1alpha1.NodePodProbe)
		if !ok || total == want {
			return
		}
		total += plannedProbes(event.Type, plan) - probes[plan.Name]
		if probes[plan.Name] = plannedProbes(event.Type, plan); total == want {
			close(all)
		}
	})
	if err != nil {
		return 0, fmt.Errorf("follow plans: %w", err)
	}
	began := time.Now()
	err = harness.Each(ctx, markers, 1, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("marker-%d", i)
		m := marker(name, "all", "example.com/"+name)
		if i%2 == 0 {
			m.Spec.Probes[0].Probe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}
		}
		return c.create(ctx, m)
	})
	if err != nil {
		return 0, err
	}
	select {
	case <-all:
		return time.Since(began), nil
	case <-ctx.Done():
		err := wait()
		return 0, errors.Join(fmt.Errorf("%d of %d probes are planned: %w", total, want, ctx.Err()), err)
	}
}

// plannedProbes returns the number of probes of the plan after the event.
func plannedProbes(event watch.EventType, plan *v1alpha1.NodePodProbe) (n int) {
	if event == watch.Deleted {
		return 0
	}
	for _, pod := range plan.Spec.PodProbes {
		n += len(pod.Probes)
	}
	return n
}

// editMarker changes the period of a marker's probe, which changes all plans, and waits for a second.
func (c *cluster) editMarker(ctx context.Context) error {
	m := &v1alpha1.PodProbeMarker{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "marker-0"}, m); err != nil {
		return fmt.Errorf("get marker: %w", err)
	}
	before := m.DeepCopy()
	probe := &m.Spec.Probes[0].Probe
	probe.PeriodSeconds = max(probe.PeriodSeconds, 10)%20 + 1
	if err := c.Client.Patch(ctx, m, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("edit marker: %w", err)
	}
	return harness.Idle(ctx, time.Second)
}

// writePlans empties all plans and returns how long it takes to write them again.
func (c *cluster) writePlans(ctx context.Context) (time.Duration, error) {
	var bodies [][]byte
	var names []string
	err := c.eachPlan(ctx, func(plan *v1alpha1.NodePodProbe) error {
		body, err := json.Marshal(map[string]any{"spec": plan.Spec})
		names, bodies = append(names, plan.Name), append(bodies, body)
		return err //nolint:wrapcheck // the types of a plan always encode
	})
	if err != nil {
		return 0, err
	}
	write := func(body func(i int) []byte) error {
		return harness.Each(ctx, len(names), clients, func(ctx context.Context, i int) error {
			plan := &v1alpha1.NodePodProbe{}
			plan.Name = names[i]
			if err := c.Client.Patch(ctx, plan, client.RawPatch(types.MergePatchType, body(i))); err != nil {
				return fmt.Errorf("write plan %s: %w", names[i], err)
			}
			return nil
		})
	}
	if err := write(func(int) []byte { return []byte(`{"spec":{"podProbes":null}}`) }); err != nil {
		return 0, err
	}
	began := time.Now()
	err = write(func(i int) []byte { return bodies[i] })
	return time.Since(began), err
}
