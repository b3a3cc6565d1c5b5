// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/chaos/programs"
)

// rollEvery is the number of steps of a fault from the replacement of one process to that of the next one.
const rollEvery = 3

// roll replaces the first of the processes, as a rolling update does.
func roll(queue *[]*programs.Program, change func(*programs.Spec)) error {
	first := (*queue)[:1]
	*queue = (*queue)[1:]
	return restart(first, syscall.SIGTERM, change)
}

// previous rolls managers and agents back to the previous release and forward again, each time in an order of its own.
// The CRDs stay, as after `helm rollback`. seamark-workloads has no earlier release.
func (w *world) previous() map[string]fault {
	folder := os.Getenv(previousVariable)
	if _, err := os.Stat(folder); err != nil {
		return nil
	}
	back := func(s *programs.Spec) { s.Path = filepath.Join(folder, filepath.Base(s.Path)) }
	var older, newer []*programs.Program
	var steps int
	return map[string]fault{"previous release": {
		least: 60 * time.Second, most: 80 * time.Second, api: true,
		inject: func(ctx context.Context, random *rand.Rand) error {
			older, newer, steps = append(w.of(managerName), w.of(agentName)...), nil, 0
			for _, i := range random.Perm(len(older)) {
				newer = append(newer, older[i])
			}
			random.Shuffle(len(older), func(i, j int) { older[i], older[j] = older[j], older[i] })
			// The previous release does not know exclusive policies.
			if err := w.exclusiveMarker(ctx, false); err != nil {
				return err
			}
			return w.copyStates(ctx)
		},
		again: func(context.Context, *rand.Rand) error {
			steps++
			switch {
			case steps%rollEvery != 0:
				return nil
			case len(older) > 0:
				return roll(&older, back)
			case len(newer) > 0:
				return roll(&newer, unchanged)
			}
			return nil
		},
		heal: func(ctx context.Context) error {
			for len(newer) > 0 {
				if err := roll(&newer, unchanged); err != nil {
					return err
				}
				linger(ctx, rollEvery*stepTime)
			}
			return errors.Join(w.endCopies(ctx), w.exclusiveMarker(ctx, true))
		},
	}}
}

// exclusiveMarker creates or removes the marker with an exclusive policy.
func (w *world) exclusiveMarker(ctx context.Context, create bool) error {
	marker := markerPort()
	marker.Namespace = w.Namespace
	if create {
		return w.persist(ctx, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(w.Client.Create(ctx, marker.DeepCopy()))
		})
	}
	err := w.persist(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(w.Client.Delete(ctx, marker)) })
	gone := poll(ctx, recoveryLimit, func(ctx context.Context) bool {
		return apierrors.IsNotFound(w.Client.Get(ctx, client.ObjectKeyFromObject(marker), marker))
	})
	return errors.Join(err, gone)
}

// copyStates prepares a rollback as docs/operating.md says: agents copy the states to where earlier ones read them, and
// the manager moves the plans.
func (w *world) copyStates(ctx context.Context) error {
	config := filepath.Join(w.folder, "agent.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: config.seamark.dev/v1alpha1\nkind: AgentConfiguration\nmirrorStatus: true\n"), 0o600); err != nil {
		return fmt.Errorf("configure the agents: %w", err)
	}
	err := restart(w.of(agentName), syscall.SIGTERM, func(s *programs.Spec) { s.Args = append([]string{"--config=" + config}, s.Args...) })
	return errors.Join(err, w.plans(ctx, "copy the states", func(plan *v1alpha1.NodePodProbe) bool {
		return plan.Annotations[v1alpha1.ProbePlansAnnotationKey] == "" && len(plan.Spec.PodProbes) > 0 && len(plan.Status.PodProbeStatuses) > 0
	}))
}

// endCopies ends the hour in which agents keep the copy, so that the next faults do not meet it. Until then, they have
// taken over the states.
func (w *world) endCopies(ctx context.Context) error {
	err := w.plans(ctx, "take over the states", func(plan *v1alpha1.NodePodProbe) bool { return plan.Status.ProbeReports })
	if err != nil {
		return err
	}
	all := w.of(agentName)
	errs := []error{signal(all, syscall.SIGSTOP)}
	for i := range w.nodes {
		plan := &v1alpha1.NodePodProbe{}
		plan.Name = w.nodes[i].Name
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"status": {"podProbeStatuses": null, "probePlans": true}}`))
		errs = append(errs, w.persist(ctx, func(ctx context.Context) error { return w.Client.Status().Patch(ctx, plan, patch) }))
	}
	return errors.Join(append(errs, restart(all, syscall.SIGKILL, unchanged))...)
}

// plans waits until the plan of every node is as it should be.
func (w *world) plans(ctx context.Context, what string, good func(*v1alpha1.NodePodProbe) bool) error {
	var last []string
	err := poll(ctx, recoveryLimit, func(ctx context.Context) bool {
		all := &v1alpha1.NodePodProbeList{}
		if last = []string{"no plans"}; w.Client.List(ctx, all) != nil {
			return false
		}
		last = nil
		for i := range all.Items {
			if !good(&all.Items[i]) {
				last = append(last, all.Items[i].Name)
			}
		}
		return len(last) == 0
	})
	if err != nil {
		return fmt.Errorf("%s: not those of %s: %w", what, strings.Join(last, ", "), err)
	}
	return nil
}
