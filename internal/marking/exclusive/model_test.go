// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exclusive_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/marking/exclusive"
)

// rules are the rules for writes that a model breaks. Each of them must be found.
type rules struct {
	// noVersion writes marks without a condition, anyRecord replaces any record, noWait ignores the marks
	// of losers, noFence ignores what may be under way to the former pod, old records versions that are
	// older than the one in the record, and noLook does not ask the API server.
	noVersion, anyRecord, noWait, noFence, old, noLook bool
}

// stored is a pod in the API server. Claims and terms are in the reports of agents, and are part of the pod
// here.
type stored struct {
	exclusive.Pod
	exists bool
}

// view is what a cache has: an old state of the pods and of the record, each of another time.
type view struct {
	pods   map[string]stored
	record recorded
}

type recorded struct {
	exclusive.Record
	version int
}

// model is an API server with the pods of one group, and two managers that both believe to lead.
type model struct {
	*rand.Rand
	broken   rules
	version  int
	names    []string
	pods     map[string]stored
	record   recorded
	caches   [2]view
	requests []func() // under way; each runs at any time, whether or not its sender still exists
	calm     bool     // no refused writes and lost responses
	taken    int
}

// newModel returns a model with three pods.
func newModel(seed uint64, broken rules) *model {
	m := &model{Rand: rand.New(rand.NewPCG(seed, 24)), broken: broken, version: 1000, pods: make(map[string]stored)}
	for i := range 3 {
		name := fmt.Sprintf("pod-%d", i)
		m.names = append(m.names, name)
		m.create(name)
	}
	for i := range m.caches {
		m.caches[i].pods = make(map[string]stored)
	}
	return m
}

func (m *model) next() string {
	m.version++
	return strconv.Itoa(m.version)
}

func (m *model) create(name string) {
	version := m.next()
	m.pods[name] = stored{exists: true, Pod: exclusive.Pod{Name: name, UID: types.UID("uid-" + version), Version: version}}
}

// one returns true once in n times.
func (m *model) one(n int) bool { return m.IntN(n) == 0 }

// step does one thing that may happen.
func (m *model) step() {
	name := m.names[m.IntN(len(m.names))]
	pod := m.pods[name]
	switch m.IntN(20) {
	case 0: // The probe has another state, or prints another term.
		pod.Claims, pod.Since = !m.one(4), time.Unix(int64(m.version), 0)
		if pod.Term = nil; m.one(2) {
			term := int64(m.IntN(4))
			pod.Term = &term
		}
	case 1: // The kubelet writes the status.
		if pod.exists {
			pod.Version = m.next()
		}
	case 2:
		switch {
		case !pod.exists:
			m.create(name)
			return
		case m.one(2):
			pod.exists = false
		}
	case 3, 4, 5, 6: // A watch event arrives.
		m.observe(m.IntN(2), name)
	case 7, 8:
		m.caches[m.IntN(2)].record = m.record
	case 9, 10, 11, 12:
		m.reconcile(m.IntN(2), name)
	default:
		m.deliver()
	}
	m.pods[name] = pod
	if m.one(30) {
		// A request never arrives: its sender was killed before it was sent.
		m.drop()
	}
}

func (m *model) observe(manager int, name string) { m.caches[manager].pods[name] = m.pods[name] }

func (m *model) deliver() {
	if len(m.requests) > 0 {
		i := m.IntN(len(m.requests))
		request := m.requests[i]
		m.requests = append(m.requests[:i:i], m.requests[i+1:]...)
		request()
	}
}

func (m *model) drop() {
	if len(m.requests) > 0 {
		i := m.IntN(len(m.requests))
		m.requests = append(m.requests[:i:i], m.requests[i+1:]...)
	}
}

// send puts a request under way. The response may arrive long after it was made, or never.
func (m *model) send(request func() bool, then func()) {
	m.requests = append(m.requests, func() {
		if ok := request(); ok && then != nil && (m.calm || !m.one(6)) {
			m.requests = append(m.requests, then)
		}
	})
}

// refused reports whether the API server refuses a write.
func (m *model) refused() bool { return !m.calm && m.one(8) }

// write changes the pod with the UID. An empty version is no condition.
func (m *model) write(target exclusive.Pod, version string, marked bool) func() bool {
	return func() bool {
		pod := m.pods[target.Name]
		if !pod.exists || pod.UID != target.UID || version != "" && version != pod.Version || m.refused() {
			return false
		}
		pod.Marked, pod.Version = marked, m.next()
		m.pods[target.Name] = pod
		return true
	}
}

