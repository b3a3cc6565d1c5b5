// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/report"
	"github.com/seamark-dev/seamark/internal/streak"
)

const (
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
	unknown   = v1alpha1.ProbeUnknown
)

// at returns the time s seconds after the start of a test.
func at(s float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

func podPlan(name string, probes ...string) v1alpha1.PodProbe {
	pod := v1alpha1.PodProbe{Name: name, Namespace: "games", UID: "uid-" + name, IP: "10.0.0.1"}
	for _, p := range probes {
		pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{Name: p, ContainerName: "main"})
	}
	return pod
}

func key(t testing.TB, pod, name string) probeid.Key {
	t.Helper()
	id, err := probeid.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return probeid.Key{ContainerKey: probeid.ContainerKey{PodUID: types.UID("uid-" + pod), Name: "main"}, ID: id}
}

// known returns a state with the times of the last probe and the last transition.
func known(state v1alpha1.ProbeState, message string, probed, transition float64) streak.State {
	return streak.State{State: state, Message: message, LastProbe: at(probed), LastTransition: at(transition)}
}

func entry(name string, state v1alpha1.ProbeState, message string, probed, transition float64) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{
		Name: name, State: state, Message: message,
		LastProbeTime: metav1.NewTime(at(probed)), LastTransitionTime: metav1.NewTime(at(transition)),
	}
}

func podStatus(name string, entries ...v1alpha1.ContainerProbeState) v1alpha1.PodProbeStatus {
	return v1alpha1.PodProbeStatus{Name: name, Namespace: "games", UID: "uid-" + name, ProbeStates: entries}
}

// status returns the status of a plan of generation 1 with one pod and one probe.
func status(pods ...v1alpha1.PodProbeStatus) v1alpha1.NodePodProbeStatus {
	return v1alpha1.NodePodProbeStatus{ObservedGeneration: 1, Pods: 1, Probes: 1, PodProbeStatuses: pods}
}

func onePlan() report.Plan {
	return report.Plan{Generation: 1, Pods: []v1alpha1.PodProbe{podPlan("a", "m#p")}}
}

