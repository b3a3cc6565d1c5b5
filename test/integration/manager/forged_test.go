// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
)

// TestForgedReport writes the ProbeReport of a compromised agent: states of a pod of another node,
// of a probe that is not planned, and of another marker, and errors. Only the states and errors of
// planned probes of the agent's own pods take effect.
func TestForgedReport(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	honest, taken := w.node("honest"), w.node("taken")
	a, b := w.pod("a", honest), w.pod("b", taken)
	w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").
		Label(succeeded, "healthy", "true").Label(failed, "healthy", "false")))
	w.planned(honest, "a/web#p")
	w.planned(taken, "b/web#p")
	w.report(honest, states{"web#p": succeeded})
	w.marked("a", "label healthy=true")

	state := func(name string, state v1alpha1.ProbeState) v1alpha1.ContainerProbeState {
		return v1alpha1.ContainerProbeState{Name: name, State: state, LastProbeTime: at(), LastTransitionTime: at()}
	}
	of := func(pod *corev1.Pod, states ...v1alpha1.ContainerProbeState) seamarkv1alpha1.PodReport {
		return seamarkv1alpha1.PodReport{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Probes: states}
	}
	forged := func(result v1alpha1.ProbeState) []seamarkv1alpha1.PodReport {
		return []seamarkv1alpha1.PodReport{
			of(a, state("web#p", result)),
			of(b, state("web#p", result), state("web#other", succeeded), state("other#p", succeeded)),
		}
	}
	npp := w.storedPlan(taken)
	slice := forged(failed)
	for i := range slice {
		slice[i].Errors = []v1alpha1.ContainerProbeError{{Name: "web#p", Reason: v1alpha1.ProbeNotEnded, Message: "forged"}}
	}
	w.Must(writeSlice(t.Context(), w.Client, npp, "taken.0", slice))
	w.condition("web", v1alpha1.ConditionProbesResolved, "NotEnded",
		`Probe "p": the runtime has not ended an earlier run (1 of 2 matched pods, such as b: forged).`)
	w.Must(writeSlice(t.Context(), w.Client, npp, "taken.0", forged(failed)))
	w.marked("b", "label healthy=false")
	w.unchanged("a", "label healthy=true")
	w.unchanged("b", "label healthy=false")

	// The same in the status, as the daemon of OpenKruise reports.
	var statuses []v1alpha1.PodProbeStatus
	for _, pod := range forged(failed) {
		statuses = append(statuses, v1alpha1.PodProbeStatus{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ProbeStates: pod.Probes})
	}
	statuses[1].ProbeStates[0].State = succeeded
	w.Must(writeStatus(t.Context(), w.Client, npp, map[string]any{"podProbeStatuses": statuses}))
	w.marked("b", "label healthy=true")
	w.unchanged("a", "label healthy=true")
	w.unchanged("b", "label healthy=true")
}
