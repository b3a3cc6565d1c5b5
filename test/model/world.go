// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/builders"
)

// Write is a write to the API server.
type Write struct {
	// By is who writes: "leader N", "kubelet", "user" or "hook".
	By string
	// View is what the leader had in its cache when it decided; nil if no leader writes.
	View *State
	Kind Kind
	// Verb is create, update, delete, status, or starts with patch or resize.
	Verb string
	Name string
	// Reason is the reason of a delete.
	Reason string
	// Faults are the faults of the run.
	Faults Faults
}

// Controller reports whether a leader writes.
func (w Write) Controller() bool { return w.View != nil }

// Config is what a run plays.
type Config struct {
	Planner Planner
	// New returns the set as its user creates it: with a UID, and with API version and kind.
	New func(r *rand.Rand) Object
	// Users are the changes by users. Each is chosen with a probability proportional to its weight.
	Users []User
	// Invariants are checked after every successful write. Steps are checked before the writes of each step.
	Invariants []Invariant
	Steps      []func(view *State, step *Step) error
	// Rest checks the state at the end, which no leader changes any more.
	Rest func(*State) error
	// Chaos is the number of random events of the first phase, Rounds the maximum number of steps of
	// the second. 0 means 250 and 400.
	Chaos, Rounds int
	// Faults are chosen by the seed if nil.
	Faults *Faults
	// Pace is the mean time between two events of the first phase. 0 means 2 s.
	Pace time.Duration
	// Program is what runs in the pods and what watches it: it reacts to every event at once. It may be
	// nil.
	Program func(w *World)
	// HookLabel and HookFinalizer are removed by a handler when the lifecycle state of a pod is
	// PreparingDelete or PreparingUpdate, and set when it is PreparingNormal, Updated or Normal. Empty
	// means none.
	HookLabel, HookFinalizer string
}

// User is a change by a user. Do returns what it did, empty if nothing.
type User struct {
	Name   string
	Weight int
	Do     func(*World) string
}

// Faults are the probabilities of faults at each write, and what else goes wrong.
type Faults struct {
	// Fail, Lose, Crash and Between are probabilities: of a write that fails, of a lost response, of
	// a crash of the leader before or after it, and of an event between two writes.
	Fail, Lose, Crash, Between float64
	// Stale lets new leaders start with an old view, Two lets two leaders run at once. Only then may
	// decisions of one process be based on a state older than the writes of another one.
	Stale, Two bool
	// Involuntary lets containers crash, nodes kill pods, and users kill pods.
	Involuntary bool
}

// RandomFaults returns the faults of a seed: none, some or all of them.
func RandomFaults(r *rand.Rand) Faults {
	f := Faults{Stale: r.IntN(3) == 0, Two: r.IntN(3) == 0, Involuntary: r.IntN(2) == 0}
	for _, p := range []*float64{&f.Fail, &f.Lose, &f.Crash, &f.Between} {
		if r.IntN(2) == 0 {
			*p = 0.15 * r.Float64()
		}
	}
	return f
}

// World is one run. Users read and change it.
type World struct {
	// Rand is the source of every decision of the run.
	Rand *rand.Rand

	config Config
	faults Faults
	store  *store
	active []*leader
	// leaders and writes are the numbers of leaders that were started, and of writes by leaders.
	leaders, writes int
	chaos, nested   bool
	lines           []string
	err             error
}

// Start is the time of the first event.
func start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// Run plays a seed and returns an error with the last steps if the planner did not keep what it must.
func Run(seed uint64, config Config) error {
	if config.Chaos == 0 {
		config.Chaos = 250
	}
	if config.Pace == 0 {
		config.Pace = 2 * time.Second
	}
	if config.Rounds == 0 {
		config.Rounds = 400
	}
	w := &World{Rand: rand.New(rand.NewPCG(seed, 0)), config: config, store: newStore(start())}
	if w.faults = RandomFaults(w.Rand); config.Faults != nil {
		w.faults = *config.Faults
	}
	set := config.New(w.Rand)
	if _, err := w.store.create(Sets, set); err != nil {
		return fmt.Errorf("create set: %w", err)
	}
	w.trace("faults %+v", w.faults)
	if w.play(); w.err == nil {
		w.converge()
	}
	if w.err != nil {
		return fmt.Errorf("seed %d: %w\nlast steps:\n%s", seed, w.err, strings.Join(w.lines, "\n"))
	}
	return nil
}

