// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"maps"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// sync lists all containers and requests the statuses of those that have changed. On an error,
// nothing changes.
func (t *Tracker) sync(ctx context.Context) error {
	list, err := t.client.list(ctx)
	if err != nil {
		return err
	}
	current, stateless := newestInstances(list)
	t.request(ctx, current)
	for key := range stateless {
		if _, ok := t.known[key]; !ok {
			t.setUnknown(key)
		}
	}
	for key := range t.known {
		if _, ok := current[key]; !ok && !stateless[key] {
			delete(t.known, key)
			t.gone(key)
		}
	}
	for key := range t.unknown {
		if listed, ok := current[key]; !stateless[key] && (!ok || t.known.knows(listed)) {
			t.resolve(key)
		}
	}
	t.checkSynced()
	return nil
}

// request requests the statuses of the listed instances that are not known, and ends all other
// requests.
func (t *Tracker) request(ctx context.Context, current instances) {
	wanted := map[string]bool{}
	for key, listed := range current {
		if !t.known.knows(listed) {
			wanted[listed.ID], t.owners[listed.ID] = true, key
			t.describer.request(ctx, listed.ID)
		}
	}
	for id := range t.describer.pending {
		if !wanted[id] {
			t.drop(id)
		}
	}
	maps.DeleteFunc(t.failures, func(id string, _ int) bool { return !wanted[id] })
}

// drop ends the request for an instance, if there is one, and forgets its failures.
func (t *Tracker) drop(id string) {
	t.describer.drop(id)
	delete(t.owners, id)
	delete(t.failures, id)
}

// receive handles the answer to a status request.
func (t *Tracker) receive(a answer) {
	key, owned := t.owners[a.id]
	switch {
	case !t.describer.receive(a):
	case a.err == nil:
		if t.failures[a.id] > 1 {
			t.log.Info("Container runtime describes container again", "podUID", string(key.PodUID), "container", key.Name, "containerID", a.id)
		}
		t.drop(a.id)
		if instance, ok := detailedInstanceOf(a.status); ok {
			t.put(instance)
		}
	case !owned && errors.Is(a.err, errNoContainer):
		t.drop(a.id)
	default:
		t.failed(key, a)
	}
	t.checkSynced()
}

// failed handles a container that the runtime has not described. A container may end between
// a list and the request, so that only a second failure is logged.
func (t *Tracker) failed(key identity.ContainerKey, a answer) {
	t.failures[a.id]++
	if t.failures[a.id] == 2 { //nolint:mnd // see above
		t.log.Info("Container runtime does not describe container, keeping the states of its probes",
			"podUID", string(key.PodUID), "container", key.Name, "containerID", a.id, "reason", a.err.Error())
	}
	if key != (identity.ContainerKey{}) {
		t.setUnknown(key)
	}
}

// checkSynced calls OnSynced after an answer for each container of the first list, or of the first one that was wanted
// again.
func (t *Tracker) checkSynced() {
	if !t.synced && !t.describer.waiting() {
		t.synced = true
		t.callbacks.OnSynced()
	}
}

// apply applies an event. The event contains the statuses of all containers of the pod. If it
// does not, or if they contradict the event, the status is requested from the runtime.
func (t *Tracker) apply(ctx context.Context, event *runtimeapi.ContainerEventResponse) {
	id, kind := event.GetContainerId(), event.GetContainerEventType()
	consistent := false
	for _, container := range event.GetContainersStatuses() {
		if instance, ok := detailedInstanceOf(container); ok {
			t.put(instance)
			consistent = consistent || instance.ID == id && instance.Running == (kind == runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
		}
	}
	switch {
	case kind == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT:
		t.deleted(id)
	case consistent, kind == runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, id == event.GetPodSandboxStatus().GetId():
	default:
		t.describer.request(ctx, id)
	}
}

// deleted handles an instance that no longer exists.
func (t *Tracker) deleted(id string) {
	key, owned := t.owners[id]
	t.drop(id)
	if known, ok := t.known.remove(id); ok {
		t.gone(known)
	} else if owned && t.unknown[key] {
		t.resolve(key)
	}
}

// resolve handles an unknown container without the instance that made it unknown.
func (t *Tracker) resolve(key identity.ContainerKey) {
	known, ok := t.known[key]
	if !ok {
		t.gone(key)
		return
	}
	t.clearUnknown(key)
	t.callbacks.OnChange(known.Instance)
}

// put records an instance and calls OnChange if it is new or has changed, or if its container
// was unknown.
func (t *Tracker) put(instance orderedInstance) {
	key := instance.ContainerKey
	changed := t.known.put(instance)
	if t.known[key].ID == instance.ID {
		t.drop(instance.ID)
		changed = t.clearUnknown(key) || changed
	}
	if changed {
		t.callbacks.OnChange(t.known[key].Instance)
	}
}

// gone reports that the runtime has no instance of a container anymore.
func (t *Tracker) gone(key identity.ContainerKey) {
	t.clearUnknown(key)
	t.callbacks.OnGone(key)
}

// setUnknown records that the runtime cannot describe a container.
func (t *Tracker) setUnknown(key identity.ContainerKey) {
	if t.unknown[key] {
		return
	}
	t.unknown[key] = true
	t.undescribed.Store(int64(len(t.unknown)))
	t.callbacks.OnUnknown(key)
}

// clearUnknown reverts setUnknown and reports whether the container was unknown.
func (t *Tracker) clearUnknown(key identity.ContainerKey) bool {
	if !t.unknown[key] {
		return false
	}
	delete(t.unknown, key)
	t.undescribed.Store(int64(len(t.unknown)))
	return true
}
