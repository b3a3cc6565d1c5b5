// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/expect"
)

func podPlan(name string, probes ...string) v1alpha1.PodProbe {
	pod := v1alpha1.PodProbe{Name: name, Namespace: "games", UID: "uid-" + name, IP: "10.0.0.1"}
	for _, p := range probes {
		pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{Name: p, ContainerName: "main"})
	}
	return pod
}

func key(t testing.TB, pod, name string) identity.Key {
	t.Helper()
	id, err := identity.Parse(name)
	expect.NoError(t, err)
	return identity.Key{ContainerKey: identity.ContainerKey{PodUID: types.UID("uid-" + pod), Name: "main"}, ID: id}
}

// known returns a state with the times of the last probe and the last transition.
func known(state v1alpha1.ProbeState, message string, probed, transition float64) thresholds.State {
	return thresholds.State{State: state, Message: message, LastProbe: at(probed), LastTransition: at(transition)}
}

func entry(name string, state v1alpha1.ProbeState, message string, probed, transition float64) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{
		Name: name, State: state, Message: message,
		LastProbeTime: metav1.NewTime(at(probed)), LastTransitionTime: metav1.NewTime(at(transition)),
	}
}

func podReport(name string, entries ...v1alpha1.ContainerProbeState) seamarkv1alpha1.PodReport {
	return seamarkv1alpha1.PodReport{Name: name, Namespace: "games", UID: "uid-" + name, Probes: entries}
}

func stored(pods ...seamarkv1alpha1.PodReport) []report.Slice {
	if len(pods) == 0 {
		return nil
	}
	return []report.Slice{{Pods: pods}}
}

// write returns a write of slice 0, which is stored.
func write(pods ...seamarkv1alpha1.PodReport) report.Write { return report.Write{Pods: pods} }

// create returns a write of slice 0, which is not stored.
func create(pods ...seamarkv1alpha1.PodReport) report.Write {
	return report.Write{Pods: pods, Create: true}
}

// wrote decides and writes everything.
func wrote(now time.Time, plan report.Plan, record report.Record, states report.States) (report.Record, report.Decision) {
	d := report.Decide(now, plan, record, states, nil)
	record = d.Record
	for _, w := range d.Writes {
		record = record.Wrote(now, w)
	}
	return record, d
}

func onePlan() report.Plan {
	return report.Plan{Generation: 1, Pods: []v1alpha1.PodProbe{podPlan("a", "m#p")}}
}

func TestDecideOneProbe(t *testing.T) {
	before := podReport("a", entry("m#p", succeeded, "ok", 0, 0))
	cases := map[string]struct {
		record report.Record
		state  *thresholds.State
		now    float64
		want   []report.Write
	}{
		"not known, not reported": {},
		"not known, reported": {
			record: report.Read(stored(before), nil),
		},
		"no result, reported": {
			record: report.Read(stored(before), nil),
			state:  &thresholds.State{},
			want:   []report.Write{write(podReport("a"))},
		},
		"first result": {
			state: new(known(failed, "no", 1.7, 1.7)),
			now:   1.7,
			want:  []report.Write{create(podReport("a", entry("m#p", failed, "no", 1, 1)))},
		},
		"transition": {
			record: report.Record{}.Wrote(at(0), create(before)),
			state:  new(known(failed, "no", 1, 1)),
			now:    1,
			want:   []report.Write{write(podReport("a", entry("m#p", failed, "no", 1, 1)))},
		},
		"state changed and changed back": {
			record: report.Read(stored(before), nil),
			state:  new(known(succeeded, "ok", 3, 3)),
			now:    3,
			want:   []report.Write{write(podReport("a", entry("m#p", succeeded, "ok", 3, 3)))},
		},
		"message of a state that changed and changed back within a second": {
			record: report.Record{}.Wrote(at(0.5), create(before)),
			state:  new(known(succeeded, "fine", 0.9, 0.9)),
			now:    0.9,
			want:   []report.Write{write(podReport("a", entry("m#p", succeeded, "fine", 0, 0)))},
		},
		"first message after an agent restart": {
			record: report.Read(stored(before), nil),
			state:  new(known(succeeded, "fine", 1, 0)),
			now:    1,
			want:   []report.Write{write(podReport("a", entry("m#p", succeeded, "fine", 1, 0)))},
		},
		"only the probe time": {
			record: report.Read(stored(before), nil),
			state:  new(known(succeeded, "ok", 86400, 0)),
			now:    86400,
		},
		"takeover of equal states": {
			record: report.Read(stored(before), []v1alpha1.PodProbeStatus{podStatus(before)}),
		},
		"takeover of other states": {
			record: report.Read(stored(podReport("a", entry("m#p", failed, "no", 9, 9))), []v1alpha1.PodProbeStatus{podStatus(before)}),
			want:   []report.Write{write(before)},
		},
		"takeover without slices": {
			record: report.Read(nil, []v1alpha1.PodProbeStatus{podStatus(before)}),
			want:   []report.Write{create(before)},
		},
		"changed by another client": {
			record: report.Read(stored(before), nil).Adopt(stored(podReport("a", entry("m#p", failed, "no", 9, 9)))),
			want:   []report.Write{write(before)},
		},
		"deleted by another client": {
			record: report.Read(stored(before), nil).Adopt(nil),
			want:   []report.Write{create(before)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			states := report.States{}
			if tc.state != nil {
				states[key(t, "a", "m#p")] = *tc.state
			}
			got := report.Decide(at(tc.now), onePlan(), tc.record, states, nil)
			if diff := cmp.Diff(tc.want, got.Writes); diff != "" || !got.Next.IsZero() {
				t.Errorf("next %s, writes (-want +got):\n%s", got.Next, diff)
			}
		})
	}
}

