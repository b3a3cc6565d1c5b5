// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// probeError is an error that an agent reports for a probe of a marker in one pod.
type probeError struct {
	probe   string
	reason  v1alpha1.ProbeErrorReason
	message string
}

// podErrors are the errors of one marker's probes on a node, by the UID of the pod.
type podErrors map[types.UID][]probeError

// reported indexes the errors in the reports of all nodes by marker, because reading every
// report for the status of a marker would copy them.
type reported struct {
	mu sync.Mutex
	// nodes are the errors by node. It has only nodes with errors.
	nodes map[string]map[types.NamespacedName]podErrors
	// markers are the nodes with errors of each marker.
	markers map[types.NamespacedName]map[string]bool
}

func newReported() *reported {
	return &reported{nodes: map[string]map[types.NamespacedName]podErrors{}, markers: map[types.NamespacedName]map[string]bool{}}
}

// set stores the errors in the report of a node, and returns the markers whose errors on the
// node changed.
func (r *reported) set(node string, status *v1alpha1.NodePodProbeStatus) []types.NamespacedName {
	after := errorsOf(status)
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.nodes[node]
	var changed []types.NamespacedName
	for marker, errs := range before {
		if !errs.equal(after[marker]) {
			changed = append(changed, marker)
		}
		if len(after[marker]) == 0 {
			delete(r.markers[marker], node)
			if len(r.markers[marker]) == 0 {
				delete(r.markers, marker)
			}
		}
	}
	for marker := range after {
		if _, known := before[marker]; !known {
			changed = append(changed, marker)
		}
		if r.markers[marker] == nil {
			r.markers[marker] = map[string]bool{}
		}
		r.markers[marker][node] = true
	}
	if len(after) == 0 {
		delete(r.nodes, node)
	} else {
		r.nodes[node] = after
	}
	return changed
}

// of returns the errors of a marker's probes.
func (r *reported) of(marker types.NamespacedName) podErrors {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := podErrors{}
	for node := range r.markers[marker] {
		maps.Copy(all, r.nodes[node][marker])
	}
	return all
}

func (e podErrors) equal(other podErrors) bool {
	return maps.EqualFunc(e, other, func(a, b []probeError) bool { return slices.Equal(a, b) })
}

// errorsOf returns the errors in a report. It omits those whose name is not that of a probe.
func errorsOf(status *v1alpha1.NodePodProbeStatus) map[types.NamespacedName]podErrors {
	var errs map[types.NamespacedName]podErrors
	for i := range status.PodProbeStatuses {
		pod := &status.PodProbeStatuses[i]
		for _, e := range pod.ProbeErrors {
			id, err := probeid.Parse(e.Name)
			if err != nil {
				continue
			}
			if errs == nil {
				errs = map[types.NamespacedName]podErrors{}
			}
			marker := types.NamespacedName{Namespace: pod.Namespace, Name: id.Marker}
			if errs[marker] == nil {
				errs[marker] = podErrors{}
			}
			uid := types.UID(pod.UID)
			errs[marker][uid] = append(errs[marker][uid], probeError{probe: id.Probe, reason: e.Reason, message: e.Message})
		}
	}
	return errs
}
