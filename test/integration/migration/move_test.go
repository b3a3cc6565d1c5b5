// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// The marks of the marker game, by the states of its two probes.
var (
	idle   = []string{"label idle=true", "annotation cost=-10", "condition game.io/idle=True"}
	busy   = []string{"label busy=true", "annotation cost=10", "condition game.io/idle=False"}
	health = []string{"label healthy=true"}
)

// game returns a marker with two probes: one with unset fields and policies for both states,
// and one with all fields set and a policy for Succeeded only.
func game(namespace string) *v1alpha1.PodProbeMarker {
	marker := builders.Marker(namespace, "game").
		Probe(builders.Probe("idle").Handler(command("idle")).Condition("game.io/idle").
			Label(succeeded, "idle", "true").Annotation(succeeded, "cost", "-10").
			Label(failed, "busy", "true").Annotation(failed, "cost", "10")).
		Probe(builders.Probe("healthy").Handler(command("healthy")).Times(1, 1).Label(succeeded, "healthy", "true"))
	return marker.Unsaved().Build()
}

func command(name string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{name}}}
}

// leave creates the objects that remain after OpenKruise is turned off.
func leave(ctx context.Context, w *world) {
	w.Helper()
	kruise := newOpenKruise(w)
	marker := game(w.Namespace)
	w.Create(marker)
	pods := map[string]*corev1.Pod{}
	var all []*corev1.Pod
	for _, name := range []string{"idle", "busy", "turned", "silent", "fresh"} {
		pods[name] = kruise.createPod(ctx, name)
		all = append(all, pods[name])
	}
	kruise.follows(ctx, marker, int64(len(all)))
	npp := kruise.plans(ctx, marker, all...)

	asIdle, asBusy := map[string]string{"idle": "true", "healthy": "true"}, map[string]string{"busy": "true"}
	// Marked according to its report, in either state.
	kruise.reports(ctx, npp, pods["idle"], state("game#idle", succeeded), state("game#healthy", succeeded))
	kruise.marks(ctx, pods["idle"], asIdle, map[string]string{"cost": "-10"}, corev1.ConditionTrue)
	kruise.reports(ctx, npp, pods["busy"], state("game#idle", failed), state("game#healthy", failed))
	kruise.marks(ctx, pods["busy"], asBusy, map[string]string{"cost": "10"}, corev1.ConditionFalse)
	// The daemon reported a change, without times, that no controller processed.
	w.exits("busy", "idle", 1)
	w.exits("busy", "healthy", 1)
	w.exits("turned", "idle", 1)
	w.exits("turned", "healthy", 1)
	kruise.reports(ctx, npp, pods["turned"],
		v1alpha1.ContainerProbeState{Name: "game#idle", State: failed}, v1alpha1.ContainerProbeState{Name: "game#healthy", State: failed})
	kruise.marks(ctx, pods["turned"], asIdle, map[string]string{"cost": "-10"}, corev1.ConditionTrue)
	// Marked, but the report is lost.
	kruise.marks(ctx, pods["silent"], asIdle, map[string]string{"cost": "-10"}, corev1.ConditionTrue)
	// The container was new when the daemon stopped.
	kruise.reports(ctx, npp, pods["fresh"], state("game#idle", unknown))
	kruise.marks(ctx, pods["fresh"], nil, nil, corev1.ConditionFalse)
	w.exits("fresh", "idle", 1)
	w.exits("fresh", "healthy", 1)
	// Keys that no marker declares, of OpenKruise's other features and of other writers.
	kruise.marks(ctx, pods["idle"], map[string]string{"theirs": "1"}, map[string]string{"kruise.io/other": "2"}, "")
	w.Patch(pods["idle"], `{"metadata":{"labels":{"team":"blue"}}}`)
}

