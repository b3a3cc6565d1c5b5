// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// noResult is the state of a planned probe that has no reported state yet.
const noResult v1alpha1.ProbeState = "NoResult"

// probe is one probe of one marker.
type probe struct {
	namespace string
	probeid.ID
}

// tally is the number of pods per state.
type tally map[v1alpha1.ProbeState]int

func newTally() tally {
	return tally{v1alpha1.ProbeSucceeded: 0, v1alpha1.ProbeFailed: 0, v1alpha1.ProbeUnknown: 0, noResult: 0}
}

// Provided is a pod that the provider of a virtual node probes.
type Provided struct {
	// Namespace of the pod.
	Namespace string
	// States holds every probe that is planned for the pod. The state is empty if the
	// provider has not reported one yet.
	States map[probeid.ID]v1alpha1.ProbeState
}

// census counts pods by the states of their planned probes, as reported by agents and
// providers. It covers exactly the probes of the existing markers: probes of a deleted
// marker that are still planned or reported are not counted. slicesOf returns the ProbeReports of a
// node.
func census(
	markers []v1alpha1.PodProbeMarker, plans []v1alpha1.NodePodProbe, slicesOf func(node string) ([]*seamarkv1alpha1.ProbeReport, error), provided []Provided,
) (map[probe]tally, error) {
	all := make(map[probe]tally)
	for i := range markers {
		for j := range markers[i].Spec.Probes {
			id := probeid.ID{Marker: markers[i].Name, Probe: markers[i].Spec.Probes[j].Name}
			all[probe{namespace: markers[i].Namespace, ID: id}] = newTally()
		}
	}
	for i := range plans {
		if len(plans[i].Spec.PodProbes) == 0 {
			continue
		}
		slices, err := slicesOf(plans[i].Name)
		if err != nil {
			return nil, err
		}
		countNode(all, mark.NodeReport{Plan: &plans[i], Slices: slices})
	}
	for _, pod := range provided {
		for id, state := range pod.States {
			if counts, found := all[probe{namespace: pod.Namespace, ID: id}]; found {
				counts[known(state)]++
			}
		}
	}
	return all, nil
}

// countNode adds the pods of one node. Reported states that are no longer planned are ignored.
func countNode(all map[probe]tally, report mark.NodeReport) {
	states := report.States()
	for i := range report.Plan.Spec.PodProbes {
		pod := &report.Plan.Spec.PodProbes[i]
		for j := range pod.Probes {
			id, err := probeid.Parse(pod.Probes[j].Name)
			if err != nil {
				continue
			}
			if counts, found := all[probe{namespace: pod.Namespace, ID: id}]; found {
				counts[stateOf(states[pod.UID], &pod.Probes[j])]++
			}
		}
	}
}

func stateOf(states []v1alpha1.ContainerProbeState, planned *v1alpha1.ContainerProbe) v1alpha1.ProbeState {
	for i := range states {
		if states[i].Name == planned.Name && probeid.SamePlan(states[i].Plan, planned.Plan) {
			return known(states[i].State)
		}
	}
	return noResult
}

// known returns the state, or noResult if it is not a valid one.
func known(state v1alpha1.ProbeState) v1alpha1.ProbeState {
	switch state {
	case v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed, v1alpha1.ProbeUnknown:
		return state
	default:
		return noResult
	}
}

// probesOf counts the probes in a node's plan.
func probesOf(npp *v1alpha1.NodePodProbe) int {
	n := 0
	for i := range npp.Spec.PodProbes {
		n += len(npp.Spec.PodProbes[i].Probes)
	}
	return n
}

// inForce reports whether the agent runs the node's latest plan. This includes an agent
// that is ahead of a stale npp.
func inForce(npp *v1alpha1.NodePodProbe) bool {
	return npp.Status.ObservedGeneration >= npp.Generation
}
