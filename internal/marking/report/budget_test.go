// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/expect"
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
			record, d := wrote(at(1), plan, report.Record{}, states)
			reported, shortest, largest := 0, len(message), 0
			for _, w := range d.Writes {
				size := encodedSize(t, w.Pods)
				largest = max(largest, size)
				for _, pod := range w.Pods {
					for _, state := range pod.Probes {
						reported++
						shortest = min(shortest, len(state.Message))
						if !utf8.ValidString(state.Message) || !strings.HasPrefix(message, state.Message) {
							t.Fatalf("message %q, want a prefix of %q", state.Message, message)
						}
					}
				}
			}
			t.Logf("%d slices of at most %d bytes, messages of %d bytes", len(d.Writes), largest, shortest)
			if reported != 2000 || len(d.Writes) != 63 || largest > report.MaxBytes || shortest < 4 {
				t.Errorf("%d states in %d slices of at most %d bytes, shortest message %d bytes; want 2000 in 63 of %d, at least 4",
					reported, len(d.Writes), largest, shortest, report.MaxBytes)
			}
			if largest < report.MaxBytes*3/4 && shortest < len(message) {
				t.Errorf("messages shortened although the slices have only %d bytes", largest)
			}
			if again := report.Decide(at(200), plan, record, states, nil); len(again.Writes) > 0 {
				t.Error("shortened messages are written again")
			}
		})
	}
}

// TestLargestPod reports a pod that takes the whole plan, in a request to etcd, which is at
// most 1.5 MiB.
func TestLargestPod(t *testing.T) {
	small := podPlan("small", "m#p")
	names := map[string]func(int) string{
		"short names": func(i int) string { return fmt.Sprint("m#", i) },
		"long names":  func(i int) string { return fmt.Sprintf("%s#%0200d", strings.Repeat("m", 253), i) },
	}
	for name, probe := range names {
		t.Run(name, func(t *testing.T) {
			states := report.States{key(t, "small", "m#p"): known(succeeded, "ok", 1, 1)}
			whole := podPlan("largest")
			for i := range 8000 {
				whole.Probes = append(whole.Probes, v1alpha1.ContainerProbe{Name: probe(i), ContainerName: "main", Plan: "0123abcd"})
				states[key(t, "largest", probe(i))] = thresholds.State{
					State: succeeded, LastProbe: at(1), LastTransition: at(1), ContainerID: "0123456789abc", Message: strings.Repeat("<", 1024),
					Problem: thresholds.Problem{Reason: cannotRun, Message: strings.Repeat("<", 256)},
				}
			}
			largest := whole
			for size := encodedSize(t, largest.Probes); size > plan.MaxPodBytes; size = encodedSize(t, largest.Probes) {
				largest.Probes = largest.Probes[:len(largest.Probes)*plan.MaxPodBytes/size]
			}
			both := report.Plan{Pods: []v1alpha1.PodProbe{small, largest}}
			_, d := wrote(at(1), both, report.Record{}, states)
			if len(d.Writes) != 2 || len(d.Writes[1].Pods[0].Probes) != len(largest.Probes) {
				t.Fatalf("%d writes, want the small pod and the large one in slices of their own", len(d.Writes))
			}
			size := encodedSize(t, d.Writes[1].Pods)
			t.Logf("%d probes, %d bytes", len(largest.Probes), size)
			if size > 3<<19-64<<10 {
				t.Errorf("%d bytes exceed a request to etcd", size)
			}
		})
	}
}