// play is the first phase: random events.
func (w *World) play() {
	w.chaos = true
	for range w.config.Chaos {
		if w.err != nil {
			return
		}
		w.event()
	}
	w.chaos = false
}

// event lets one thing happen.
func (w *World) event() {
	w.pass(time.Duration(w.Rand.ExpFloat64() * float64(w.config.Pace)))
	w.program()
	w.elect()
	switch n := w.Rand.IntN(100); {
	case n < 35:
		w.kubelet()
	case n < 60:
		l := w.active[w.Rand.IntN(len(w.active))]
		l.dirty = l.cache.advance(Kind(w.Rand.IntN(int(kinds))), 1+w.Rand.IntN(5)) || l.dirty
	case n < 90:
		w.active[w.Rand.IntN(len(w.active))].step()
	case n < 92 && w.Rand.Float64() < 5*w.faults.Crash:
		w.active[0].crashed = true
		w.trace("%s crashes", w.active[0].name)
	case n < 95:
		w.handler()
	default:
		w.user()
	}
}

// between lets something happen between two writes of a leader.
func (w *World) between(l *leader) {
	if !w.chaos || w.nested || w.Rand.Float64() >= w.faults.Between {
		return
	}
	w.nested = true
	defer func() { w.nested = false }()
	for range 1 + w.Rand.IntN(3) {
		w.program()
		switch w.Rand.IntN(4) {
		case 0:
			w.kubelet()
		case 1:
			w.user()
		case 2:
			w.handler()
		default:
			for _, other := range w.active {
				if other != l {
					other.step()
				}
			}
		}
	}
}

// elect starts leaders in place of those that have crashed.
func (w *World) elect() {
	w.active = slices.DeleteFunc(w.active, func(l *leader) bool { return l.crashed })
	n := 1
	if w.chaos && w.faults.Two {
		n = 2
	}
	for len(w.active) < n {
		w.active = append(w.active, w.newLeader(func(Kind) int {
			if w.chaos && w.faults.Stale {
				return w.Rand.IntN(10)
			}
			return 0
		}))
	}
}

func (w *World) program() {
	if w.config.Program != nil {
		w.config.Program(w)
	}
}

// user lets a user change something.
func (w *World) user() {
	total := 0
	for _, u := range w.config.Users {
		total += u.Weight
	}
	if total == 0 {
		return
	}
	n := w.Rand.IntN(total)
	for _, u := range w.config.Users {
		if n -= u.Weight; n < 0 {
			if did := u.Do(w); did != "" {
				w.trace("user: %s: %s", u.Name, did)
			}
			return
		}
	}
}

// converge is the second phase: no faults, no users, until nothing changes any more: first while guards protect pods, and then
// without them.
func (w *World) converge() {
	w.trace("no more faults")
	w.store.quota, w.store.refuses = 0, false
	w.active = w.active[:min(1, len(w.active))]
	rounds := w.config.Rounds
	if !w.settle() {
		return
	}
	w.trace("no more guards")
	for _, pod := range w.store.state().Pods {
		if pod.Labels[builders.GuardLabel] != "" {
			w.EditPod(pod.Name, func(p *corev1.Pod) { delete(p.Labels, builders.GuardLabel) })
		}
	}
	w.config.Rounds = rounds
	if !w.settle() {
		return
	}
	if err := w.config.Rest(w.store.state()); err != nil {
		w.fail(fmt.Errorf("at rest: %w\n%s", err, Describe(w.store.state())))
		return
	}
	if w.newLeader(func(Kind) int { return 0 }).step() {
		w.fail(fmt.Errorf("a new leader writes at rest:\n%s", Describe(w.store.state())))
	}
}

