// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
)

// recorder records the calls of a follower, as its runner and its reporter.
type recorder struct {
	start time.Time
	log   []string
}

func (r *recorder) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%s %s", time.Since(r.start), fmt.Sprintf(format, args...)))
}

func (r *recorder) SetPlan(probes []worker.Task, inForce func()) {
	line := "run"
	for _, p := range probes {
		line += fmt.Sprintf(" %s%s", p.Key.ID, p.Restored.State)
	}
	r.note("%s", line)
	inForce()
}

func (r *recorder) InForce(object *v1alpha1.NodePodProbe) {
	if object == nil {
		r.note("in force: nothing")
		return
	}
	r.note("in force: %s/%d", object.UID, object.Generation)
}

func (r *recorder) Observe(*v1alpha1.NodePodProbe) {}

func (r *recorder) Restore(object *v1alpha1.NodePodProbe) report.States {
	return report.Restore(planOf(object), report.Read(nil, object.Status.PodProbeStatuses))
}

// start runs the follower until stop is called.
func (f *follower) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// event is what a follower sees, or a time that passes.
type event func(*watched)

func set(object *v1alpha1.NodePodProbe) event { return func(w *watched) { w.set(object) } }

// setSlice sets a ProbePlan, which has the version.
func setSlice(number int, version string, generation int64, probes ...string) event {
	return func(w *watched) { w.setSlice(number, version, planSlice(number, generation, probes...)) }
}

func after(d time.Duration) event { return func(*watched) { pass(d) } }

// reporting adds the status that a probe has failed.
func reporting(object *v1alpha1.NodePodProbe, probe string) *v1alpha1.NodePodProbe {
	object.Status = statusOf(probe, failed)
	return object
}

// invalid makes the first probe invalid.
func invalid(object *v1alpha1.NodePodProbe) *v1alpha1.NodePodProbe {
	object.Spec.PodProbes[0].Probes[0].Probe.TimeoutSeconds = 0
	return object
}

// older is an object that refers to ProbePlans, of a database that was restored.
func older(references string) *v1alpha1.NodePodProbe {
	object := referring("a", references)
	object.ResourceVersion = "99"
	return object
}

