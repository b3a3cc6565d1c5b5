// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/test/floor"
)

func (m *model) step() {
	steps := map[string]func(){
		"add": m.addPods, "remove": m.removePods, "edit": m.editPod, "change": m.change,
		"write":  func() { m.round(true) },
		"wait":   func() { m.now = m.now.Add(time.Duration(m.rng.IntN(400)) * time.Second) },
		"settle": m.settle,
		"foreign": func() {
			m.shuffled = true
			m.foreignEdit()
		},
		"restart":  func() { m.shuffled = true; m.restart(nil) },
		"takeover": func() { m.settle(); m.restart(m.inStatus()) },
		"settled restart": func() {
			m.settle()
			m.restart(nil)
			if writes := m.round(false); len(writes) > 0 {
				m.Fatalf("%d writes after a restart", len(writes))
			}
		},
		"foreign takeover": func() {
			m.settle()
			inStatus := m.inStatus()
			m.shuffled = true
			m.foreignEdit()
			m.restart(inStatus)
		},
		"one transition": m.oneTransition,
		"messages":       m.messages,
	}
	names := slices.Sorted(maps.Keys(steps))
	name := names[m.rng.IntN(len(names))]
	m.trace = append(m.trace, name)
	steps[name]()
	m.now = m.now.Add(time.Second)
}

func (m *model) oneTransition() {
	m.settle()
	keys := m.probes()
	if len(keys) == 0 {
		return
	}
	m.transition(keys[m.rng.IntN(len(keys))])
	if writes := m.round(false); len(writes) != 1 {
		m.Fatalf("%d writes of one transition", len(writes))
	}
}

// messages changes all messages that are reported at once, some more often than the node has tokens, and
// checks that the newest are reported within the time that inTurn states.
func (m *model) messages() {
	m.settle()
	want := map[[2]string]string{}
	for range 4 {
		for i := range m.plan.Pods {
			pod := &m.plan.Pods[i]
			for j := range pod.Probes {
				key := m.keyAt(pod, j)
				state, known := m.states[key]
				if !known || state.State == "" || pod.Probes[j].MessageUpdates == "" {
					continue
				}
				state.Message = fmt.Sprint(m.rng.IntN(1e9), " of ", key)
				want[[2]string{pod.UID, key.String()}] = state.Message
				m.set(key, state)
			}
		}
		m.round(false)
	}
	const namespaces = 3
	deadline := m.now.Add(time.Duration(namespaces*len(m.plan.Pods)+1) * 100 * time.Millisecond)
	for next := m.decide().Next; !next.IsZero() && !next.After(deadline); next = m.decide().Next {
		m.now = next
		m.round(false)
	}
	m.settle()
	for _, pods := range m.store {
		for _, pod := range pods {
			for _, e := range pod.Probes {
				// Messages of pods with many probes are shortened.
				if newest, found := want[[2]string{pod.UID, e.Name}]; found && !strings.HasPrefix(newest, e.Message) {
					m.Fatalf("the message of %s of pod %s is %q, want %q", e.Name, pod.Name, e.Message, newest)
				}
			}
		}
	}
}

// FuzzModel checks that every state is in exactly one slice with its newest value, whatever
// fails or is changed, that a pod keeps its place, and that nothing is written needlessly.
func FuzzModel(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed, uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) {
		m := newModel(t, seed)
		for range int(steps) % 64 {
			m.step()
		}
		m.settle()
		// A node without pods has no slices after a while.
		m.replan(nil)
		m.places = nil
		for range 100 {
			m.round(false)
			d := m.decide()
			if d.Next.IsZero() {
				break
			}
			m.now = d.Next
		}
		if len(m.store) > 0 {
			t.Fatalf("%d slices of a node without pods", len(m.store))
		}
	})
}

// BenchmarkDecide decides on the report of a node with one change. It compares with the encoding
// of the slice that is written, which every write requires.
func BenchmarkDecide(b *testing.B) {
	cases := map[string]struct {
		pods, probes int
		message      string
	}{
		"3 pods":                          {3, 3, "ok"},
		"30 pods":                         {30, 3, "ok"},
		"110 pods":                        {110, 3, "ok"},
		"110 pods, messages of 1 KiB":     {110, 3, strings.Repeat("m", 1024)},
		"250 pods × 8, messages of 1 KiB": {250, 8, strings.Repeat("m", 1024)},
	}
	for name, tc := range cases {
		b.Run(name, func(b *testing.B) {
			plan, states := report.Plan{Generation: 1}, report.States{}
			largePlan(b, &plan, states, "games", tc.pods, tc.probes, tc.message)
			record, _ := wrote(at(10), plan, report.Record{}, states)
			record = report.Decide(at(11), plan, record, states, nil).Record
			changed := map[string]bool{plan.Pods[tc.pods/2].UID: true}
			states[key(b, plan.Pods[tc.pods/2].Name, plan.Pods[0].Probes[1].Name)] = known(failed, tc.message, 20, 20)
			var decision report.Decision
			floor.Compare(b, "x_of_encoding", func() {
				decision = report.Decide(at(20), plan, record, states, changed)
			}, func() {
				if _, err := json.Marshal(decision.Writes[0].Pods); err != nil || len(decision.Writes) != 1 {
					b.Fatalf("%d writes, error %v", len(decision.Writes), err)
				}
			})
		})
	}
}

// BenchmarkWrote records one of the writes of a node.
func BenchmarkWrote(b *testing.B) {
	for _, pods := range []int{8, 110, 250} {
		b.Run(fmt.Sprint(pods, " pods"), func(b *testing.B) {
			plan, states := report.Plan{Generation: 1}, report.States{}
			largePlan(b, &plan, states, "games", pods, 3, "ok")
			record, d := wrote(at(10), plan, report.Record{}, states)
			b.ReportAllocs()
			for b.Loop() {
				record.Wrote(at(20), d.Writes[0])
			}
		})
	}
}

// BenchmarkMessages plays a node of 110 pods whose messages change every second, at different times of
// it. An operation is one second of the node.
func BenchmarkMessages(b *testing.B) {
	for _, updates := range []v1alpha1.MessageUpdates{v1alpha1.MessageUpdatesLimited, v1alpha1.MessageUpdatesImmediate} {
		b.Run(string(updates), func(b *testing.B) {
			n, second := newNode(b, updates, map[string]int{"a": 110}), 0
			play := func() {
				second++
				for tenth := range 10 {
					for i := range 11 {
						n.sayOne(fmt.Sprint("a-", 11*tenth+i), strconv.Itoa(second))
					}
					n.step()
				}
			}
			for range 60 { // Empty the buckets.
				play()
			}
			n.reports["a"], n.writes = 0, 0
			b.ReportAllocs()
			for b.Loop() {
				play()
			}
			b.ReportMetric(float64(n.writes)/float64(b.N), "report_writes/s")
			b.ReportMetric(float64(n.reports["a"])/float64(b.N), "pod_writes/s")
		})
	}
}
