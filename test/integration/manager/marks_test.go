// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
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
	w := newWorld(t, shared)
	w.pod("a", w.node("documented"))
	w.marker(builders.Marker(w.namespace, "game").Probe(documented()))
	w.planned("documented", "a/game#Idle")

	w.report("documented", states{"game#Idle": succeeded})
	w.marked("a", "label gameserver-idle=true", "annotation controller.kubernetes.io/pod-deletion-cost=-10", "condition game.io/idle=True")
	pod, err := w.getPod(t.Context(), "a")
	w.must(err)
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
	w.report("documented", states{"game#Idle": v1alpha1.ProbeUnknown})
	w.marked("a", "condition game.io/idle=Unknown")
}

// healthyPod creates pod a on a new node and marker web, reports Succeeded, and waits until
// the pod is labeled healthy.
func (w *world) healthyPod(node string) *corev1.Pod {
	w.Helper()
	pod := w.pod("a", w.node(node))
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").Label(succeeded, "healthy", "true")))
	w.planned(node, "a/web#p")
	w.report(node, states{"web#p": succeeded})
	w.marked("a", "label healthy=true")
	return pod
}

func TestSucceededPolicyOnly(t *testing.T) {
	w := newWorld(t, shared)
	w.healthyPod("alone")
	w.report("alone", states{"web#p": failed})
	w.marked("a")
	w.report("alone", states{"web#p": succeeded})
	w.marked("a", "label healthy=true")
}

func TestPodThatStopsMatching(t *testing.T) {
	w := newWorld(t, shared)
	pod := w.pod("a", w.node("stops"))
	w.pod("b", "stops")
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").Label(succeeded, "healthy", "true")))
	w.planned("stops", "a/web#p", "b/web#p")
	w.report("stops", states{"web#p": succeeded})
	w.marked("a", "label healthy=true")
	w.matched("web", 2)

	w.must(w.client.Patch(t.Context(), pod, env.MergePatch(`{"metadata":{"labels":{"app":"db"}}}`)))
	w.marked("a")
	w.planned("stops", "b/web#p")
	w.marked("b", "label healthy=true")
	w.matched("web", 1)
}

// matched waits until the marker's status has that number of pods for the current generation.
func (w *world) matched(marker string, pods int64) {
	w.Helper()
	w.until(fmt.Sprintf("marker %s matches %d pods", marker, pods), func(ctx context.Context) (string, error) {
		found, err := w.getMarker(ctx, marker)
		if err != nil || (found.Status.MatchedPods == pods && found.Status.ObservedGeneration == found.Generation) {
			return "", err
		}
		return fmt.Sprintf("%+v", found.Status), nil
	})
}

func TestDeletedMarkerWhoseNameIsASuffix(t *testing.T) {
	w := newWorld(t, shared)
	w.pod("a", w.node("names"))
	for _, name := range []string{"web", "my-web"} {
		w.marker(builders.Marker(w.namespace, name).Probe(builders.Probe("p").
			Label(succeeded, name, "true").Condition("game.io/" + name)))
	}
	w.planned("names", "a/web#p", "a/my-web#p")
	w.report("names", states{"web#p": succeeded, "my-web#p": succeeded})
	w.marked("a", "label web=true", "label my-web=true", "condition game.io/web=True", "condition game.io/my-web=True")

	w.must(w.client.Delete(t.Context(), w.markerNamed("web")))
	w.gone("web")
	// At the moment when the marker is gone, its marks and probes are gone too.
	pod, err := w.getPod(t.Context(), "a")
	w.must(err)
	if got := strings.Join(marks(pod), ", "); got != "label my-web=true, condition game.io/my-web=True" {
		t.Errorf("the marker is gone, but the pod has the marks %s", got)
	}
	npp, err := w.getPlan(t.Context(), "names")
	w.must(err)
	if len(npp.Spec.PodProbes) != 1 || len(npp.Spec.PodProbes[0].Probes) != 1 || npp.Spec.PodProbes[0].Probes[0].Name != "my-web#p" {
		t.Errorf("the marker is gone, but the plan is %+v", npp.Spec)
	}
	w.unchanged("a", "label my-web=true", "condition game.io/my-web=True")
}

func TestProbesWithTheSameKey(t *testing.T) {
	w := newWorld(t, shared)
	w.pod("a", w.node("keys"))
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").Label(succeeded, "idle", "web").Label(failed, "idle", "no")))
	w.planned("keys", "a/web#p")
	w.report("keys", states{"web#p": succeeded})
	w.marked("a", "label idle=web")

	w.marker(builders.Marker(w.namespace, "api").Probe(builders.Probe("p").Label(succeeded, "idle", "api").Label(succeeded, "api", "yes")))
	w.planned("keys", "a/api#p", "a/web#p")
	w.report("keys", states{"web#p": succeeded, "api#p": succeeded})
	w.marked("a", "label idle=api", "label api=yes")
	w.unchanged("a", "label idle=api", "label api=yes")

	w.condition("web", v1alpha1.ConditionMarksExclusive, "KeyConflict",
		`Probe "p": label "idle" is set by probe "p" of marker "api" (1 of 1 matched pods, such as a).`)
	w.condition("api", v1alpha1.ConditionMarksExclusive, "Exclusive", "")
	w.event("web", "KeyConflict", `label "idle" is set by probe "p" of marker "api"`)

	// After the first marker is deleted, the other one sets the label.
	w.must(w.client.Delete(t.Context(), w.markerNamed("api")))
	w.marked("a", "label idle=web")
	w.condition("web", v1alpha1.ConditionMarksExclusive, "Exclusive", "")
}