// reconcile decides about a pod with the view of a manager, as a controller does.
func (m *model) reconcile(manager int, name string) {
	cache := m.caches[manager]
	pod := cache.pods[name]
	if !pod.exists {
		return
	}
	g := exclusive.Group{Record: cache.record.Record}
	for _, other := range m.names {
		if seen := cache.pods[other]; seen.exists {
			if m.broken.noWait && other != name {
				seen.Marked = false
			}
			g.Pods = append(g.Pods, seen.Pod)
		}
	}
	if m.broken.noFence && g.Record.UID != pod.UID && g.Record.UID != "" {
		g.Record.Version = "1"
	}
	if m.broken.old && g.Record.UID == pod.UID && g.Record.Version != pod.Version {
		g.Record.Version = "1"
	}
	m.decide(g, cache.record, pod.Pod)
}

func (m *model) decide(g exclusive.Group, record recorded, pod exclusive.Pod) {
	d := exclusive.Decide(g)
	switch {
	case d.Winner == nil || d.Winner.UID != pod.UID:
		fence := d.Fence && d.Blocker.UID == pod.UID
		if pod.Marked && (d.Winner != nil || !pod.Claims) || fence {
			m.send(m.write(pod, "", false), nil)
		}
	case d.Step == exclusive.Keep:
		m.send(m.write(pod, m.on(pod.Version), true), nil)
	case d.Step == exclusive.Take:
		m.take(pod)
	case d.Step == exclusive.Claim:
		m.send(func() bool {
			if m.record.version != record.version && !m.broken.anyRecord {
				return false
			}
			m.version++
			m.record = recorded{Record: exclusive.Record{UID: pod.UID, Version: pod.Version}, version: m.version}
			return true
		}, func() { m.take(pod) })
	case d.Step == exclusive.Look:
		m.look(g, record, pod)
	}
}

func (m *model) on(version string) string {
	if m.broken.noVersion {
		return ""
	}
	return version
}

func (m *model) take(pod exclusive.Pod) {
	write := m.write(pod, m.on(pod.Version), true)
	m.send(func() bool {
		ok := write()
		if ok {
			m.taken++
		}
		return ok
	}, nil)
}

// look asks the API server, and decides again when it has answered.
func (m *model) look(g exclusive.Group, record recorded, pod exclusive.Pod) {
	g.Gone, g.Surveyed = true, true
	m.send(func() bool {
		for _, live := range m.pods {
			switch {
			case m.broken.noLook || !live.exists || live.UID == pod.UID:
			case g.Record.UID == "" && live.Marked:
				g.Surveyed = false
			case g.Record.UID == live.UID:
				g.Gone = false
				live.Claims = false
				g.Pods = append(g.Pods, live.Pod)
			}
		}
		return true
	}, func() {
		if d := exclusive.Decide(g); d.Step != exclusive.Look {
			m.decide(g, record, pod)
		}
	})
}

// violation returns an error if two pods have the marks.
func (m *model) violation() error {
	var marked []string
	for _, name := range m.names {
		if pod := m.pods[name]; pod.exists && pod.Marked {
			marked = append(marked, name)
		}
	}
	if len(marked) > 1 {
		return fmt.Errorf("at version %d, pods %v have the marks", m.version, marked)
	}
	return nil
}

// settle runs one manager until nothing changes, and returns an error if the best claim does not win.
func (m *model) settle() error {
	m.calm = true
	for range 60 {
		for _, name := range m.names {
			m.observe(0, name)
			m.caches[0].record = m.record
			m.reconcile(0, name)
			for len(m.requests) > 0 {
				m.deliver()
				if err := m.violation(); err != nil {
					return err
				}
			}
		}
	}
	g := exclusive.Group{Record: m.record.Record}
	for _, name := range m.names {
		if m.pods[name].exists {
			g.Pods = append(g.Pods, m.pods[name].Pod)
		}
	}
	if d := exclusive.Decide(g); d.Step != exclusive.Keep && d.Step != exclusive.Nobody {
		return fmt.Errorf("in the end, step %q of %+v, blocker %+v, record %+v", d.Step, d.Winner, d.Blocker, m.record)
	}
	return nil
}

// run returns how many times a pod took the marks, and the first violation.
func run(seed uint64, broken rules) (int, error) {
	m := newModel(seed, broken)
	for range 400 {
		m.step()
		if err := m.violation(); err != nil {
			return m.taken, err
		}
	}
	if broken != (rules{}) {
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

// TestEachRuleIsNeeded breaks one rule after the other: the model must find that two pods have the marks.
func TestEachRuleIsNeeded(t *testing.T) {
	const seeds = 20000
	for name, broken := range map[string]rules{
		"version of the pod":    {noVersion: true},
		"version of the record": {anyRecord: true},
		"wait for the loser":    {noWait: true},
		"fence":                 {noFence: true},
		"growing versions":      {old: true},
		"live reads":            {noLook: true},
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
