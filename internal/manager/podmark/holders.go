// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/exclusive"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

const (
	// maxHolders is the maximum number of entries in the status of a marker, which the CRD allows.
	maxHolders = 500
	// maxGone is how many entries are checked for pods that are gone when there is no room.
	maxGone = 20
)

// holders are the holders in a version of a marker.
type holders struct {
	version string
	all     []v1alpha1.ExclusiveHolder
}

// holders returns the latest known holders of the marker.
func (r *Reconciler) holders(marker *v1alpha1.PodProbeMarker) holders {
	if last, unseen := r.held.Unseen(client.ObjectKeyFromObject(marker), marker.UID, marker.ResourceVersion); unseen {
		return last
	}
	return holders{version: marker.ResourceVersion, all: marker.Status.Holders}
}

// setExclusive applies marks of which some are exclusive, on the version of the pod that was read. It records
// that version first, unless it has the marks already.
func (r *Reconciler) setExclusive(ctx context.Context, pod *corev1.Pod, change change, version string) (string, error) {
	if version != pod.ResourceVersion {
		return "", apply.ErrOutdated
	}
	for _, c := range change.view.Contests {
		if c.Wins(pod.UID) && c.Step == exclusive.Claim && change.view.Gets(c, change.desired) {
			if err := r.claim(ctx, c, pod); err != nil {
				return "", err
			}
		}
	}
	return r.Exclusive.MarksOn(ctx, pod, change.desired)
}

// claim records the version of the pod as the one that may get the marks, in place of the record from which
// was decided. The pods of one marker claim one after the other.
func (r *Reconciler) claim(ctx context.Context, c *cached.Contest, pod *corev1.Pod) error {
	marker := types.NamespacedName{Namespace: pod.Namespace, Name: c.ID.Marker}
	busy := false
	r.claiming.Update(marker, func(claiming *bool) bool {
		busy, *claiming = *claiming, true
		return true
	})
	if busy {
		return errHolders
	}
	defer r.claiming.Forget(marker)
	objects, err := r.Reader.MarkerObjects(ctx, pod.Namespace)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(objects, func(m *v1alpha1.PodProbeMarker) bool { return m.Name == marker.Name })
	if at < 0 {
		return errHolders
	}
	latest := r.holders(objects[at])
	group, _ := c.Exclusive.Group(pod)
	if holder, _ := c.Holder(latest.all, group); holder.UID != c.Group.Record.UID || holder.ResourceVersion != c.Group.Record.Version {
		return errHolders
	}
	others := slices.DeleteFunc(slices.Clone(latest.all), func(h v1alpha1.ExclusiveHolder) bool { return c.IsHolder(h, group) })
	if others, err = r.room(ctx, marker, others); err != nil {
		return err
	}
	entry := v1alpha1.ExclusiveHolder{
		Probe: c.ID.Probe, State: c.Policy.State, Group: group, Pod: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
	stored, err := r.Exclusive.Hold(ctx, marker, latest.version, append(others, entry))
	switch {
	case errors.Is(err, apply.ErrOutdated):
		return errHolders
	case err != nil:
		return err
	case !slices.Contains(stored.Status.Holders, entry):
		return fmt.Errorf("write holders of marker %s: the CRD of the API server has no status.holders", marker)
	}
	r.held.Wrote(marker, stored.UID, stored.ResourceVersion, holders{version: stored.ResourceVersion, all: stored.Status.Holders})
	log.FromContext(ctx).V(logging.Writes).Info("Recorded pod as the holder of exclusive marks", "probe", c.ID, "group", group)
	return nil
}

// room returns the entries, without some of pods that are gone if there is no room for another one.
func (r *Reconciler) room(ctx context.Context, marker types.NamespacedName, entries []v1alpha1.ExclusiveHolder) ([]v1alpha1.ExclusiveHolder, error) {
	checked := 0
	for i := 0; len(entries) >= maxHolders && i < len(entries) && checked < maxGone; i++ {
		name := types.NamespacedName{Namespace: marker.Namespace, Name: entries[i].Pod}
		if pod, err := r.Reader.CachedPod(ctx, name); err != nil || pod != nil && pod.UID == entries[i].UID {
			continue
		}
		checked++
		live := &corev1.Pod{}
		err := r.Live.Get(ctx, name, live)
		if isGone(err, live, entries[i].UID) {
			entries = slices.Delete(entries, i, i+1)
			i--
		} else if err != nil {
			return nil, fmt.Errorf("look for the holder of exclusive marks: %w", err)
		}
	}
	if len(entries) >= maxHolders {
		return nil, fmt.Errorf("record the holder of exclusive marks: marker %s has more than %d groups", marker, maxHolders)
	}
	return entries, nil
}
