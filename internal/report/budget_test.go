// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/report"
	"github.com/seamark-dev/seamark/internal/streak"
)

// largePlan adds pods with probes of equal messages to the plan and the states.
func largePlan(t testing.TB, plan *report.Plan, states report.States, namespace string, pods, probes int, message string) {
	t.Helper()
	for i := range pods {
		name := fmt.Sprintf("%s-7f5bc78bcb-%03d", namespace, i)
		pod := podPlan(name)
		pod.Namespace = namespace
		for j := range probes {
			probe := fmt.Sprintf("game-server#state-of-%d", j)
			pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{Name: probe, ContainerName: "main", Plan: "0123abcd"})
			state := known(succeeded, message, 1, 1)
			state.ContainerID = "0123456789abc"
			states[key(t, name, probe)] = state
		}
		plan.Pods = append(plan.Pods, pod)
	}
}

func sizeOf(t testing.TB, status v1alpha1.NodePodProbeStatus) int {
	t.Helper()
	body, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return len(body)
}

// TestLargestNode reports 250 pods with 8 probes and messages of 1 KiB.
func TestLargestNode(t *testing.T) {
	cases := map[string]string{
		"ASCII":          strings.Repeat("m", 1024),
		"multibyte":      strings.Repeat("é", 512),
		"escaped":        strings.Repeat("<", 1024),
		"control bytes":  strings.Repeat("\x01", 1024),
		"without limits": "idle",
	}
	for name, message := range cases {
		t.Run(name, func(t *testing.T) {
			plan, states := report.Plan{Generation: 1}, report.States{}
			largePlan(t, &plan, states, "games", 250, 8, message)
			d := report.Decide(at(1), plan, report.Ledger{}, states)
			reported, shortest := 0, len(message)
			for _, pod := range d.Status.PodProbeStatuses {
				for _, state := range pod.ProbeStates {
					reported++
					shortest = min(shortest, len(state.Message))
					if !utf8.ValidString(state.Message) || !strings.HasPrefix(message, state.Message) {
						t.Fatalf("message %q, want a prefix of %q", state.Message, message)
					}
				}
			}
			size := sizeOf(t, d.Status)
			t.Logf("%d bytes, messages of %d bytes", size, shortest)
			if reported != 2000 || size > report.MaxBytes || shortest < 2 {
				t.Errorf("%d states in %d bytes, shortest message %d bytes; want 2000, at most %d, at least 2", reported, size, shortest, report.MaxBytes)
			}
			if size < report.MaxBytes*9/10 && shortest < len(message) {
				t.Errorf("messages shortened although the report has only %d bytes", size)
			}
			ledger := report.Ledger{}.Wrote(at(1), d.Status)
			if again := report.Decide(at(200), plan, ledger, states); again.Write || !cmp.Equal(d.Status, again.Status) {
				t.Error("shortened messages are written again")
			}
		})
	}
}

// TestNamespacesShareBudget checks that a namespace with many long messages does not shorten
// those of another.
func TestNamespacesShareBudget(t *testing.T) {
	plan, states := report.Plan{Generation: 1}, report.States{}
	long := strings.Repeat("m", 1024)
	largePlan(t, &plan, states, "large", 200, 8, long)
	largePlan(t, &plan, states, "medium", 20, 8, long)
	largePlan(t, &plan, states, "small", 5, 2, long)
	d := report.Decide(at(1), plan, report.Ledger{}, states)
	lengths := map[string]int{}
	for _, pod := range d.Status.PodProbeStatuses {
		lengths[pod.Namespace] = len(pod.ProbeStates[0].Message)
	}
	if lengths["small"] != 1024 || lengths["medium"] < 512 || lengths["large"] < 32 || lengths["large"] >= lengths["medium"] {
		t.Errorf("lengths of messages %v, want all of small, most of medium, and some of large", lengths)
	}
	if size := sizeOf(t, d.Status); size > report.MaxBytes {
		t.Errorf("%d bytes, want at most %d", size, report.MaxBytes)
	}
}

// FuzzBudget checks that a report has all states and is within the budget, whatever the messages
// are and were, and that messages are shortened only if they must be.
func FuzzBudget(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint16(seed*37), uint16(seed%4*300))
	}
	f.Fuzz(func(t *testing.T, seed uint64, pods, length uint16) {
		rng := rand.New(rand.NewPCG(seed, 1))
		plan, before, after := report.Plan{Generation: 1}, report.States{}, report.States{}
		total := 0
		for i := range min(int(pods), 800) {
			pod := podPlan(fmt.Sprintf("p%04d", i))
			pod.Namespace = fmt.Sprintf("ns-%d", rng.IntN(1+i%7))
			for j := range rng.IntN(4) {
				name := fmt.Sprintf("m#p%d", j)
				pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{Name: name, ContainerName: "main"})
				k := key(t, pod.Name, name)
				before[k] = known(succeeded, randomMessage(rng, int(length)%1024), 1, 1)
				switch rng.IntN(4) {
				case 0: // Not known yet.
				case 1:
					after[k] = streak.State{}
					continue
				default:
					after[k] = known(failed, randomMessage(rng, int(length)%1024), 2, float64(1+rng.IntN(2)))
				}
				total++
			}
			plan.Pods = append(plan.Pods, pod)
		}
		first := report.Decide(at(1), plan, report.Ledger{}, before)
		d := report.Decide(at(2), plan, report.Ledger{}.Wrote(at(1), first.Status), after)
		for _, status := range []v1alpha1.NodePodProbeStatus{first.Status, d.Status} {
			if size := sizeOf(t, status); size > report.MaxBytes {
				t.Errorf("%d bytes, want at most %d", size, report.MaxBytes)
			}
		}
		full, states := d.Status.DeepCopy(), 0
		for i := range full.PodProbeStatuses {
			pod := &full.PodProbeStatuses[i]
			for j := range pod.ProbeStates {
				entry := &pod.ProbeStates[j]
				state, found := after[key(t, pod.Name, entry.Name)]
				if !found {
					state = before[key(t, pod.Name, entry.Name)]
				}
				if !utf8.ValidString(entry.Message) || !strings.HasPrefix(state.Message, entry.Message) {
					t.Fatalf("message %q, want a prefix of %q", entry.Message, state.Message)
				}
				entry.Message = state.Message
				states++
			}
		}
		if states != total {
			t.Errorf("%d states, want %d", states, total)
		}
		if size := sizeOf(t, *full); size < report.MaxBytes/2 && !cmp.Equal(*full, d.Status) {
			t.Errorf("messages shortened although all of them have %d bytes", size)
		}
	})
}

// randomMessage returns a valid message of about the length.
func randomMessage(rng *rand.Rand, length int) string {
	var message strings.Builder
	for message.Len() < length {
		message.WriteRune([]rune("aaaaé世<\x01\n\"\u2028")[rng.IntN(11)])
	}
	return message.String()
}
