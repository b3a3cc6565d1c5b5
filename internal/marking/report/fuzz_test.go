// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// overfull marks the pods as movable if the pods of a slice exceed its size.
func (m *model) overfull() {
	probes := map[int]int{}
	for i := range m.plan.Pods {
		if number, placed := m.places[m.plan.Pods[i].UID]; placed {
			probes[number] += len(m.plan.Pods[i].Probes)
		}
	}
	for _, n := range probes {
		m.shuffled = m.shuffled || n > 200
	}
}

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
		"takeover": func() { m.settle(); m.restart(m.ledger.Copy(m.plan)) },
		"settled restart": func() {
			m.settle()
			m.restart(nil)
			if writes := m.round(false); len(writes) > 0 {
				m.Fatalf("%d writes after a restart", len(writes))
			}
		},
		"foreign takeover": func() {
			m.settle()
			legacy := m.ledger.Copy(m.plan)
			m.shuffled = true
			m.foreignEdit()
			m.restart(append([]v1alpha1.PodProbeStatus{}, legacy...))
		},
		"one transition": m.oneTransition,
	}
	names := slices.Sorted(maps.Keys(steps))
	name := names[m.rng.IntN(len(names))]
	m.trace = append(m.trace, name)
	m.overfull()
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
