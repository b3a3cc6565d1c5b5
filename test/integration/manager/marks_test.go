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
	w := newWorld(t, servers.Parallel(t))
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
	w.counted("game", 0, 1, 0)
	w.report("documented", states{"game#Idle": v1alpha1.ProbeUnknown})
	w.marked("a", "condition game.io/idle=Unknown")
	w.counted("game", 0, 0, 1)
}

// counted waits until the marker's status has these numbers of states.
func (w *world) counted(marker string, succeeded, failed, unknown int64) {
	w.Helper()
	w.until(fmt.Sprintf("marker %s counts %d, %d and %d states", marker, succeeded, failed, unknown), func(ctx context.Context) (string, error) {
		found, err := w.getMarker(ctx, marker)
		if err != nil {
			return "", err
		}
		if s := found.Status; s.Succeeded == succeeded && s.Failed == failed && s.Unknown == unknown {
			return "", nil
		}
		return fmt.Sprintf("%+v", found.Status), nil
	})
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

func TestProbesWithTheSameKey(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
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

func TestMarksOfOtherWriters(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
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
