// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"context"
	"fmt"
	jitter "math/rand" //nolint:depguard // client-go uses it
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Step is one step of a run: what a user or the world does, and everything that happens after it. Both follow from
// its numbers only, so steps can be removed from a case.
type Step struct {
	// Operation is the name of one of the operations.
	Operation string
	Rand      uint64
}

// Case is a run. The seed decides about the nodes and the faults.
type Case struct {
	Seed  uint64
	Steps []Step
}

// String returns the case as Go code, for the table of cases that have failed.
func (c *Case) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "{Seed: %d, Steps: []Step{", c.Seed)
	for i, s := range c.Steps {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "{%q, %d}", s.Operation, s.Rand)
	}
	text.WriteString("}}")
	return text.String()
}

// operation is what a user, a process or the cluster does.
type operation struct {
	name   string
	weight int
	do     func(*world)
	// alone is whether it does not happen in the middle of a reconcile.
	alone bool
}

func operations() []operation {
	return []operation{
		{name: "create a pod", weight: 6, do: (*world).createPod},
		{name: "delete a pod", weight: 3, do: (*world).deletePod},
		{name: "label a pod", weight: 4, do: (*world).relabel},
		{name: "create a marker", weight: 6, do: (*world).createMarker},
		{name: "edit a marker", weight: 3, do: (*world).editMarker},
		{name: "delete a marker", weight: 3, do: (*world).deleteMarker},
		{name: "flip a result", weight: 6, do: (*world).flip},
		{name: "restart a container", weight: 3, do: (*world).restartContainer, alone: true},
		{name: "end a pod", weight: 1, do: (*world).endPod},
		{name: "delete a report", weight: 1, do: (*world).deleteReport},
		{name: "restart the manager", weight: 2, do: (*world).restartManager, alone: true},
		{name: "restart an agent", weight: 2, do: (*world).restartAgent, alone: true},
		{name: "set a clock", weight: 1, do: (*world).setClock, alone: true},
		{name: "end a watch", weight: 3, do: (*world).relist},
		{name: "recreate a node", weight: 1, do: (*world).recreateNode, alone: true},
		{name: "recreate a marker", weight: 3, do: (*world).recreateMarker, alone: true},
		{name: "move a pod away from a marker that is deleted", weight: 3, do: (*world).moveAway},
		{name: "wait", weight: 4, do: func(w *world) { w.pass(time.Duration(w.rand.IntN(20)) * time.Second) }},
		{name: "come to rest", weight: 3, do: (*world).pause, alone: true},
		{name: "let everything run", weight: 6, do: func(w *world) { w.drain(20) }, alone: true},
		{name: "lose a node", weight: 2, do: (*world).loseNode},
		{name: "return a node", weight: 2, do: (*world).returnNode},
		{name: "delete a node", weight: 1, do: (*world).deleteNode},
		{name: "lose an agent", weight: 2, do: (*world).loseAgent},
		{name: "return an agent", weight: 2, do: (*world).returnAgent},
		{name: "stop an agent", weight: 1, do: (*world).stopAnyAgent, alone: true},
		{name: "change a message", weight: 5, do: (*world).changeMessage},
		{name: "start a container up", weight: 2, do: (*world).startUp},
	}
}

// NewCase returns the case of a seed.
func NewCase(seed uint64) *Case {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a case is a function of its seed
	c, all, total := &Case{Seed: seed}, operations(), 0
	for _, o := range all {
		total += o.weight
	}
	for range 10 + r.IntN(40) {
		n, at := r.IntN(total), 0
		for n >= all[at].weight {
			n -= all[at].weight
			at++
		}
		c.Steps = append(c.Steps, Step{Operation: all[at].name, Rand: r.Uint64() >> 32})
	}
	return c
}

// operate lets something happen in the middle of a reconcile. Processes do not restart there.
func (w *world) operate(at int) {
	if o := operations()[at]; !o.alone {
		w.trace("meanwhile: %s", o.name)
		o.do(w)
	}
}

// Play plays a case in a bubble of virtual time. The result has what happened if it failed, and tracing is set.
func Play(t *testing.T, c *Case, tracing bool) (lines []string, err error) {
	t.Helper()
	jitter.Seed(1) //nolint:staticcheck // client-go has no other source of its jitter
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		w := newWorld(ctx, c, tracing)
		w.play(c)
		if w.err == nil {
			w.finish()
		}
		w.chaos = false
		for _, m := range w.managers {
			m.kill()
		}
		for _, name := range w.names {
			w.stopAgent(w.nodes[name])
		}
		cancel()
		w.running.Wait()
		err, lines = w.err, w.lines
	})
	return lines, err
}

// play is the first phase.
func (w *world) play(c *Case) {
	w.chaos = true
	for i, s := range c.Steps {
		w.rand = rand.New(rand.NewPCG(s.Rand, 2)) //nolint:gosec // a run is a function of its case
		w.trace("step %d: %s", i, s.Operation)
		for _, o := range operations() {
			if o.name == s.Operation {
				o.do(w)
			}
		}
		for range min(1, w.rand.IntN(4)) * w.rand.IntN(40) {
			w.churn()
		}
		if len(w.managers) == 0 {
			w.addManager()
		}
		if w.err != nil {
			return
		}
	}
	w.chaos = false
}

const (
	// quiet is how long nothing may change until the run is at rest. It is longer than every delay of the product.
	quiet = 130 * time.Second
	// pause is how long nothing may change until marks are checked in between. It is longer than every delay of marks.
	pause = 40 * time.Second
	// patience is how long it may take until then.
	patience = 20 * time.Minute
)

