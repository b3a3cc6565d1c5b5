// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exclusive_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/seamark-dev/seamark/internal/marking/exclusive"
)

// violation returns an error if two pods of a group have the marks.
func (m *model) violation() error {
	for group := range groups {
		var marked []string
		for _, name := range m.names {
			if pod := m.pods[name]; pod.exists && pod.Marked && pod.group == group {
				marked = append(marked, name)
			}
		}
		if len(marked) > 1 {
			return fmt.Errorf("at version %d, pods %v of group %d have the marks", m.version, marked, group)
		}
	}
	return nil
}

// settle runs one manager until nothing changes, and returns an error if the best claim does not win. A pod whose writes are
// refused has left its group.
func (m *model) settle() error {
	m.calm = true
	if pod := m.pods[m.names[0]]; pod.exists && m.one(3) {
		pod.group, m.frozen = none, pod.Name
		m.put(pod)
	}
	by, seen := m.managers[0], m.version-1
	for range 3000 {
		if seen != m.version {
			for _, name := range m.names {
				if by.pods[name] != m.pods[name] {
					m.observe(by, name)
				}
			}
			seen = m.version
		}
		if name := m.next(by, ""); name != "" {
			m.reconcile(by, name)
		}
		for len(m.requests) > 0 {
			m.deliver()
			if err := m.violation(); err != nil {
				return err
			}
		}
		if m.settled() == nil {
			return nil
		}
	}
	return m.settled()
}

// settled returns an error if the best claim of a group does not have the marks, or another pod has them.
func (m *model) settled() error {
	all := exclusive.NewElection()
	for _, pod := range m.pods {
		if pod.exists && pod.group != none {
			all.Report(pod.Name, map[exclusive.Seat]exclusive.Candidate{seatOf(pod.group): pod.candidate()})
		}
	}
	for group := range groups {
		if result := all.Result(seatOf(group)); result.Winner != nil && (!result.Winner.Marked || result.Blocker != nil) {
			return fmt.Errorf("in the end, winner %+v of group %d, blocker %+v", result.Winner, group, result.Blocker)
		}
	}
	return nil
}

// run returns how many times a pod took the marks, and the first violation.
func run(seed uint64, broken rules) (int, error) {
	m := newModel(seed, broken)
	for range 500 {
		m.step()
		if err := m.violation(); err != nil {
			return m.taken, err
		}
	}
	if !broken.stalls() {
		return m.taken, nil
	}
	return m.taken, m.settle()
}

// TestAtMostOne runs managers with old views, whose requests arrive at any time, are refused or lost, on
// pods that change, and are deleted and created again under the same name. SEAMARK_MODEL_SEED=12 repeats
// one seed, and SEAMARK_MODEL_SEEDS=100000 runs more.
func TestAtMostOne(t *testing.T) {
	first, last := uint64(1), uint64(5000)
	if n, err := strconv.ParseUint(os.Getenv("SEAMARK_MODEL_SEEDS"), 10, 64); err == nil {
		last = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SEAMARK_MODEL_SEED"), 10, 64); err == nil {
		first, last = n, n
	}
	taken := 0
	for seed := first; seed <= last; seed++ {
		n, err := run(seed, rules{})
		if taken += n; err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if t.Logf("%d hand-overs", taken); taken == 0 {
		t.Error("no pod ever took the marks")
	}
}

// TestEachRuleIsNeeded breaks one rule after the other: the model must find that two pods of a group have the marks, or that
// none gets them.
func TestEachRuleIsNeeded(t *testing.T) {
	const seeds = 20000
	for name, broken := range map[string]rules{
		"version of the pod":            {noVersion: true},
		"answer of the API server":      {noLook: true},
		"answer after the ticket":       {oldLook: true},
		"ticket as long as the marks":   {bare: true},
		"marks removed with a ticket":   {keep: true},
		"moves without marks":           {carry: true},
		"others that an election names": {deaf: true},
		"pods that have left":           {stay: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				if _, err := run(seed+1, broken); err != nil {
					t.Logf("seed %d: %v", seed+1, err)
					return
				}
			}
			t.Errorf("no violation in %d seeds without the rule", seeds)
		})
	}
}