// TestMessagesDependOnTheirPodOnly checks that neither another pod in the slice nor its errors shorten
// the messages of a pod, and that they cause no write of them.
func TestMessagesDependOnTheirPodOnly(t *testing.T) {
	long, trouble := strings.Repeat("m", 1024), thresholds.Problem{Reason: cannotRun, Message: strings.Repeat("<", 256)}
	states, all := report.States{}, report.Plan{Generation: 1}
	largePlan(t, &all, states, "small", 1, 3, long)
	largePlan(t, &all, states, "large", 3, 8, long)
	first := report.Plan{Pods: all.Pods[:1]}
	lengths := func(pod seamarkv1alpha1.PodReport) (lengths []int) {
		for _, state := range pod.Probes {
			lengths = append(lengths, len(state.Message))
		}
		return lengths
	}
	want := []int{1024, 1024, 1024}
	record, alone := wrote(at(1), first, report.Record{}, states)
	record, d := wrote(at(2), all, record, states)
	if got := lengths(d.Writes[0].Pods[0]); len(d.Writes) != 1 || len(alone.Writes) != 1 || !slices.Equal(got, want) {
		t.Fatalf("%d writes, messages of %v bytes; want one, and all of each message", len(d.Writes), got)
	}
	if got := lengths(d.Writes[0].Pods[1]); slices.Min(got) < 512 {
		t.Errorf("messages of %v bytes of the large pod, want at least 512", got)
	}
	for key, state := range states {
		if key.PodUID == types.UID(all.Pods[1].UID) {
			state.Problem = trouble
			states[key] = state
		}
	}
	record, d = wrote(at(9), all, record, states)
	if got := lengths(d.Writes[0].Pods[0]); !slices.Equal(got, want) || len(d.Writes[0].Pods[1].Errors) == 0 {
		t.Errorf("messages of %v bytes after errors of another pod, want all of each", got)
	}
	if size := encodedSize(t, d.Writes[0].Pods); size > report.MaxBytes {
		t.Errorf("%d bytes, want at most %d", size, report.MaxBytes)
	}
	more := report.Plan{Generation: 2, Pods: slices.Clone(all.Pods)}
	more.Pods[2].Probes = append(slices.Clone(more.Pods[2].Probes), v1alpha1.ContainerProbe{Name: "n#new", ContainerName: "main"})
	for what, plan := range map[string]report.Plan{"all pods": all, "the others have left": first, "another probe": more} {
		if again := report.Decide(at(300), plan, record, states, nil); len(again.Writes) > 0 {
			t.Errorf("%s: shortened messages are written again", what)
		}
	}
}

// FuzzBudget checks that every slice is within its budget, whatever the messages are and were,
// and that no message of 512 bytes is shortened.
func FuzzBudget(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(seed*7), uint16(seed%4*300))
	}
	f.Fuzz(func(t *testing.T, seed uint64, pods uint8, length uint16) {
		rng := rand.New(rand.NewPCG(seed, 1))
		plan, before, after := report.Plan{Generation: 1}, report.States{}, report.States{}
		full := map[identity.Key]string{}
		for i := range int(pods) {
			pod := podPlan(fmt.Sprintf("p%04d", i))
			pod.Namespace = fmt.Sprintf("ns-%d", rng.IntN(1+i%7))
			for j := range rng.IntN(12) {
				name := fmt.Sprintf("m#p%d", j)
				pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{Name: name, ContainerName: "main"})
				k := key(t, pod.Name, name)
				before[k] = known(succeeded, randomMessage(rng, int(length)%1024), 1, 1)
				full[k] = before[k].Message
				switch rng.IntN(4) {
				case 0: // Not known yet.
				case 1:
					after[k] = thresholds.State{}
				default:
					after[k] = known(failed, randomMessage(rng, int(length)%1024), 2, float64(1+rng.IntN(2)))
					full[k] = after[k].Message
				}
			}
			plan.Pods = append(plan.Pods, pod)
		}
		record, first := wrote(at(1), plan, report.Record{}, before)
		for _, w := range first.Writes {
			checkSize(t, w)
		}
		_, d := wrote(at(2), plan, record, after)
		for _, w := range d.Writes {
			checkSize(t, w)
			checkMessages(t, w.Pods, full)
		}
	})
}

// checkMessages checks that messages are prefixes of the full ones, and equal if those are short.
func checkMessages(t *testing.T, pods []seamarkv1alpha1.PodReport, full map[identity.Key]string) {
	t.Helper()
	for _, pod := range pods {
		for _, entry := range pod.Probes {
			id, err := identity.Parse(entry.Name)
			expect.NoError(t, err)
			message := full[identity.Key{ContainerKey: identity.ContainerKey{PodUID: types.UID(pod.UID), Name: "main"}, ID: id}]
			if !utf8.ValidString(entry.Message) || !strings.HasPrefix(message, entry.Message) {
				t.Fatalf("message %q, want a prefix of %q", entry.Message, message)
			}
			if quotes := 2; entry.Message != message && encodedSize(t, message) <= 512+quotes {
				t.Errorf("message %q is shortened to %d bytes", message, len(entry.Message))
			}
		}
	}
}
