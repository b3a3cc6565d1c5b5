// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/chaos/ledger"
)

// userPatience is how long a user repeats a request.
const userPatience = 90 * time.Second

// Bounds of what users ask for.
const (
	leastBare, mostBare         = 6, 12
	leastClones, mostClones     = 2, 7
	leastMembers, mostMembers   = 1, 4
	clonesAtOnce, membersAtOnce = 2, 1
)

// users change pods, sets and markers, and the answers of containers.
type users struct {
	w *world
	// bare are the names of pods without a set, and whether the markers select them. next is the number of the next one.
	bare map[string]bool
	next int
	// goals are those of the sets.
	goals map[string]ledger.Goal
	// edits counts the edits of a marker.
	edits int
	// least and most bound the number of pods without a set, which are spread over nodes.
	least, most int
	nodes       []corev1.Node
	// mayLose is whether pods without a set may have been lost with their node.
	mayLose bool
}

// newUsers creates the objects that users have.
func newUsers(ctx context.Context, w *world) (*users, error) {
	u := &users{w: w, bare: map[string]bool{}, least: leastBare, most: mostBare, nodes: w.nodes, goals: map[string]ledger.Goal{
		cloneSet:    {Replicas: 4, MaxUnavailable: clonesAtOnce, Version: "1"},
		statefulSet: {Replicas: 3, MaxUnavailable: membersAtOnce, Version: "1", Ordered: true},
		daemonSet:   {Replicas: len(w.nodes), MaxUnavailable: 1, Version: "1"},
	}}
	for _, object := range append(volumes(w.Namespace, w.truth.folder), u.markerOK(), markerWeb(), markerPort()) {
		if _, is := object.(*v1alpha1.PodProbeMarker); is {
			object.SetNamespace(w.Namespace)
		}
		if err := w.Client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.goals)) {
		w.ledger.Want(name, u.goals[name])
		if err := w.Client.Create(ctx, u.set(name)); err != nil {
			return nil, fmt.Errorf("create %s: %w", name, err)
		}
	}
	for range leastBare + 2 {
		if err := u.create(ctx); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// act does so many things, drawn at random. If api is false, only answers of containers change.
func (u *users) act(ctx context.Context, random *rand.Rand, times int, api bool) error {
	for range times {
		// The number is drawn in any case, so that what follows does not depend on api.
		n := random.IntN(16)
		if !api || n < 6 {
			if err := u.flip(random); err != nil {
				return err
			}
			continue
		}
		actions := []func(context.Context, *rand.Rand) error{
			u.replace, u.replace, u.reselect, u.editMarker, u.toggleMarker,
			u.scale(cloneSet, leastClones, mostClones), u.scale(cloneSet, leastClones, mostClones), u.scale(statefulSet, leastMembers, mostMembers),
			u.update(cloneSet), u.update(statefulSet),
		}
		if n == 15 && random.IntN(2) == 0 {
			actions[n-6] = u.update(daemonSet)
		}
		if err := actions[n-6](ctx, random); err != nil {
			return err
		}
	}
	return nil
}

// flip changes up to three answers of one pod.
func (u *users) flip(random *rand.Rand) error {
	pods := u.w.ledger.Alive()
	if len(pods) == 0 {
		return nil
	}
	name := pods[random.IntN(len(pods))].Name
	for _, answer := range []string{answerOK, answerWeb, answerPort} {
		if random.IntN(3) > 0 {
			if err := u.w.truth.flip(name, answer); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *users) create(ctx context.Context) error {
	name := fmt.Sprintf("bare-%d", u.next)
	u.w.Logf("  users: create pod %s", name)
	u.next++
	pod := &corev1.Pod{Spec: template("", "").Spec}
	pod.Name, pod.Namespace, pod.Labels = name, u.w.Namespace, map[string]string{"app": loadLabel}
	u.mount(&pod.Spec)
	// The pods are spread over the nodes.
	pod.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": u.nodes[u.next%len(u.nodes)].Name}
	u.bare[name] = true
	return u.w.persist(ctx, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(u.w.Client.Create(ctx, pod.DeepCopy()))
	})
}

// replace deletes a pod, or creates one, or both, within the bounds.
func (u *users) replace(ctx context.Context, random *rand.Rand) error {
	if len(u.bare) >= u.most || len(u.bare) > u.least && random.IntN(2) == 0 {
		names := slices.Sorted(maps.Keys(u.bare))
		name := names[random.IntN(len(names))]
		delete(u.bare, name)
		u.w.Logf("  users: delete pod %s", name)
		pod := &corev1.Pod{}
		err := u.w.persist(ctx, func(ctx context.Context) error { return u.w.Client.Get(ctx, u.w.Key(name), pod) })
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		u.w.ledger.Expect(pod.UID)
		return u.w.persist(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(u.w.Client.Delete(ctx, pod)) })
	}
	return u.create(ctx)
}

// reselect changes whether the markers select a pod.
func (u *users) reselect(ctx context.Context, random *rand.Rand) error {
	names := slices.Sorted(maps.Keys(u.bare))
	name := names[random.IntN(len(names))]
	u.bare[name] = !u.bare[name]
	u.w.Logf("  users: pod %s is selected: %t", name, u.bare[name])
	value := map[bool]string{true: loadLabel, false: "idle"}[u.bare[name]]
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = name, u.w.Namespace
	return client.IgnoreNotFound(edit(ctx, u.w, pod, func(p *corev1.Pod) { p.Labels["app"] = value }))
}

// editMarker changes the values that a marker sets.
func (u *users) editMarker(ctx context.Context, _ *rand.Rand) error {
	u.edits++
	u.w.Logf("  users: edit %d of a marker", u.edits)
	want := u.markerOK()
	return edit(ctx, u.w, want.DeepCopy(), func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = want.Spec.Probes })
}

