// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestRecreatedMarkerIgnoresOldStates checks that the states of a deleted marker make no marks for
// a new one with the same name, although the agent is down and its last report stays.
func TestRecreatedMarkerIgnoresOldStates(t *testing.T) {
	w := newWorld(t, shared)
	w.healthyPod("recreated-marker")
	old := w.slices("recreated-marker")
	w.must(w.client.Delete(t.Context(), w.markerNamed("web")))
	w.gone("web")
	w.marked("a")

	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").Label(succeeded, "healthy", "true")))
	w.planned("recreated-marker", "a/web#p")
	w.unchanged("a")
	now, err := w.getPlan(t.Context(), "recreated-marker")
	w.must(err)
	if before, after := old[0].Pods[0].Probes[0].Plan, now.Spec.PodProbes[0].Probes[0].Plan; before == after || len(after) != 8 {
		t.Errorf("plan %q, then %q: want different values of 8 characters", before, after)
	}
	if diff := cmp.Diff(old, w.slices("recreated-marker")); diff != "" {
		t.Fatalf("ProbeReports (-old +new):\n%s", diff)
	}
	w.report("recreated-marker", states{"web#p": succeeded})
	w.marked("a", "label healthy=true")
}

// TestPodIsInitializedAgain checks that a pod keeps its marks while its init containers run again,
// as they do after a reboot of the node, and that it then follows the reports.
func TestPodIsInitializedAgain(t *testing.T) {
	w := newWorld(t, shared)
	pod := w.healthyPod("rebooted")
	w.must(w.client.Status().Patch(t.Context(), pod, env.MergePatch(`{"status":{
		"phase": "Pending", "podIP": null, "podIPs": null,
		"conditions": [{"type": "Initialized", "status": "False", "reason": "ContainersNotInitialized"}],
		"containerStatuses": [{"name": "main", "image": "busybox:1.35", "imageID": "", "ready": false, "restartCount": 1,
			"state": {"waiting": {"reason": "PodInitializing"}},
			"lastState": {"terminated": {"exitCode": 255, "reason": "Unknown", "containerID": "containerd://main"}}}]}}`)))
	w.settle()
	w.planned("rebooted", "a/web#p")
	w.marked("a", "label healthy=true")
	w.report("rebooted", states{"web#p": failed})
	w.marked("a")
}