func TestMove(t *testing.T) {
	foreign := []string{"label theirs=1", "label team=blue", "annotation kruise.io/other=2"}
	starts := map[string]func(w *world) (stopManager func()){
		"agent first": func(w *world) func() {
			w.startAgent()
			w.Until("the agent runs OpenKruise's plan", func() error { return await.ErrorIf(w.ran("idle", "healthy") == 0, "no probe has run") })
			return w.startManager()
		},
		"manager first": func(w *world) func() {
			stop := w.startManager()
			w.owned("idle")
			w.startAgent()
			return stop
		},
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			leave(t.Context(), w)
			record := startRecord(w)
			stopManager := start(w)
			w.marked("turned", busy...)
			w.marked("fresh", busy...)
			for _, pod := range []string{"idle", "busy", "silent"} {
				w.owned(pod)
			}
			w.planIsOurs()
			w.probedTwice("idle", "busy", "silent")
			w.checkMove(record)

			w.marked("idle", all(idle, health, foreign)...)
			w.exits("idle", "idle", 1)
			w.exits("idle", "healthy", 1)
			w.marked("idle", all(busy, foreign)...)
			w.exits("silent", "healthy", 1)
			w.marked("silent", idle...)

			w.replaceCRDs()
			stopManager()
			w.startManager()
			w.exits("idle", "idle", 0)
			w.exits("idle", "healthy", 0)
			w.marked("idle", all(idle, health, foreign)...)
			w.statusIsOurs()
			w.checkAfterMove(record)

			w.Delete(game(w.Namespace))
			w.Gone(game(w.Namespace))
			w.marked("idle", foreign...)
			for _, pod := range []string{"busy", "turned", "silent", "fresh"} {
				w.marked(pod)
			}
		})
	}
}

func all(sets ...[]string) []string {
	var all []string
	for _, set := range sets {
		all = append(all, set...)
	}
	return all
}

// owned waits until Seamark owns marks of the pod.
func (w *world) owned(pod string) {
	w.Helper()
	found := &corev1.Pod{ObjectMeta: w.Meta(pod)}
	w.Shows(found, "Seamark owns marks of pod "+pod, func() error { return await.ErrorIf(mark.Entry(found.ManagedFields) == nil, "it owns none") })
}

// planIsOurs waits until the plan has defaults, which OpenKruise leaves unset.
func (w *world) planIsOurs() {
	w.Helper()
	w.Until("the plan is Seamark's", func() error {
		npp, err := gather.Reader{Client: w.Client}.NodePlan(w.Context(), w.node)
		if err != nil || npp == nil {
			return fmt.Errorf("there is none: %w", err)
		}
		for _, pod := range npp.Spec.PodProbes {
			for _, probe := range pod.Probes {
				if probe.Probe.TimeoutSeconds != 1 {
					return fmt.Errorf("probe %s of pod %s has no timeout", probe.Name, pod.Name)
				}
			}
		}
		return nil
	})
}

// probedTwice waits until each probe of the pods has run twice more.
func (w *world) probedTwice(pods ...string) {
	w.Helper()
	enough := map[[2]string]int{}
	for _, pod := range pods {
		for _, command := range []string{"idle", "healthy"} {
			enough[[2]string{pod, command}] = w.ran(pod, command) + 2
		}
	}
	w.Until("each probe has run twice more", func() error {
		for probe, many := range enough {
			if n := w.ran(probe[0], probe[1]); n < many {
				return fmt.Errorf("%s of pod %s ran %d of %d times", probe[1], probe[0], n, many)
			}
		}
		return nil
	})
}

// checkMove checks that marks that were correct before the move never changed, and that each
// incorrect one changed once.
func (w *world) checkMove(record *record) {
	w.Helper()
	want := map[string][]string{
		"idle": nil, "busy": nil, "silent": nil,
		"turned": {
			"annotation cost: -10, 10", "condition game.io/idle: True, False", "label busy: -, true",
			"label healthy: true, -", "label idle: true, -",
		},
		// OpenKruise sets no condition for Unknown.
		"fresh": {"annotation cost: -, 10", "condition game.io/idle: False, Unknown, False", "label busy: -, true"},
	}
	for pod, changes := range want {
		expect.Equal(w, fmt.Sprintf("changes of the marks of pod %s during the move", pod), changes, record.changes(pod))
	}
}

