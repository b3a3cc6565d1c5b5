// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// MaxMarkers is the maximum number of markers that count for one pod. It limits what one pod
	// costs, however many markers a tenant creates.
	MaxMarkers = 64
	// maxListed is how many of the markers that count are listed by name.
	maxListed = 3
)

// Excess are the markers that select a pod but do not count, because MaxMarkers older ones select
// it.
type Excess struct {
	// Markers are the markers that do not count, ordered by name.
	Markers []*Marker
	// Counted lists the oldest of the markers that count, and how many more there are. It is empty
	// if all markers count.
	Counted string
}

// count returns the markers that count for the pod, ordered by name, and the others.
// Markers that are not stored in a cluster have no age, and are the newest: they would be created
// now.
func count(pod *corev1.Pod, markers []*Marker) ([]*Marker, Excess) {
	var selecting []*Marker
	for _, m := range markers {
		if m.Selects(pod) {
			selecting = append(selecting, m)
		}
	}
	selecting = Sorted(selecting)
	if len(selecting) <= MaxMarkers {
		return selecting, Excess{}
	}
	byAge := slices.SortedFunc(slices.Values(selecting), olderFirst)
	oldest := make(map[*Marker]bool, MaxMarkers)
	for _, m := range byAge[:MaxMarkers] {
		oldest[m] = true
	}
	names := make([]string, 0, maxListed)
	for _, m := range byAge[:maxListed] {
		names = append(names, m.Name)
	}
	counted, excess := make([]*Marker, 0, MaxMarkers), Excess{
		Markers: make([]*Marker, 0, len(selecting)-MaxMarkers),
		Counted: fmt.Sprintf("%s and %d more", strings.Join(names, ", "), MaxMarkers-maxListed),
	}
	for _, m := range selecting {
		if oldest[m] {
			counted = append(counted, m)
		} else {
			excess.Markers = append(excess.Markers, m)
		}
	}
	return counted, excess
}

func olderFirst(a, b *Marker) int {
	if a.created.IsZero() != b.created.IsZero() {
		return cmp.Compare(b.created.Unix(), a.created.Unix())
	}
	return cmp.Or(a.created.Compare(b.created), strings.Compare(a.Name, b.Name))
}

// Unplanned returns all probes that markers require in the pod but that do not run: the problems,
// and then the probes of the markers that do not count. It takes as much memory as a namespace has
// markers, so controllers do not call it.
func (p PodPlan) Unplanned(pod *corev1.Pod) []Problem {
	unplanned := slices.Clone(p.Problems)
	for _, m := range p.Excess.Markers {
		for _, src := range m.probes {
			unplanned = append(unplanned, Problem{
				ID: src.id, Namespace: pod.Namespace, Pod: pod.Name, Container: src.spec.ContainerName,
				Counted: p.Excess.Counted, Reason: TooManyMarkers,
			})
		}
	}
	return unplanned
}
