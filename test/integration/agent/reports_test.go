// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// setStatus writes the status of the node's object as the API server stores it.
func (w *world) setStatus(status v1alpha1.NodePodProbeStatus) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		w.Fatal(err)
	}
	object := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: w.node}}
	if err := w.client.Status().Patch(w.Context(), object, env.MergePatch(string(patch))); err != nil {
		w.Fatal(err)
	}
}

// requestRestore sets the annotation that requests the repair of the slices, as the manager does.
func (w *world) requestRestore(value string) {
	w.Helper()
	object := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: w.node}}
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, v1alpha1.RestoreReportsAnnotationKey, value)
	if err := w.client.Patch(w.Context(), object, env.MergePatch(patch)); err != nil {
		w.Fatal(err)
	}
}

// legacyStatus returns a status with the state of the probe m#yes of pod p, as agents report that
// do not know slices.
func (w *world) legacyStatus(state v1alpha1.ProbeState, message string) v1alpha1.NodePodProbeStatus {
	at := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	return v1alpha1.NodePodProbeStatus{ObservedGeneration: 1, PodProbeStatuses: []v1alpha1.PodProbeStatus{{
		Name: "p", Namespace: w.namespace, UID: string(uidOf("p")),
		ProbeStates: []v1alpha1.ContainerProbeState{{
			Name: "m#yes", State: state, Message: message, LastProbeTime: at, LastTransitionTime: at,
		}},
	}}}
}

// TestTransitionWritesOneSlice counts the writes of one transition on a node with 110 pods, and of
// the time in which nothing changes.
func TestTransitionWritesOneSlice(t *testing.T) {
	w := newWorld(t, shared, critest.Streamed)
	var pods []v1alpha1.PodProbe
	for i := range 110 {
		name := fmt.Sprintf("p%03d", i)
		w.run(name)
		pods = append(pods, w.pod(name, fmt.Sprintf("c%03d", i)))
	}
	w.plan(pods...)
	w.startAgent()
	w.eventually(func() (bool, string) { return len(w.states()) == 110, fmt.Sprintf("%d states", len(w.states())) })
	w.eventually(func() (bool, string) {
		return w.object().Status.ObservedGeneration == w.object().Generation, "the plan is not in force"
	})
	if n := len(w.slices()); n != 14 {
		t.Errorf("%d slices, want 14", n)
	}
	w.ranAgain("c050", 2)
	before := w.versions()
	w.ranAgain("c050", 3)
	if diff := cmp.Diff(before, w.versions()); diff != "" {
		t.Errorf("writes although nothing has changed:\n%s", diff)
	}
	w.setAnswer("c050", answer{stdout: "bad", code: 1})
	w.reported("p050 c050", failed, "bad")
	w.ranAgain("c050", 2)
	changed := 0
	for name, version := range w.versions() {
		if version != before[name] {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("a transition changed %d objects, want one slice:\n%s", changed, cmp.Diff(before, w.versions()))
	}
}

// TestTakeover starts an agent on a node whose states are in the status. The states stay, are
// reported in slices, and remain in the status, so that the other agent can come back.
func TestTakeover(t *testing.T) {
	for name, upstream := range map[string]bool{"Seamark's CRDs": false, "upstream's CRDs": true} {
		t.Run(name, func(t *testing.T) {
			e := shared
			if upstream {
				e = env.Start(t, env.UpstreamCRDs())
			}
			w := newWorld(t, e, critest.Streamed)
			w.node = "takeover"
			w.runSince("p", time.Now().Add(-2*time.Hour))
			w.setAnswer("yes", answer{after: time.Hour})
			pod := w.pod("p", "yes")
			pod.Probes[0].Probe.TimeoutSeconds = 300
			w.plan(pod)
			legacy := w.legacyStatus(failed, "reported earlier")
			w.setStatus(legacy)
			want := legacy.PodProbeStatuses[0].ProbeStates[0]

			stop := w.startAgent()
			got := w.reported("p yes", failed, "reported earlier")
			if !got.LastTransitionTime.Equal(&want.LastTransitionTime) {
				t.Errorf("transition at %s, want %s", got.LastTransitionTime, want.LastTransitionTime)
			}
			w.eventually(func() (bool, string) {
				status := w.object().Status
				return status.ProbeReports != upstream && len(status.PodProbeStatuses) == 1, fmt.Sprintf("status: %+v", status)
			})
			w.setAnswer("yes", answer{stdout: "new"})
			stop()

			// The agent starts from the same state again, and keeps the copy up to date.
			w.startAgent()
			w.reported("p yes", succeeded, "new")
			w.eventually(func() (bool, string) {
				copied := w.object().Status.PodProbeStatuses
				return len(copied) == 1 && copied[0].ProbeStates[0].State == succeeded, fmt.Sprintf("copy: %+v", copied)
			})
			w.eventually(func() (bool, string) { return len(w.events()) == 1, fmt.Sprintf("events: %v", w.events()) })
		})
	}
}

// TestRestartWithCopyWritesNothing restarts an agent that keeps a copy of the states in the status.
func TestRestartWithCopyWritesNothing(t *testing.T) {
	w := newWorld(t, shared, critest.Streamed)
	w.run("p")
	w.setAnswer("yes", answer{stdout: "ok"})
	w.plan(w.pod("p", "yes"))
	mirror := func(o *agent.Options) { o.MirrorStatus = true }
	stop := w.startAgentWith(w.config, mirror)
	w.reported("p yes", succeeded, "ok")
	w.eventually(func() (bool, string) {
		return len(w.object().Status.PodProbeStatuses) == 1, "the status has no copy of the states"
	})
	stop()
	before := w.versions()
	w.startAgentWith(w.config, mirror)
	w.ranAgain("yes", 3)
	if diff := cmp.Diff(before, w.versions()); diff != "" {
		t.Errorf("versions before and after the restart:\n%s", diff)
	}
}

// TestSlicesAreRestored deletes and edits slices. The agent repairs them when the manager requests
// it, or with the next change.
func TestSlicesAreRestored(t *testing.T) {
	w := newWorld(t, shared, critest.Streamed)
	var pods []v1alpha1.PodProbe
	for i := range 10 {
		name := fmt.Sprintf("p%d", i)
		w.run(name)
		pods = append(pods, w.pod(name, name))
	}
	w.plan(pods...)
	w.startAgent()
	w.eventually(func() (bool, string) { return len(w.states()) == 10, fmt.Sprintf("%d states", len(w.states())) })
	want := w.states()
	restored := func() (bool, string) {
		diff := cmp.Diff(want, w.states())
		return diff == "", diff
	}
	deleted := w.slices()[w.node+".0"]
	if err := w.client.Delete(t.Context(), &deleted); err != nil {
		t.Fatal(err)
	}
	w.requestRestore("1")
	w.eventually(restored)

	edited := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: w.node + ".1"}}
	if err := w.client.Patch(t.Context(), edited, env.MergePatch(`{"pods": []}`)); err != nil {
		t.Fatal(err)
	}
	w.requestRestore("2")
	w.eventually(restored)
	before := w.versions()
	w.requestRestore("3")
	w.ranAgain("p0", 2)
	after := w.versions()
	delete(before, "status")
	delete(after, "status")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("writes although no slice is wrong:\n%s", diff)
	}

	// Without a request, the next change of the slice restores it.
	if err := w.client.Delete(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	w.setAnswer("p8", answer{code: 1})
	w.setAnswer("p9", answer{code: 1})
	w.reported("p8 p8", failed, "")
	w.reported("p9 p9", failed, "")
}