func TestDecideOneProbe(t *testing.T) {
	before := status(podStatus("a", entry("m#p", succeeded, "ok", 0, 0)))
	cases := map[string]struct {
		ledger report.Ledger
		state  *streak.State
		now    float64
		want   report.Decision
	}{
		"not known, not reported": {
			ledger: report.Read(status()),
			want:   report.Decision{Status: status()},
		},
		"not known, reported": {
			ledger: report.Read(before),
			want:   report.Decision{Status: before},
		},
		"no result, reported": {
			ledger: report.Read(before),
			state:  &streak.State{},
			want:   report.Decision{Status: status(), Write: true},
		},
		"first result": {
			ledger: report.Read(status()),
			state:  new(known(failed, "no", 1.7, 1.7)),
			now:    1.7,
			want:   report.Decision{Status: status(podStatus("a", entry("m#p", failed, "no", 1, 1))), Write: true},
		},
		"no change": {
			ledger: report.Read(before),
			state:  new(known(succeeded, "ok", 0, 0)),
			now:    3600,
			want:   report.Decision{Status: before},
		},
		"transition": {
			ledger: report.Read(status()).Wrote(at(0), before),
			state:  new(known(failed, "no", 1, 1)),
			now:    1,
			want:   report.Decision{Status: status(podStatus("a", entry("m#p", failed, "no", 1, 1))), Write: true},
		},
		"state changed and changed back": {
			ledger: report.Read(before),
			state:  new(known(succeeded, "ok", 3, 3)),
			now:    3,
			want:   report.Decision{Status: status(podStatus("a", entry("m#p", succeeded, "ok", 3, 3))), Write: true},
		},
		"message of a state that changed and changed back within a second": {
			ledger: report.Read(status()).Wrote(at(0.5), before),
			state:  new(known(succeeded, "fine", 0.9, 0.9)),
			now:    0.9,
			want:   report.Decision{Status: status(podStatus("a", entry("m#p", succeeded, "fine", 0, 0))), Write: true},
		},
		"first message after an agent restart": {
			ledger: report.Read(before),
			state:  new(known(succeeded, "fine", 1, 0)),
			now:    1,
			want:   report.Decision{Status: status(podStatus("a", entry("m#p", succeeded, "fine", 1, 0))), Write: true},
		},
		"only the probe time": {
			ledger: report.Read(before),
			state:  new(known(succeeded, "ok", 86400, 0)),
			now:    86400,
			want:   report.Decision{Status: before},
		},
		"new generation": {
			ledger: report.Read(v1alpha1.NodePodProbeStatus{Pods: 1, Probes: 1}),
			want:   report.Decision{Status: status(), Write: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			states := report.States{}
			if tc.state != nil {
				states[key(t, "a", "m#p")] = *tc.state
			}
			got := report.Decide(at(tc.now), onePlan(), tc.ledger, states)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Decide() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideFollowsPlan(t *testing.T) {
	reported := report.Read(v1alpha1.NodePodProbeStatus{
		ObservedGeneration: 1, Pods: 3, Probes: 4,
		PodProbeStatuses: []v1alpha1.PodProbeStatus{
			podStatus("removed", entry("m#p", succeeded, "ok", 0, 0)),
			podStatus("b", entry("m#gone", succeeded, "ok", 0, 0), entry("m#p", succeeded, "ok", 0, 0)),
			podStatus("a", entry("m#p", succeeded, "ok", 0, 0)),
		},
	})
	plan := report.Plan{Generation: 2, Pods: []v1alpha1.PodProbe{
		podPlan("a", "m#p", "bad name", "m#new"), podPlan("b", "m#p"), podPlan("pending", "m#p"),
	}}
	states := report.States{
		key(t, "a", "m#p"):       known(succeeded, "ok", 90, 0),
		key(t, "a", "m#new"):     known(failed, "no", 90, 90),
		key(t, "b", "m#p"):       known(succeeded, "ok", 90, 0),
		key(t, "removed", "m#p"): known(succeeded, "ok", 90, 0),
		key(t, "pending", "m#p"): {},
	}
	got := report.Decide(at(90), plan, reported, states)
	want := report.Decision{Write: true, Status: v1alpha1.NodePodProbeStatus{
		ObservedGeneration: 2, Pods: 3, Probes: 5,
		PodProbeStatuses: []v1alpha1.PodProbeStatus{
			podStatus("a", entry("m#p", succeeded, "ok", 0, 0), entry("m#new", failed, "no", 90, 90)),
			podStatus("b", entry("m#p", succeeded, "ok", 0, 0)),
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decide() (-want +got):\n%s", diff)
	}
}

// TestIdleNodeCausesNoWrites checks that a node without transitions is not written, however
// long it runs, although its probes run at different times.
func TestIdleNodeCausesNoWrites(t *testing.T) {
	const pods, period, hours = 50, 10, 2
	plan := report.Plan{Generation: 1}
	states := report.States{}
	for i := range pods {
		plan.Pods = append(plan.Pods, podPlan(fmt.Sprintf("p%02d", i), "m#p"))
	}
	ledger, writes := report.Read(v1alpha1.NodePodProbeStatus{}), 0
	for second := range hours * 3600 {
		for i := range pods {
			if second%period == i%period {
				states[key(t, fmt.Sprintf("p%02d", i), "m#p")] = known(succeeded, "ok", float64(second), float64(i%period))
			}
		}
		if d := report.Decide(at(float64(second)), plan, ledger, states); d.Write {
			ledger = ledger.Wrote(at(float64(second)), d.Status)
			writes++
		}
	}
	if writes != period {
		t.Errorf("%d writes in %d hours without transitions, want %d for the first states", writes, hours, period)
	}
}

func TestRestore(t *testing.T) {
	plan := report.Plan{Generation: 1, Pods: []v1alpha1.PodProbe{podPlan("a", "m#p", "m#q", "m#r", "bad")}}
	got := report.Restore(plan, status(
		podStatus("a", entry("m#p", succeeded, "ok", 5, 1), entry("m#q", "Odd", "", 5, 1), entry("m#gone", failed, "", 5, 1)),
		podStatus("b", entry("m#r", failed, "no", 5, 1)),
	))
	if diff := cmp.Diff(report.States{key(t, "a", "m#p"): known(succeeded, "ok", 5, 1)}, got); diff != "" {
		t.Errorf("Restore() (-want +got):\n%s", diff)
	}
}
