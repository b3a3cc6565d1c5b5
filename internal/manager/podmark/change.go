// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// change is the difference between a pod's marks and those that it should have.
type change struct {
	// owned are Seamark's marks on the pod. all are those that it should have. desired are all
	// without those of the refused probes.
	owned, all, desired mark.Marks
	// leftover are keys to remove that other managers own.
	leftover []mark.Key
	// claims are the probes that the marks belong to. order are the planned probes.
	claims mark.Claims
	order  []plan.PlannedProbe
	// refused is what the API server does not accept of the change.
	refused refused
	// markers are those of the pod's namespace.
	markers []*plan.Marker
}

func (c change) isEmpty() bool { return len(c.leftover) == 0 && c.desired.Equal(c.owned) }

// differences returns the marks to set and to remove, ordered by kind and name.
func (c change) differences() (set, removed []mark.Key) {
	set, removed = mark.Differences(c.owned, c.desired)
	return set, append(removed, c.leftover...)
}

// log logs the marks that were set and removed.
func (c change) log(lines logr.Logger) {
	if !lines.Enabled() || c.desired.Equal(c.owned) {
		return
	}
	set, removed := c.differences()
	message := "Marked pod"
	if len(c.desired) == 0 {
		message = "Unmarked pod"
	}
	lines.Info(message, "set", names(set), "removed", names(removed))
}

func names(keys []mark.Key) []string {
	var all []string
	for _, key := range keys {
		all = append(all, key.String())
	}
	return all
}

// declaring returns the names of the markers that declare one of the changed keys, whether or not
// they select the pod now.
func (c change) declaring() []string {
	set, removed := c.differences()
	changed := sets.New(append(set, removed...)...)
	var found []string
	for _, marker := range c.markers {
		declares := func(probe *v1alpha1.PodContainerProbe) bool { return changed.HasAny(mark.Declared(probe)...) }
		if marker.AnyProbe(declares) {
			found = append(found, marker.Name)
		}
	}
	return found
}

// ids returns the planned probes in order.
func (c change) ids() []probeid.ID {
	var ids []probeid.ID
	for _, probe := range c.order {
		ids = append(ids, probe.ID)
	}
	return ids
}

// keptBy returns the probes that declare the kept keys, with the reason.
func (c change) keptBy() []mark.Refusal {
	var refusals []mark.Refusal
	for _, key := range c.refused.kept {
		if probe, declared := c.claims[key]; declared {
			refusals = append(refusals, mark.Refusal{Probe: probe, Reason: c.refused.reason})
		}
	}
	return refusals
}
