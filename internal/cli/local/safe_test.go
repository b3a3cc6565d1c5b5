// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/expect"
)

// hostileChanges are changes of all kinds with texts of a hostile container or manifest.
func hostileChanges() []step {
	var steps []step
	for _, change := range []local.Change{
		{Kind: local.KindLog, Log: &local.LogLine{Stream: "stdout", Text: texttest.Hostile}},
		{Kind: local.KindEvent, Event: &local.PodEvent{Type: "Normal", Reason: "KruiseProbeFailed", Message: texttest.Hostile}},
		{Kind: local.KindProbe, Probe: &local.ProbeChange{Ran: true, Output: texttest.Hostile + texttest.Invalid}},
		{Kind: local.KindProbe, Probe: &local.ProbeChange{Ran: true, Error: texttest.Hostile}},
		{Kind: local.KindLabel, Key: "example.com/" + texttest.Hostile, Value: texttest.Hostile},
		{Kind: local.KindCondition, Condition: &corev1.PodCondition{Type: texttest.Hostile, Reason: texttest.Hostile, Message: texttest.Hostile}},
		{Kind: local.KindContainer, Status: &corev1.ContainerStatus{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: texttest.Hostile, Message: texttest.Hostile},
		}}},
	} {
		change.Pod, change.Container = "web", texttest.Hostile
		steps = append(steps, step{change: change})
	}
	return steps
}

func TestChangesAreSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: hostileChanges(), warnings: []string{texttest.Hostile}}
		stdout, stderr, err := play(t, s, Options{Logs: true, Verbose: true, Timeout: time.Second})
		expect.NoError(t, err)
		if lines := strings.Count(stdout, "hostile"); lines < len(s.steps) {
			t.Errorf("%d texts of %d changes:\n%s", lines, len(s.steps), stdout)
		}
		texttest.Check(t, stdout)
		texttest.Check(t, stderr)
	})
	synctest.Test(t, func(t *testing.T) {
		stdout, _, err := play(t, &script{steps: hostileChanges()[:1]}, Options{Logs: true, Output: "json", Timeout: time.Second})
		var change struct{ Log struct{ Text string } }
		first, _, _ := strings.Cut(stdout, "\n")
		if err := json.Unmarshal([]byte(first), &change); err != nil || change.Log.Text != texttest.Hostile {
			t.Errorf("JSON is not exact, %v: %q", err, change.Log.Text)
		}
		expect.Success(t, err)
	})
}