// settle goes on until nothing changes any more. It returns false if the run has failed.
func (w *World) settle() bool {
	for idle := 0; idle < 3; {
		if w.config.Rounds--; w.config.Rounds < 0 {
			w.fail(fmt.Errorf("does not converge:\n%s", Describe(w.store.state())))
			return false
		}
		w.elect()
		l, version := w.active[0], w.store.Version
		w.pass(time.Duration(w.Rand.IntN(10)) * time.Second)
		w.program()
		l.dirty = l.cache.catchUp() || l.dirty
		if l.dirty || !l.wake.IsZero() && !w.store.now.Before(l.wake) {
			l.step()
		}
		w.kubelets()
		w.handler()
		if w.err != nil {
			return false
		}
		switch {
		case w.store.Version != version || l.dirty:
			idle = 0
		case !l.wake.IsZero():
			// Nothing happens before the leader wakes.
			w.pass(l.wake.Sub(w.store.now))
			idle = 0
		default:
			idle++
		}
	}
	return true
}

func (w *World) pass(d time.Duration) { w.store.now = w.store.now.Add(max(d, 0)) }

func (w *World) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// trace keeps the last lines of what happened.
func (w *World) trace(format string, args ...any) {
	const keep = 120
	line := fmt.Sprintf("%9.3fs  %s", w.store.now.Sub(start()).Seconds(), fmt.Sprintf(format, args...))
	if w.lines = append(w.lines, line); len(w.lines) > 2*keep {
		w.lines = slices.Clone(w.lines[keep:])
	}
}

// Now returns the time of the run.
func (w *World) Now() time.Time { return w.store.now }

// State returns the true state.
func (w *World) State() *State { return w.store.state() }

// Faults returns the faults of the run.
func (w *World) Faults() Faults { return w.faults }

// EditSet lets a user change the set. The generation increases.
func (w *World) EditSet(change func(set Object)) {
	set := w.store.state().Set
	w.change(Write{By: "user", Kind: Sets, Verb: "update", Name: set.GetName()}, func(o Object) {
		o.SetGeneration(o.GetGeneration() + 1)
		change(o)
	})
}

// EditPod lets a user change a pod.
func (w *World) EditPod(name string, change func(*corev1.Pod)) {
	w.change(Write{By: "user", Kind: Pods, Verb: "update", Name: name}, func(o Object) { change(o.(*corev1.Pod)) })
}

// DeletePod lets a user delete a pod.
func (w *World) DeletePod(name string) {
	_ = w.apply(Write{By: "user", Kind: Pods, Verb: "delete", Name: name}, func() error {
		return w.store.Delete("", Pods, keyOf(name), preconditions{})
	})
}

// SetQuota sets the maximum number of pods in the namespace, 0 for none. It ends with the first phase.
func (w *World) SetQuota(pods int) { w.store.quota = pods }

// change writes without preconditions.
func (w *World) change(write Write, change func(Object)) {
	_ = w.apply(write, func() error {
		_, err := w.store.update(write.Kind, write.Name, preconditions{}, change)
		return err
	})
}

// apply executes a write and checks the invariants.
func (w *World) apply(write Write, do func() error) error {
	before, version := w.store.state(), w.store.Version
	write.Faults = w.faults
	err := do()
	if err != nil {
		w.trace("%s: %s %s %s: %v", write.By, write.Verb, write.Kind, write.Name, err)
		return err
	}
	if w.store.Version == version {
		return nil
	}
	w.trace("%s: %s %s %s %s = %d", write.By, write.Verb, write.Kind, write.Name, write.Reason, w.store.Version)
	after := w.store.state()
	for _, check := range w.config.Invariants {
		if violation := check(before, after, write); violation != nil {
			w.fail(fmt.Errorf("%s: %s %s %s: %w\n%s", write.By, write.Verb, write.Kind, write.Name, violation, Describe(after)))
		}
	}
	return nil
}
