// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// setStatus writes the status of the node's object as the API server stores it.
func (w *world) setStatus(status v1alpha1.NodePodProbeStatus) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	expect.NoError(w, err)
	object := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: w.node}}
	expect.NoError(w, w.Client.Status().Patch(w.Context(), object, env.MergePatch(string(patch))))
}

// openKruiseStatus returns a status with the state of the probe m#yes of pod p, as the daemon of
// OpenKruise reports.
func (w *world) openKruiseStatus(state v1alpha1.ProbeState, message string) v1alpha1.NodePodProbeStatus {
	at := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	return v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
		Name: "p", Namespace: w.Namespace, UID: string(uidOf("p")),
		ProbeStates: []v1alpha1.ContainerProbeState{{
			Name: "m#yes", State: state, Message: message, LastProbeTime: at, LastTransitionTime: at,
		}},
	}}}
}

// TestTakeover starts an agent on a node whose states are in the status. The states stay, and move from
// the status to slices.
func TestTakeover(t *testing.T) {
	for name, options := range crds() {
		t.Run(name, func(t *testing.T) {
			upstream := len(options) > 0
			w := newWorld(t, env.Start(t, options...), critest.Streamed)
			w.node = "takeover"
			w.runSince("p", time.Now().Add(-2*time.Hour))
			w.setAnswer("yes", answer{after: time.Hour})
			pod := w.pod("p", "yes")
			pod.Probes[0].Probe.TimeoutSeconds = 300
			w.plan(pod)
			before := w.openKruiseStatus(failed, "reported earlier")
			w.setStatus(before)
			want := before.PodProbeStatuses[0].ProbeStates[0]

			stop := w.startAgent()
			got := w.reported("p yes", failed, "reported earlier")
			if !got.LastTransitionTime.Equal(&want.LastTransitionTime) {
				t.Errorf("transition at %s, want %s", got.LastTransitionTime, want.LastTransitionTime)
			}
			w.eventually(func() (bool, string) {
				status := w.object().Status
				return status.ProbeReports != upstream && len(status.PodProbeStatuses) == 0, fmt.Sprintf("status: %+v", status)
			})
			w.setAnswer("yes", answer{stdout: "new"})
			stop()

			// The agent starts from the same state again.
			w.startAgent()
			w.reported("p yes", succeeded, "new")
			w.eventually(func() (bool, string) { return len(w.events()) == 1, fmt.Sprintf("events: %v", w.events()) })
		})
	}
}