// checkAfterMove checks that after the move each mark changed once per change of state.
func (w *world) checkAfterMove(record *record) {
	w.Helper()
	want := []string{
		"annotation cost: -10, 10, -10", "condition game.io/idle: True, False, True", "label busy: -, true, -",
		"label healthy: true, -, true", "label idle: true, -, true",
	}
	expect.Equal(w, "changes of the marks of pod idle since the move", want, record.changes("idle"))
	expect.Equal(w, "changes of the marks of pod silent since the move", []string{"label healthy: true, -"}, record.changes("silent"))
	if changes := record.changes("busy"); len(changes) > 0 {
		w.Errorf("marks of pod busy changed: %v", changes)
	}
	before := record.written("busy")
	w.probedTwice("busy", "idle")
	if after := record.written("busy"); after != before {
		w.Errorf("a pod without state changes was written %d times", after-before)
	}
}

// replaceCRDs applies Seamark's CRDs like `kubectl apply --server-side --force-conflicts`.
func (w *world) replaceCRDs() {
	w.Helper()
	for _, crd := range env.Manifests(w, []string{"config/crd/bases"}) {
		w.Must(w.Client.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("kubectl"), client.ForceOwnership))
	}
}

// statusIsOurs waits until the marker's status has fields that OpenKruise's CRD does not have.
func (w *world) statusIsOurs() {
	w.Helper()
	marker := game(w.Namespace)
	w.Shows(marker, "the marker's status has conditions", func() error { return await.ErrorIf(len(marker.Status.Conditions) == 0, "it has none") })
}

// TestMarkerThatTheNewCRDRejects checks that a marker that OpenKruise's CRD accepts and Seamark's
// rejects keeps working and can be deleted. An edit of the invalid field is rejected by name.
func TestMarkerThatTheNewCRDRejects(t *testing.T) {
	w := newWorld(t)
	kruise := newOpenKruise(w)
	pod := kruise.createPod(t.Context(), "a")
	marker := builders.Marker(w.Namespace, "odd").
		Probe(builders.Probe("healthy").Handler(command("healthy")).Times(1, 1).Label(succeeded, "healthy", "true")).Unsaved().Build()
	marker.Spec.Probes[0].Probe.PeriodSeconds = -1
	w.Create(marker)
	kruise.follows(t.Context(), marker, 1)
	npp := kruise.plans(t.Context(), marker, pod)
	kruise.reports(t.Context(), npp, pod, state("odd#healthy", succeeded))
	kruise.marks(t.Context(), pod, map[string]string{"healthy": "true"}, nil, "")
	record := startRecord(w)
	w.startManager()
	w.startAgent()
	w.owned("a")
	w.replaceCRDs()
	w.Until("the new CRD is served", func() error {
		other := marker.DeepCopy()
		other.Name, other.ResourceVersion = "other", ""
		err := w.Client.Create(t.Context(), other, client.DryRunAll)
		return await.ErrorIf(!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.probes[0].probe.periodSeconds"), "create returns %v", err)
	})
	if changes := record.changes("a"); len(changes) > 0 {
		t.Errorf("marks changed: %v", changes)
	}
	w.exits("a", "healthy", 1)
	w.marked("a")
	w.exits("a", "healthy", 0)
	w.marked("a", "label healthy=true")

	w.Patch(marker, `{"metadata":{"labels":{"team":"blue"}}}`)
	err := w.Client.Patch(t.Context(), marker, client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/probes/0/probe/periodSeconds","value":-2}]`)))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.probes[0].probe.periodSeconds") {
		t.Errorf("another invalid period: %v, want an error that names the field", err)
	}
	w.Delete(&v1alpha1.PodProbeMarker{ObjectMeta: w.Meta("odd")})
	w.marked("a")
}
