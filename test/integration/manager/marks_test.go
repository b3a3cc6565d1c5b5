// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
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
			return e.InvolvedObject.Name == marker && strings.Contains(e.Message, part) && e.Source.Component == "seamark-manager" &&
				e.Type == corev1.EventTypeWarning
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

// TestLargestMarker: a tenant whose marker has the maximum size, in as many pods as a node can run, takes
// nothing from another tenant, and both can delete their markers.
func TestLargestMarker(t *testing.T) {
	const pods, probes, commandLength = 110, 32, 16384
	w := newWorld(t, servers.Parallel(t))
	// Reading the largest marker costs the API server as much as many writes.
	w.Poll = await.Poll{Interval: 400 * time.Millisecond, Timeout: 2 * time.Minute}
	node := w.node("shared-by-tenants")
	greedy := builders.Marker(w.Namespace, "greedy")
	for i := range probes {
		name := fmt.Sprint("probe-", i)
		greedy.Probe(builders.Probe(name).Condition("game.io/" + name).Handler(corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{strings.Repeat("x", commandLength)}},
		}))
	}
	w.marker(greedy)
	for i := range pods {
		w.pod(fmt.Sprintf("pod-%03d", i), node)
	}
	w.markerShows("greedy", "the status reports the pods without probes", func(m *v1alpha1.PodProbeMarker) error {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProbesResolved)
		return await.ErrorIf(c == nil || c.Reason != string(plan.PodPlanFull) ||
			!strings.Contains(c.Message, fmt.Sprintf("of %d matched pods, such as pod-", pods)), "%+v", c)
	})
	other := newWorldWithoutManager(t, w.Env)
	marker := other.marker(builders.Marker(other.Namespace, "modest").Probe(builders.Probe("p").Label(succeeded, "a", "b")))
	pod := other.pod("modest", node)
	w.inPlan(node, pod, true)
	other.Must(other.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	w.inPlan(node, pod, false)
	other.Must(other.Client.Delete(t.Context(), marker))
	other.gone("modest")

	w.Delete(w.markerNamed("greedy"))
	w.gone("greedy")
}

// inPlan waits until the plan of the node has the pod, or does not have it.
func (w *world) inPlan(node string, pod *corev1.Pod, want bool) {
	w.Helper()
	w.Until(fmt.Sprintf("pod %s is planned: %t", pod.Name, want), func() error {
		got := slices.ContainsFunc(w.storedPlan(node).Spec.PodProbes, func(p v1alpha1.PodProbe) bool { return p.UID == string(pod.UID) })
		return await.ErrorIf(got != want, "it is planned: %t", got)
	})
}
