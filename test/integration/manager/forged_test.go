// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestForgedReport writes the report of a compromised agent: states of a pod of another node,
// of a probe that is not planned, and of another marker. Only the states of planned probes of
// the agent's own pods take effect.
func TestForgedReport(t *testing.T) {
	w := newWorld(t, shared)
	honest, taken := w.node("honest"), w.node("taken")
	a, b := w.pod("a", honest), w.pod("b", taken)
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").
		Label(succeeded, "healthy", "true").Label(failed, "healthy", "false")))
	w.planned(honest, "a/web#p")
	w.planned(taken, "b/web#p")
	w.report(honest, states{"web#p": succeeded})
	w.marked("a", "label healthy=true")

	state := func(name string, state v1alpha1.ProbeState) v1alpha1.ContainerProbeState {
		return v1alpha1.ContainerProbeState{Name: name, State: state, LastProbeTime: at(), LastTransitionTime: at()}
	}
	of := func(pod *corev1.Pod, states ...v1alpha1.ContainerProbeState) v1alpha1.PodProbeStatus {
		return v1alpha1.PodProbeStatus{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), ProbeStates: states}
	}
	npp, err := w.getPlan(t.Context(), taken)
	w.must(err)
	body, err := json.Marshal(map[string]any{"status": v1alpha1.NodePodProbeStatus{
		ObservedGeneration: npp.Generation,
		PodProbeStatuses: []v1alpha1.PodProbeStatus{
			of(a, state("web#p", failed)),
			of(b, state("web#p", failed), state("web#other", succeeded), state("other#p", succeeded)),
		},
	}})
	w.must(err)
	w.must(w.client.Status().Patch(t.Context(), npp, env.MergePatch(string(body))))
	w.marked("b", "label healthy=false")
	w.unchanged("a", "label healthy=true")
	w.unchanged("b", "label healthy=false")
}