// podStatus returns the entry of a pod in NodePodProbe.status.
func podStatus(pod seamarkv1alpha1.PodReport) v1alpha1.PodProbeStatus {
	return v1alpha1.PodProbeStatus{
		Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ProbeStates: pod.Probes,
	}
}

func TestDecideFollowsPlan(t *testing.T) {
	reported := report.Read(stored(
		podReport("removed", entry("m#p", succeeded, "ok", 0, 0)),
		podReport("b", entry("m#gone", succeeded, "ok", 0, 0), entry("m#p", succeeded, "ok", 0, 0)),
		podReport("a", entry("m#p", succeeded, "ok", 0, 0)),
	), nil)
	plan := report.Plan{Generation: 2, Pods: []v1alpha1.PodProbe{
		podPlan("a", "m#p", "bad name", "m#new"), podPlan("b", "m#p"), podPlan("pending", "m#p"), podPlan("started", "m#p"),
	}}
	states := report.States{
		key(t, "a", "m#p"):       known(succeeded, "ok", 90, 0),
		key(t, "a", "m#new"):     known(failed, "no", 90, 90),
		key(t, "b", "m#p"):       known(succeeded, "ok", 90, 0),
		key(t, "removed", "m#p"): known(succeeded, "ok", 90, 0),
		key(t, "pending", "m#p"): {},
		key(t, "started", "m#p"): known(unknown, "", 90, 90),
	}
	want := []report.Write{write(
		podReport("b", entry("m#p", succeeded, "ok", 0, 0)),
		podReport("a", entry("m#p", succeeded, "ok", 0, 0), entry("m#new", failed, "no", 90, 90)),
		podReport("started", entry("m#p", unknown, "", 90, 90)),
	)}
	expect.Equal(t, "writes", want, report.Decide(at(90), plan, reported, states, nil).Writes)
}

func TestRestore(t *testing.T) {
	plan := report.Plan{Generation: 1, Pods: []v1alpha1.PodProbe{podPlan("a", "m#p", "m#q", "m#r", "bad")}}
	got := report.Restore(plan, report.Read(stored(
		podReport("a", entry("m#p", succeeded, "ok", 5, 1), entry("m#q", "Odd", "", 5, 1), entry("m#gone", failed, "", 5, 1)),
		podReport("b", entry("m#r", failed, "no", 5, 1)),
	), nil))
	expect.Equal(t, "Restore()", report.States{key(t, "a", "m#p"): known(succeeded, "ok", 5, 1)}, got)
}

const (
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
	unknown   = v1alpha1.ProbeUnknown

	cannotRun = v1alpha1.ProbeCannotRun
	notEnded  = v1alpha1.ProbeNotEnded
)

// at returns the time s seconds after the start of a test.
func at(s float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

func encodedSize(t testing.TB, value any) int {
	t.Helper()
	body, err := json.Marshal(value)
	expect.NoError(t, err)
	return len(body)
}

// randomMessage returns a valid message of about the length.
func randomMessage(rng *rand.Rand, length int) string {
	var message strings.Builder
	for message.Len() < length {
		message.WriteRune([]rune("aaaaé世<\x01\n\"\u2028")[rng.IntN(11)])
	}
	return message.String()
}