func TestFollower(t *testing.T) {
	cases := map[string]struct {
		play []event
		want []string
	}{
		"restored states in first and second plan": {
			play: []event{set(reporting(planned("a", 1, "m#p"), "m#p")), after(time.Second), set(reporting(planned("a", 2, "m#p", "m#q"), "m#q"))},
			want: []string{"0s run m#pFailed", "0s in force: a/1", "1s run m#p m#q", "1s in force: a/2"},
		},
		"restored state of an invalid probe": {
			play: []event{
				set(invalid(reporting(planned("a", 1, "m#p", "m#q"), "m#p"))),
				after(time.Second), set(planned("a", 2, "m#p", "m#q")), after(time.Second), set(planned("a", 3, "m#p", "m#q")),
			},
			want: []string{
				"0s run m#pFailed m#q", "0s in force: a/1", "1s run m#p m#q", "1s in force: a/2", "2s run m#p m#q", "2s in force: a/3",
			},
		},
		"restored state of an invalid probe that is removed": {
			play: []event{
				set(invalid(reporting(planned("a", 1, "m#p"), "m#p"))),
				after(time.Second), set(planned("a", 2, "m#q")), after(time.Second), set(planned("a", 3, "m#p")),
			},
			want: []string{
				"0s run m#pFailed", "0s in force: a/1", "1s run m#q", "1s in force: a/2", "2s run m#p", "2s in force: a/3",
			},
		},
		"status changed": {
			play: []event{set(planned("a", 1, "m#p")), after(time.Second), set(reporting(planned("a", 1, "m#p"), "m#p"))},
			want: []string{"0s run m#p", "0s in force: a/1"},
		},
		"object created after the start": {
			play: []event{set(nil), after(time.Second), set(planned("a", 1, "m#p"))},
			want: []string{"0s run", "0s in force: nothing", "1s run m#p", "1s in force: a/1"},
		},
		"object recreated within the grace period": {
			play: []event{
				set(planned("a", 1, "m#p")), after(time.Second), set(nil), after(29 * time.Second), set(planned("b", 1, "m#p")), after(time.Minute),
			},
			want: []string{"0s run m#p", "0s in force: a/1", "30s run m#p", "30s in force: b/1"},
		},
		"object deleted": {
			play: []event{set(planned("a", 1, "m#p")), after(time.Second), set(nil), after(time.Minute)},
			want: []string{"0s run m#p", "0s in force: a/1", "31s run", "31s in force: nothing"},
		},
		"object missing for a moment": {
			play: []event{set(planned("a", 1, "m#p")), after(time.Second), set(nil), after(time.Second), set(planned("a", 1, "m#p")), after(time.Minute)},
			want: []string{"0s run m#p", "0s in force: a/1"},
		},
		"object created after the grace period": {
			play: []event{set(planned("a", 1, "m#p")), after(time.Second), set(nil), after(time.Minute), set(reporting(planned("b", 1, "m#p"), "m#p"))},
			want: []string{"0s run m#p", "0s in force: a/1", "31s run", "31s in force: nothing", "1m1s run m#pFailed", "1m1s in force: b/1"},
		},
		"plan in ProbePlans": {
			play: []event{
				set(referring("a", "0:12,1:13")), after(time.Second), setSlice(0, "12", 2, "m#p"), after(time.Second), setSlice(1, "13", 1, "m#q"),
				after(time.Second), set(referring("a", "0:12,1:14")), after(time.Second), setSlice(1, "14", 2),
			},
			// The part of a plan that is known does not count as the plan.
			want: []string{"2s run m#p m#q", "2s in force: a/4", "4s run m#p", "4s in force: a/5"},
		},
		"plan of OpenKruise": {
			play: []event{
				set(planned("a", 1, "m#p")), after(time.Second), set(referring("a", "0:11")), after(time.Second), setSlice(0, "11", 1, "m#p"),
				after(time.Second), set(planned("a", 3, "m#p", "m#q")),
			},
			want: []string{
				"0s run m#p", "0s in force: a/1", "2s run m#p", "2s in force: a/2", "3s run m#p m#q", "3s in force: a/3",
			},
		},
		"ProbePlan of an earlier reference": {
			play: []event{
				set(referring("a", "0:11")), after(time.Second), set(referring("a", "0:12")), setSlice(0, "11", 1, "m#p"),
				after(time.Second), setSlice(0, "12", 2, "m#q"),
			},
			want: []string{"2s run m#q", "2s in force: a/3"},
		},
		"ProbePlan removed": {
			play: []event{
				set(referring("a", "0:11,1:13")), setSlice(0, "11", 1, "m#p"), setSlice(1, "13", 3, "m#q"), after(time.Second), set(referring("a", "1:13")),
			},
			want: []string{"0s run m#p m#q", "0s in force: a/5", "1s run m#q", "1s in force: a/4"},
		},
		"invalid references": {
			play: []event{
				set(referring("a", "0:11")), setSlice(0, "11", 1, "m#p"), after(time.Second), set(referring("a", "7")),
				after(time.Hour), set(referring("a", "0:11")),
			},
			want: []string{"0s run m#p", "0s in force: a/2"},
		},
		"NodePodProbe missing for a moment": {
			play: []event{
				set(referring("a", "0:11")), setSlice(0, "11", 1, "m#p"), after(time.Second), set(nil), after(time.Second), set(referring("b", "0:11")),
			},
			want: []string{"0s run m#p", "0s in force: a/2", "2s run m#p", "2s in force: b/2"},
		},
		"database restored": {
			play: []event{
				set(referring("a", "0:11")), setSlice(0, "11", 1, "m#p"), after(time.Second), set(older("0:11")),
				after(time.Second), setSlice(0, "11", 1, "m#q"),
			},
			want: []string{"0s run m#p", "0s in force: a/2", "2s run m#q", "2s in force: a/2"},
		},
		"invalid name": {
			play: []event{set(planned("a", 1, "m#p", "unnamed", "m#q"))},
			want: []string{"0s run m#p m#q", "0s in force: a/1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{start: time.Now()}
				f := &follower{watched: newWatched(nil), runner: r, report: r}
				stop := f.start(t)
				for _, happens := range tc.play {
					happens(f.watched)
				}
				synctest.Wait()
				stop()
				expect.Equal(t, "calls", tc.want, r.log)
			})
		})
	}
}