// TestReportsAreServedLater starts an agent before the kind ProbeReport is served. The plan and the
// states in the status are not lost.
func TestReportsAreServedLater(t *testing.T) {
	own := env.Start(t, env.NoCRDs())
	w := newWorld(t, own, critest.Streamed)
	crds, err := env.ReadCRDs("")
	if err != nil {
		t.Fatal(err)
	}
	var first, later []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range crds {
		if crd.Spec.Group == seamarkv1alpha1.GroupName {
			later = append(later, crd)
		} else {
			first = append(first, crd)
		}
	}
	if _, err := envtest.InstallCRDs(own.Config, envtest.CRDInstallOptions{CRDs: first}); err != nil {
		t.Fatal(err)
	}
	w.runSince("p", time.Now().Add(-2*time.Hour))
	w.setAnswer("yes", answer{after: time.Hour})
	pod := w.pod("p", "yes")
	pod.Probes[0].Probe.TimeoutSeconds = 300
	w.plan(pod)
	w.setStatus(w.legacyStatus(failed, "reported earlier"))
	before := w.object()
	w.startAgent()
	<-time.After(2 * time.Second)
	if diff := cmp.Diff(before.Status, w.object().Status); diff != "" {
		t.Errorf("the status changed before ProbeReports are served:\n%s", diff)
	}
	if _, err := envtest.InstallCRDs(own.Config, envtest.CRDInstallOptions{CRDs: later}); err != nil {
		t.Fatal(err)
	}
	w.reported("p yes", failed, "reported earlier")
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: w.node + ".0"}, &seamarkv1alpha1.ProbeReport{}); err != nil {
		t.Error(err)
	}
}
