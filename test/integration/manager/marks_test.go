// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
)

const (
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
)

// documented returns the probe of the OpenKruise documentation.
func documented() *builders.ProbeBuilder {
	return builders.Probe("Idle").Condition("game.io/idle").
		Label(succeeded, "gameserver-idle", "true").Annotation(succeeded, "controller.kubernetes.io/pod-deletion-cost", "-10").
		Label(failed, "gameserver-idle", "false").Annotation(failed, "controller.kubernetes.io/pod-deletion-cost", "10")
}

func TestDocumentedExample(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	w.pod("a", w.node("documented"))
	w.marker(builders.Marker(w.Namespace, "game").Probe(documented()))
	w.planned("documented", "a/game#Idle")

	w.report("documented", states{"game#Idle": succeeded})
	w.marked("a", "label gameserver-idle=true", "annotation controller.kubernetes.io/pod-deletion-cost=-10", "condition game.io/idle=True")
	pod := w.stored("a")
	for _, c := range pod.Status.Conditions {
		if c.Type != "game.io/idle" {
			continue
		}
		now := at()
		if c.Message != "Succeeded" || !c.LastProbeTime.Equal(&now) || !c.LastTransitionTime.Equal(&now) {
			t.Errorf("condition %v: want the message and both times of the state", c)
		}
	}
	w.report("documented", states{"game#Idle": failed})
	w.marked("a", "label gameserver-idle=false", "annotation controller.kubernetes.io/pod-deletion-cost=10", "condition game.io/idle=False")
	w.counted("game", 0, 1, 0)
	w.report("documented", states{"game#Idle": v1alpha1.ProbeUnknown})
	w.marked("a", "condition game.io/idle=Unknown")
	w.counted("game", 0, 0, 1)
}

// markerShows waits until the check of the marker succeeds.
func (w *world) markerShows(marker, what string, check func(*v1alpha1.PodProbeMarker) error) {
	w.Helper()
	found := w.markerNamed(marker)
	w.Shows(found, fmt.Sprintf("marker %s: %s", marker, what), func() error { return check(found) })
}

// counted waits until the marker's status has these numbers of states.
func (w *world) counted(marker string, succeeded, failed, unknown int64) {
	w.Helper()
	w.markerShows(marker, fmt.Sprintf("%d, %d and %d states", succeeded, failed, unknown), func(m *v1alpha1.PodProbeMarker) error {
		s := m.Status
		return await.ErrorIf(s.Succeeded != succeeded || s.Failed != failed || s.Unknown != unknown, "%+v", s)
	})
}

// matched waits until the marker's status has that number of pods for the current generation.
func (w *world) matched(marker string, pods int64) {
	w.Helper()
	w.markerShows(marker, fmt.Sprintf("%d pods", pods), func(m *v1alpha1.PodProbeMarker) error {
		return await.ErrorIf(m.Status.MatchedPods != pods || m.Status.ObservedGeneration != m.Generation, "%+v", m.Status)
	})
}

func TestProbesWithTheSameKey(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	w.pod("a", w.node("keys"))
	w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").Label(succeeded, "idle", "web").Label(failed, "idle", "no")))
	w.planned("keys", "a/web#p")
	w.report("keys", states{"web#p": succeeded})
	w.marked("a", "label idle=web")

	w.marker(builders.Marker(w.Namespace, "api").Probe(builders.Probe("p").Label(succeeded, "idle", "api").Label(succeeded, "api", "yes")))
	w.planned("keys", "a/api#p", "a/web#p")
	w.report("keys", states{"web#p": succeeded, "api#p": succeeded})
	w.marked("a", "label idle=api", "label api=yes")
	w.unchanged("a", "label idle=api", "label api=yes")

	w.condition("web", v1alpha1.ConditionMarksExclusive, "KeyConflict",
		`Probe "p": label "idle" is set by probe "p" of marker "api" (1 of 1 matched pods, such as a).`)
	w.condition("api", v1alpha1.ConditionMarksExclusive, "Exclusive", "")
	w.event("web", "KeyConflict", `label "idle" is set by probe "p" of marker "api"`)

	// After the first marker is deleted, the other one sets the label.
	w.Delete(w.markerNamed("api"))
	w.marked("a", "label idle=web")
	w.condition("web", v1alpha1.ConditionMarksExclusive, "Exclusive", "")
}

// condition waits until the marker's condition has the reason and, unless empty, the message.
func (w *world) condition(marker, conditionType, reason, message string) {
	w.Helper()
	w.markerShows(marker, fmt.Sprintf("condition %s is %s", conditionType, reason), func(m *v1alpha1.PodProbeMarker) error {
		c := meta.FindStatusCondition(m.Status.Conditions, conditionType)
		ok := c != nil && c.Reason == reason && (message == "" || c.Message == message) && c.ObservedGeneration == m.Generation
		return await.ErrorIf(!ok, "%+v", c)
	})
}

// event waits until the marker has an event of the manager.
func (w *world) event(marker, reason, part string) {
	w.Helper()
	w.Until(fmt.Sprintf("marker %s has an event %s", marker, reason), func() error {
		return await.ErrorIf(!slices.ContainsFunc(w.Events(reason), func(e corev1.Event) bool {
			return e.InvolvedObject.Name == marker && strings.Contains(e.Message, part) && e.Source.Component == "seamark-manager" && e.Type == corev1.EventTypeWarning
		}), "no event")
	})
}

func TestMarksOfOtherWriters(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	pod := w.pod("a", w.node("others"))
	w.marker(builders.Marker(w.Namespace, "web").Probe(documented()))
	w.planned("others", "a/web#Idle")
	w.report("others", states{"web#Idle": succeeded})
	ours := []string{"label gameserver-idle=true", "annotation controller.kubernetes.io/pod-deletion-cost=-10", "condition game.io/idle=True"}
	w.marked("a", ours...)

	// Seamark's marks are restored, those of others stay.
	w.Patch(pod, `{"metadata":{"labels":{"gameserver-idle":"maybe","theirs":"1"},"annotations":{"controller.kubernetes.io/pod-deletion-cost":null}}}`)
	w.marked("a", append(ours, "label theirs=1")...)
	w.Must(w.Client.Status().Patch(t.Context(), pod, client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"game.io/idle","status":"False"},{"type":"their.io/c","status":"True"}]}}`))))
	w.marked("a", append(ours, "label theirs=1", "condition their.io/c=True")...)
	w.Delete(w.markerNamed("web"))
	w.marked("a", "label theirs=1", "condition their.io/c=True")
}