// condition waits until the marker's condition has the reason and, unless empty, the message.
func (w *world) condition(marker, conditionType, reason, message string) {
	w.Helper()
	w.until(fmt.Sprintf("condition %s of marker %s is %s", conditionType, marker, reason), func(ctx context.Context) (string, error) {
		found, err := w.getMarker(ctx, marker)
		if err != nil {
			return "", err
		}
		c := meta.FindStatusCondition(found.Status.Conditions, conditionType)
		if c != nil && c.Reason == reason && (message == "" || c.Message == message) && c.ObservedGeneration == found.Generation {
			return "", nil
		}
		return fmt.Sprintf("%+v", c), nil
	})
}

// event waits until the marker has an event of the manager.
func (w *world) event(marker, reason, part string) {
	w.Helper()
	w.until(fmt.Sprintf("marker %s has an event %s", marker, reason), func(ctx context.Context) (string, error) {
		var events corev1.EventList
		if err := w.client.List(ctx, &events, client.InNamespace(w.namespace)); err != nil {
			return "", err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == marker && e.Reason == reason && strings.Contains(e.Message, part) &&
				e.Source.Component == "seamark-manager" && e.Type == corev1.EventTypeWarning {
				return "", nil
			}
		}
		return fmt.Sprintf("%d other events", len(events.Items)), nil
	})
}

func TestProbesThatCannotRun(t *testing.T) {
	w := newWorld(t, shared)
	w.node("resolve")
	for _, name := range []string{"a", "b"} {
		pod := builders.Pod(w.namespace, name).Label("app", "game").Node("resolve")
		if name == "b" {
			pod.Container("db")
		}
		_, err := env.CreatePod(t.Context(), w.client, pod.Build())
		w.must(err)
	}
	w.marker(builders.Marker(w.namespace, "web").
		Probe(builders.Probe("main").Condition("game.io/main")).
		Probe(builders.Probe("db").Container("db").Condition("game.io/db")))
	w.planned("resolve", "a/web#main", "b/web#main", "b/web#db")
	w.condition("web", v1alpha1.ConditionProbesResolved, "ContainerNotFound",
		`Probe "db": container "db" not found (1 of 2 matched pods, such as a).`)
	w.event("web", "ContainerNotFound", `container "db" not found`)
}

func TestEndedPodsKeepTheirMarks(t *testing.T) {
	w := newWorld(t, shared)
	w.node("ended")
	done, gone, live := w.pod("done", "ended"), w.pod("gone", "ended"), w.pod("live", "ended")
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").Label(succeeded, "healthy", "true")))
	w.planned("ended", "done/web#p", "gone/web#p", "live/web#p")
	w.report("ended", states{"web#p": succeeded})
	for _, pod := range []*corev1.Pod{done, gone, live} {
		w.marked(pod.Name, "label healthy=true")
	}
	w.must(w.client.Status().Patch(t.Context(), done, env.MergePatch(`{"status":{"phase":"Succeeded"}}`)))
	w.must(w.client.Delete(t.Context(), gone))
	w.planned("ended", "live/web#p")
	w.report("ended", states{"web#p": failed})
	w.marked("live")
	w.unchanged("done", "label healthy=true")
	w.unchanged("gone", "label healthy=true")
	// Marks on ended pods don't block the deletion of the marker.
	w.must(w.client.Delete(t.Context(), w.markerNamed("web")))
	w.gone("web")
	w.unchanged("done", "label healthy=true")
}

func TestRecreatedPodIgnoresOldStates(t *testing.T) {
	w := newWorld(t, shared)
	pod := w.healthyPod("recreated")
	w.must(w.client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	w.pod("a", "recreated")
	w.planned("recreated", "a/web#p")
	w.unchanged("a")
	w.report("recreated", states{"web#p": succeeded})
	w.marked("a", "label healthy=true")
}

func TestMarksOfOtherWriters(t *testing.T) {
	w := newWorld(t, shared)
	pod := w.pod("a", w.node("others"))
	w.marker(builders.Marker(w.namespace, "web").Probe(documented()))
	w.planned("others", "a/web#Idle")
	w.report("others", states{"web#Idle": succeeded})
	ours := []string{"label gameserver-idle=true", "annotation controller.kubernetes.io/pod-deletion-cost=-10", "condition game.io/idle=True"}
	w.marked("a", ours...)

	// Seamark's marks are restored, those of others stay.
	w.must(w.client.Patch(t.Context(), pod, env.MergePatch(`{"metadata":{"labels":{"gameserver-idle":"maybe","theirs":"1"},"annotations":{"controller.kubernetes.io/pod-deletion-cost":null}}}`)))
	w.marked("a", append(ours, "label theirs=1")...)
	w.must(w.client.Status().Patch(t.Context(), pod, client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"game.io/idle","status":"False"},{"type":"their.io/c","status":"True"}]}}`))))
	w.marked("a", append(ours, "label theirs=1", "condition their.io/c=True")...)
	w.must(w.client.Delete(t.Context(), w.markerNamed("web")))
	w.marked("a", "label theirs=1", "condition their.io/c=True")
}
