// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// noResult stands for the state of a planned probe of which nothing is reported yet.
const noResult v1alpha1.ProbeState = "NoResult"

// probe is one probe of one marker.
type probe struct {
	namespace string
	probeid.ID
}

// tally is how many pods are in each state.
type tally map[v1alpha1.ProbeState]int

func newTally() tally {
	return tally{v1alpha1.ProbeSucceeded: 0, v1alpha1.ProbeFailed: 0, v1alpha1.ProbeUnknown: 0, noResult: 0}
}

// Provided is a pod that the provider of a virtual kubelet probes.
type Provided struct {
	// Namespace is the pod's.
	Namespace string
	// States has every probe that is planned for the pod; the state is empty where the
	// provider has told none yet.
	States map[probeid.ID]v1alpha1.ProbeState
}

// census counts the pods by the states of their planned probes, those of agents and those
// of providers. Every probe of every marker is in it, with all states, and no others are:
// a probe whose marker has gone isn't counted, whatever is still planned or reported of it.
func census(markers []v1alpha1.PodProbeMarker, plans []v1alpha1.NodePodProbe, provided []Provided) map[probe]tally {
	all := make(map[probe]tally)
	for i := range markers {
		for j := range markers[i].Spec.Probes {
			id := probeid.ID{Marker: markers[i].Name, Probe: markers[i].Spec.Probes[j].Name}
			all[probe{namespace: markers[i].Namespace, ID: id}] = newTally()
		}
	}
	for i := range plans {
		countNode(all, &plans[i])
	}
	for _, pod := range provided {
		for id, state := range pod.States {
			if counts, found := all[probe{namespace: pod.Namespace, ID: id}]; found {
				counts[known(state)]++
			}
		}
	}
	return all
}

// countNode adds the pods of one node. A state that is no longer planned counts for nothing.
func countNode(all map[probe]tally, npp *v1alpha1.NodePodProbe) {
	reports := make(map[string][]v1alpha1.ContainerProbeState, len(npp.Status.PodProbeStatuses))
	for i := range npp.Status.PodProbeStatuses {
		reports[npp.Status.PodProbeStatuses[i].UID] = npp.Status.PodProbeStatuses[i].ProbeStates
	}
	for i := range npp.Spec.PodProbes {
		pod := &npp.Spec.PodProbes[i]
		for j := range pod.Probes {
			id, err := probeid.Parse(pod.Probes[j].Name)
			if err != nil {
				continue
			}
			if counts, found := all[probe{namespace: pod.Namespace, ID: id}]; found {
				counts[stateOf(reports[pod.UID], pod.Probes[j].Name)]++
			}
		}
	}
}

func stateOf(states []v1alpha1.ContainerProbeState, name string) v1alpha1.ProbeState {
	for i := range states {
		if states[i].Name == name {
			return known(states[i].State)
		}
	}
	return noResult
}

// known returns the state, if it is one that there is.
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

// inForce tells whether the agent has the node's newest plan in force. An agent that has
// seen a newer one than npp shows has it too.
func inForce(npp *v1alpha1.NodePodProbe) bool {
	return npp.Status.ObservedGeneration >= npp.Generation
}