// toggleMarker creates or deletes a marker. One that is still removing its marks is left alone.
func (u *users) toggleMarker(ctx context.Context, _ *rand.Rand) error {
	marker := markerTemporary()
	marker.Namespace = u.w.Namespace
	exists := false
	err := u.w.persist(ctx, func(ctx context.Context) error {
		err := u.w.Client.Get(ctx, client.ObjectKeyFromObject(marker), marker)
		exists = err == nil
		return client.IgnoreNotFound(err)
	})
	if err != nil || exists && marker.DeletionTimestamp != nil {
		return err
	}
	u.w.Logf("  users: the temporary marker exists: %t", !exists)
	return u.w.persist(ctx, func(ctx context.Context) error {
		if exists {
			return client.IgnoreNotFound(u.w.Client.Delete(ctx, marker))
		}
		return client.IgnoreAlreadyExists(u.w.Client.Create(ctx, marker.DeepCopy()))
	})
}

// scale sets a number of replicas within the bounds.
func (u *users) scale(name string, least, most int) func(context.Context, *rand.Rand) error {
	return func(ctx context.Context, random *rand.Rand) error {
		goal := u.goals[name]
		goal.Replicas = least + random.IntN(most-least+1)
		return u.aim(ctx, name, goal)
	}
}

// update changes the template of a set.
func (u *users) update(name string) func(context.Context, *rand.Rand) error {
	return func(ctx context.Context, _ *rand.Rand) error {
		goal := u.goals[name]
		version, err := strconv.Atoi(goal.Version)
		if err != nil {
			return fmt.Errorf("version of %s: %w", name, err)
		}
		goal.Version = strconv.Itoa(version + 1)
		return u.aim(ctx, name, goal)
	}
}

// aim changes the goal of a set.
func (u *users) aim(ctx context.Context, name string, goal ledger.Goal) error {
	u.goals[name] = goal
	u.w.Logf("  users: %s has the goal %+v", name, goal)
	u.w.ledger.Want(name, goal)
	return edit(ctx, u.w, u.set(name), func(o client.Object) { u.aimed(o, goal) })
}