// planned returns an object with the UID and generation. Its pod has exec probes with the
// names.
func planned(uid types.UID, generation int64, probes ...string) *v1alpha1.NodePodProbe {
	object := nodePlan()
	object.UID, object.Generation = uid, generation
	object.Spec.PodProbes[0].Probes = nil
	for _, name := range probes {
		object.Spec.PodProbes[0].Probes = append(object.Spec.PodProbes[0].Probes, v1alpha1.ContainerProbe{
			Name: name, ContainerName: "main", Probe: spec(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}),
		})
	}
	return object
}

// referring returns an object of generation 1 that refers to ProbePlans.
func referring(uid types.UID, references string) *v1alpha1.NodePodProbe {
	object := planned(uid, 1)
	object.Annotations = map[string]string{v1alpha1.ProbePlansAnnotationKey: references}
	object.Spec.PodProbes = nil
	return object
}

// planSlice returns a ProbePlan with one pod per probe, which is named after it.
func planSlice(number int, generation int64, probes ...string) *seamarkv1alpha1.ProbePlan {
	slice := &seamarkv1alpha1.ProbePlan{NodeName: "node"}
	slice.Name, slice.Generation = seamarkv1alpha1.SliceName("node", number), generation
	for _, name := range probes {
		pod := planned("", 0, name).Spec.PodProbes[0]
		pod.Name, pod.UID = name, name
		slice.Pods = append(slice.Pods, pod)
	}
	return slice
}

// spec returns a probe with resolved defaults.
func spec(handler corev1.ProbeHandler) v1alpha1.ContainerProbeSpec {
	return v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
		ProbeHandler: handler, PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}}
}

func statusOf(name string, state v1alpha1.ProbeState) v1alpha1.NodePodProbeStatus {
	return v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
		Name: "pod", Namespace: "games", UID: "pod-uid",
		ProbeStates: []v1alpha1.ContainerProbeState{{Name: name, State: state}},
	}}}
}

func TestRunnableTasks(t *testing.T) {
	key := identity.Key{ContainerKey: identity.ContainerKey{PodUID: "pod-uid", Name: "main"}, ID: identity.ID{Marker: "m", Probe: "p"}}
	cases := map[string]struct {
		target probing.Target
		before bool
		want   bool
	}{
		"target":                              {target: probing.Target{Handler: probing.HandlerTCP}, want: true},
		"no target":                           {},
		"no target, but in the previous plan": {before: true, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tasks := []worker.Task{{Key: key, Target: tc.target}}
			tasks = runnable(tasks, report.States{}, map[identity.Key]bool{key: tc.before})
			expect.Equal(t, "followed", tc.want, len(tasks) == 1)
		})
	}
}

func TestProblemOfSeveralPlansIsLoggedOnce(t *testing.T) {
	var lines []string
	r := &recorder{start: time.Now()}
	f := &follower{runner: r, report: r, log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})}
	for generation := range int64(5) {
		f.put(planned("a", generation, "unnamed"))
	}
	expect.Equal(t, fmt.Sprintf("log = %v", lines), 1, len(lines))
}

func TestLoadOfEachPlanIsPassedOn(t *testing.T) {
	r := &recorder{start: time.Now()}
	var loads []float64
	f := &follower{runner: r, report: r, planned: func(load float64) { loads = append(loads, load) }}
	f.put(planned("a", 1, "m#p"))
	f.put(planned("a", 2, "m#p", "m#q"))
	f.put(nil)
	expect.Equal(t, "runs per second", []float64{0.1, 0.2, 0}, loads)
}
