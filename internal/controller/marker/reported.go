// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
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

// markerErrors are errors by marker.
type markerErrors map[types.NamespacedName]podErrors

// nodeErrors are the errors that a node reports.
type nodeErrors struct {
	// inStatus is whether the report of the node is the status of its NodePodProbe.
	inStatus bool
	// sources are the errors by ProbeReport. The key of the status is empty. It has only
	// ProbeReports with errors.
	sources map[string]markerErrors
	// errs are the errors of the sources that take effect.
	errs markerErrors
}

// reported indexes the errors in the reports of all nodes by marker, because reading every
// report for the status of a marker would copy them.
type reported struct {
	mu sync.Mutex
	// nodes are the errors by node. It has only nodes with errors, and those that report in the
	// status.
	nodes map[string]*nodeErrors
	// markers are the nodes with errors of each marker.
	markers map[types.NamespacedName]map[string]bool
}

func newReported() *reported {
	return &reported{nodes: map[string]*nodeErrors{}, markers: map[types.NamespacedName]map[string]bool{}}
}

// setStatus stores the errors in the status of a NodePodProbe, and returns the markers whose
// errors on the node changed.
func (r *reported) setStatus(npp *v1alpha1.NodePodProbe) []types.NamespacedName {
	return r.update(npp.Name, func(n *nodeErrors) {
		n.inStatus = mark.InStatus(npp)
		if n.inStatus {
			n.set("", mark.StatusReports(npp))
		} else {
			n.set("", nil)
		}
	})
}

// setSlice stores the errors in a ProbeReport of the node, and returns the markers whose errors on
// the node changed.
func (r *reported) setSlice(node, slice string, pods []seamarkv1alpha1.PodReport) []types.NamespacedName {
	return r.update(node, func(n *nodeErrors) { n.set(slice, pods) })
}

func (r *reported) update(node string, change func(*nodeErrors)) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[node]
	if n == nil {
		n = &nodeErrors{}
	}
	before := n.errs
	change(n)
	n.errs = n.effective()
	var changed []types.NamespacedName
	for marker, errs := range before {
		if !errs.equal(n.errs[marker]) {
			changed = append(changed, marker)
		}
		if len(n.errs[marker]) == 0 {
			delete(r.markers[marker], node)
			if len(r.markers[marker]) == 0 {
				delete(r.markers, marker)
			}
		}
	}
	for marker := range n.errs {
		if _, known := before[marker]; !known {
			changed = append(changed, marker)
		}
		if r.markers[marker] == nil {
			r.markers[marker] = map[string]bool{}
		}
		r.markers[marker][node] = true
	}
	if n.inStatus || len(n.sources) > 0 {
		r.nodes[node] = n
	} else {
		delete(r.nodes, node)
	}
	return changed
}

// set stores the errors of one source.
func (n *nodeErrors) set(source string, pods []seamarkv1alpha1.PodReport) {
	errs := errorsOf(pods)
	switch {
	case len(errs) == 0:
		delete(n.sources, source)
	case n.sources == nil:
		n.sources = map[string]markerErrors{source: errs}
	default:
		n.sources[source] = errs
	}
}

// effective returns the errors in the status or else those in all ProbeReports. If two have the
// same pod, the first by name takes effect.
func (n *nodeErrors) effective() markerErrors {
	if n.inStatus {
		return n.sources[""]
	}
	all := markerErrors{}
	for _, source := range slices.Backward(slices.Sorted(maps.Keys(n.sources))) {
		for marker, errs := range n.sources[source] {
			if all[marker] == nil {
				all[marker] = podErrors{}
			}
			maps.Copy(all[marker], errs)
		}
	}
	return all
}

// of returns the errors of a marker's probes.
func (r *reported) of(marker types.NamespacedName) podErrors {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := podErrors{}
	for node := range r.markers[marker] {
		maps.Copy(all, r.nodes[node].errs[marker])
	}
	return all
}

func (e podErrors) equal(other podErrors) bool {
	return maps.EqualFunc(e, other, func(a, b []probeError) bool { return slices.Equal(a, b) })
}

// errorsOf returns the errors of pods. It omits those whose name is not that of a probe.
func errorsOf(pods []seamarkv1alpha1.PodReport) markerErrors {
	var errs markerErrors
	for i := range pods {
		pod := &pods[i]
		for _, e := range pod.Errors {
			id, err := probeid.Parse(e.Name)
			if err != nil {
				continue
			}
			if errs == nil {
				errs = markerErrors{}
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
