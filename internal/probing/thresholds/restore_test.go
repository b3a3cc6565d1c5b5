// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package thresholds_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestRestoredContainerID checks that the ID of the container decides whether a restored state
// still applies, whatever the times are.
func TestRestoredContainerID(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 4)
	cases := map[string]struct {
		reported string
		step     step
		want     []string
	}{
		"same container":                        {"a", running(0, "a", -900), nil},
		"same container, wall clock set back":   {"a", running(0, "a", 900), nil},
		"container replaced in the same second": {"a", running(0, "b", -600), []string{"Succeeded>Unknown"}},
		"container replaced, wall clock set":    {"a", running(0, "b", -9000), []string{"Succeeded>Unknown"}},
		"same container ended":                  {"a", stopped(0, "a", "exited"), []string{"Succeeded>Failed"}},
		"container removed":                     {"a", gone(0), []string{"Succeeded>Failed"}},
		"shortened ID":                          {long[:13], running(0, long, 900), nil},
		"prefix of another ID":                  {"c1", running(0, "c10", -900), []string{"Succeeded>Unknown"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := reported(succeeded)
			start.ContainerID = tc.reported
			expect.Equal(t, "transitions", tc.want, transitionsOf(thresholds.Restore(kubernetes(), thresholds.Phase{}, start), tc.step))
		})
	}
}

// TestMovedState checks a state that a probe brings along from another container.
func TestMovedState(t *testing.T) {
	cases := map[string]struct {
		steps []step
		want  []string
	}{
		"new container runs":           {[]step{running(0, "b", -1)}, nil},
		"results below the threshold":  {[]step{running(0, "b", -1), failure(1, "1"), failure(2, "2")}, nil},
		"results reach the threshold":  {[]step{running(0, "b", -1), failure(1, "1"), failure(2, "2"), failure(3, "3")}, []string{"Succeeded>Failed"}},
		"new container has ended":      {[]step{stopped(0, "b", "exited")}, []string{"Succeeded>Failed"}},
		"new container has not run":    {[]step{gone(0)}, nil},
		"new container starts later":   {[]step{gone(0), running(1, "b", 1)}, nil},
		"new container is replaced":    {[]step{running(0, "b", -1), running(1, "c", 1)}, []string{"Succeeded>Unknown"}},
		"container removed after runs": {[]step{running(0, "b", -1), gone(1)}, []string{"Succeeded>Failed"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := thresholds.New(kubernetes(), thresholds.Phase{})
			state := reported(succeeded)
			state.ContainerID = "a"
			e.Move(state)
			expect.Equal(t, "transitions", tc.want, transitionsOf(e, tc.steps...))
			if due, ok := e.Due(); e.Container().Running != ok || due.After(at(1)) {
				t.Errorf("due at %s, %t, want at once if the container runs", due, ok)
			}
		})
	}
}

func transitionsOf(e *thresholds.Evaluator, steps ...step) []string {
	var got []string
	for _, s := range steps {
		if transition, changed := s(e); changed {
			got = append(got, string(transition.From)+">"+string(transition.To))
		}
	}
	return got
}

// FuzzRestore plays a script, restores the reported form of the state at its end, and checks
// that the agent continues in the same run of the container and starts again in another.
func FuzzRestore(f *testing.F) {
	for _, seed := range []string{"\x03\x01", "\x03\x01\x03", "\x03\x01\x04\x03\x01", "\x03\x01\x06\x01", "\x03\x00\x00\x00\x03\x03"} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, script []byte, withID bool) {
		m := &model{policy: kubernetes()}
		before := thresholds.New(m.policy, thresholds.Phase{})
		for i, op := range script {
			m.play(op, float64(i))(before)
		}
		state, run := before.State(), before.Container()
		if !run.Running || state.State == none {
			return
		}
		state.LastProbe = state.LastProbe.Truncate(time.Second)
		state.LastTransition = state.LastTransition.Truncate(time.Second)
		if !withID {
			state.ContainerID = ""
		}
		now := at(float64(len(script)) + 10)
		same := thresholds.Restore(m.policy, thresholds.Phase{}, state)
		if transition, changed := same.ContainerChanged(now, run); changed && state.State != unknown {
			t.Errorf("the same run caused %s to %s", transition.From, transition.To)
		}
		run.ID, run.StartedAt = "other", now.Add(-time.Second)
		other := thresholds.Restore(m.policy, thresholds.Phase{}, state)
		other.ContainerChanged(now, run)
		expect.Equal(t, "another run has the state", unknown, other.State().State)
	})
}
