// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
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
