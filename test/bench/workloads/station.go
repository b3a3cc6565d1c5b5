// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// station is a side that is ready to be measured, with an API server of its own. Both stations of a
// shape exist at the same time and are measured in turn, because the machine becomes slower and faster
// within minutes. The one that is not measured is idle.
type station struct {
	side
	size     shape
	meter    *meter
	progress *progress
	// close stops everything that the station has started.
	close func() error
}

// open starts a station and warms it up.
func (d side) open(ctx context.Context, r *harness.Run, size shape) (st *station, err error) {
	part := r.Nested()
	ctx, cancel := context.WithCancel(ctx)
	st = &station{side: d, size: size, close: func() error {
		cancel()
		return part.End()
	}}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.close())
		}
	}()
	s, err := part.Server(ctx, env.FeatureGates(gates))
	if err != nil {
		return st, err
	}
	k, err := startKubelets(ctx, part, s)
	if err != nil {
		return st, err
	}
	controller, err := d.start(ctx, s)
	if err != nil {
		return st, err
	}
	st.meter = &meter{run: part, server: s, kubelets: k, controller: controller}
	progress, wait, err := d.scaled.follow(ctx, s)
	if err != nil {
		return st, err
	}
	part.OnEnd(wait)
	st.progress = progress
	return st, d.warmUp(ctx, r, s, progress, k, warmPods(r))
}

// measure runs a stage. The stages are run in their order.
func (st *station) measure(ctx context.Context, stage int) (cost, error) {
	s, size, failure := st.meter.server, st.size, st.meter.kubelets.failure
	scale := func(replicas int) error {
		body := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
		err := each(ctx, size.sets, func(ctx context.Context, i int) error {
			return st.scaled.patch(ctx, s, st.progress, i, types.MergePatchType, body)
		})
		return errors.Join(err, st.progress.until(ctx, size.sets, replicas, false, failure))
	}
	var c cost
	var err error
	switch stage {
	case stageCreate:
		c, err = st.meter.measure(ctx, size.sets, st.scaled, func() error {
			return errors.Join(st.scaled.create(ctx, s, size.sets, size.pods), st.progress.until(ctx, size.sets, size.pods, false, failure))
		})
	case stageScale:
		c, err = st.meter.measure(ctx, 2*size.sets, st.scaled, func() error { return errors.Join(scale(size.pods*2/3), scale(size.pods)) })
	default:
		c, err = st.roll(ctx, st.meter, st.progress, size)
	}
	if err != nil {
		return cost{}, fmt.Errorf("%s, %s, %s: %w", st.name, size, stageName(stage), err)
	}
	st.meter.run.Log("%s, %s, %s: %.1f s, API server %.1f s, controller %.1f s, writes %v", st.name, size, stageName(stage),
		c.took.Seconds(), c.apiServer.Seconds(), c.controller.Seconds(), c.writes)
	return c, nil
}

// clear deletes all sets and pods.
func (st *station) clear(ctx context.Context) error {
	return reset(ctx, st.meter.run, st.meter.server, st.progress, st.meter.kubelets, st.rolled, st.scaled)
}

// reset deletes the sets of the kinds and all pods.
func reset(ctx context.Context, r *harness.Run, s *harness.Server, p *progress, k *kubelets, kinds ...kind) error {
	for _, one := range kinds {
		set, err := one.build(0, 0)
		if err != nil {
			return err
		}
		if err := deleteAll(ctx, s, set); err != nil {
			return err
		}
	}
	return errors.Join(p.until(ctx, 0, 0, false, k.failure), discard(ctx, s), harness.Idle(ctx, settled(r)))
}

// discard deletes what sets leave behind: nothing collects garbage.
func discard(ctx context.Context, s *harness.Server) error {
	if err := deleteAll(ctx, s, &appsv1.ControllerRevision{}); err != nil {
		return err
	}
	return harness.Until(ctx, "no pods exist", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		if err := deleteAll(ctx, s, &corev1.Pod{}); err != nil {
			return false, err
		}
		pods := &corev1.PodList{}
		err := s.Client.List(ctx, pods, client.InNamespace(namespace), client.Limit(1))
		return len(pods.Items) == 0, err
	})
}

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
	return reset(ctx, r, s, p, k, d.scaled)
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