// finish is the second phase: no faults happen any more, and everything must become as the rules say.
func (w *world) finish() {
	w.trace("no more faults")
	w.rand = rand.New(rand.NewPCG(1, 1)) //nolint:gosec // no choice matters any more
	for _, name := range w.names {
		w.createNode(name)
	}
	w.rest(quiet)
	w.change()
	w.restart()
	w.recover()
}

// pause lets the run come to rest for a moment.
func (w *world) pause() {
	w.chaos = false
	w.rest(pause)
	w.chaos = true
}

// rest waits until nothing has changed for the time, and then checks all marks.
func (w *world) rest(quiet time.Duration) {
	for w.anyManager(func(*manager) {}); len(w.managers) > 1; w.managers = w.managers[1:] {
		w.managers[0].kill()
	}
	if len(w.managers) == 0 {
		w.addManager()
	}
	w.kubelet(1000)
	if w.settle(quiet); w.err != nil {
		return
	}
	if err := w.checkRest(); err != nil {
		w.fail(fmt.Errorf("at rest: %w", err))
	}
}

// settle waits until nothing changes any more.
func (w *world) settle(quiet time.Duration) {
	start := w.server.Version
	deadline, writes, since := time.Now().Add(patience), 0, time.Now()
	for time.Since(since) < quiet {
		w.drain(10000)
		w.server.collect()
		w.kubelet(1000)
		if w.err != nil {
			return
		}
		if n := w.writes(start); n != writes {
			writes, since = n, time.Now()
		}
		if time.Now().After(deadline) {
			w.fail(fmt.Errorf("does not come to rest within %s", patience))
			return
		}
		wait := time.Second
		w.anyManager(func(m *manager) {
			if at := m.wake(); !at.IsZero() {
				wait = min(wait, time.Until(at))
			}
		})
		w.pass(wait)
	}
}

// writes returns the number of writes after the version. It does not count the removal of empty reports, which is
// later than everything else.
func (w *world) writes(after int64) int {
	n := 0
	for k := range kindCount {
		log := w.server.Tables[k].Log
		for i := len(log) - 1; i >= 0 && log[i].Version > after; i-- {
			if e := &log[i]; k != reports || e.After != nil || !strings.HasPrefix(e.By, "agent") {
				n++
			}
		}
	}
	return n
}

// drain lets everything run until nothing has anything to do, at most for some rounds.
func (w *world) drain(rounds int) {
	for progress := true; progress && rounds > 0 && w.err == nil; rounds-- {
		progress = false
		synctest.Wait()
		for w.serveOne() {
			progress = true
		}
		for _, t := range w.watches {
			progress = w.deliver(t, 1000) || progress
		}
		for _, name := range w.names {
			progress = w.nodes[name].observe(1000) || progress
		}
		for _, m := range w.managers {
			for _, i := range m.cache.of {
				if w.strict && w.rand.IntN(2) == 0 {
					progress = progress || i.next < len(i.server.Tables[i.kind].Log)
					continue
				}
				progress = i.advance(1000) || progress
			}
			for _, h := range m.handlers() {
				progress = h.deliver(len(h.pending)) || progress
			}
			progress = m.reconcile(w.rand) || progress
		}
	}
}

// change changes one result, and checks how many writes that costs.
func (w *world) change() {
	if w.err != nil {
		return
	}
	w.strict = true
	defer func() { w.strict = false }()
	before := w.server.Version
	w.flip()
	if w.settle(quiet); w.err != nil {
		return
	}
	if err := w.checkRest(); err != nil {
		w.fail(fmt.Errorf("after one change: %w", err))
	}
	count := map[kind]int{}
	for k := range kindCount {
		for _, e := range w.server.Tables[k].Log {
			if e.Version > before {
				count[k]++
			}
		}
	}
	most := 1
	if w.hasExclusive() {
		// The loser, the ticket and the marks of the winner, and perhaps a label of groups among them.
		most = 8
	}
	// One result is one write of a report and one of a pod, unless exclusive marks move. The status of markers may be written twice: of the
	// marker, and of another one that has a problem.
	if count[reports] > 1 || count[pods] > most || count[plans]+count[slicesOfPlans] > 0 || count[markers] > 2 {
		w.fail(fmt.Errorf("one change causes writes of %v", count))
	}
	w.editMarker()
	w.createPod()
	if w.settle(pause); w.err != nil {
		return
	}
	w.strict = false
	w.rest(quiet)
}

// restart restarts all programs, which must write nothing.
func (w *world) restart() {
	if w.err != nil {
		return
	}
	version := w.server.Version
	endAll(w.managers)
	w.addManager()
	w.anyManager(func(*manager) {})
	for _, name := range w.names {
		if n := w.nodes[name]; n.running {
			w.stopAgent(n)
			w.startAgent(n)
		}
	}
	if w.settle(quiet); w.err != nil {
		return
	}
	writes := w.writes(version)
	for _, e := range w.server.Tables[markers].Log {
		if marker, exists := e.After.(*v1alpha1.PodProbeMarker); e.Version > version && exists && w.isAmbiguous(marker) {
			writes--
		}
	}
	for _, e := range w.server.Tables[plans].Log {
		if n := w.nodes[e.Key.Name]; e.Version > version && !n.running {
			// The manager asks an agent that does not run for the reports that are missing, and the next manager asks again.
			writes--
		}
	}
	if writes > 0 {
		w.fail(fmt.Errorf("a restart causes %d writes", writes))
	}
	if err := w.checkRest(); err != nil {
		w.fail(fmt.Errorf("after a restart: %w", err))
	}
}

// describe returns what matters of an object, for the trace.
func describe(o client.Object) string {
	if o == nil {
		return ""
	}
	text := string(encode(o))
	if len(text) > 1500 {
		text = text[:1500] + "…"
	}
	return " " + text
}
