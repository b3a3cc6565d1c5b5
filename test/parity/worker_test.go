// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// period is the period of the probes in a script. Containers and probes change halfway between
// two runs.
const period = 2 * time.Second

// pair is the kubelet's worker and Seamark's evaluation of one probe, which get the same outcomes.
type pair struct {
	*bench
	t         *testing.T
	kind      kind
	pod       *corev1.Pod
	evaluator *thresholds.Evaluator

	containers int
	running    bool
	// held is true while the kubelet's worker waits for a new container.
	held bool
	// last is the latest outcome. If breaks is set, the next one must differ from it.
	last   bool
	breaks bool
	// kept is the state before an edit, which Seamark keeps until the edited probe has a result.
	kept string
	log  []string
}

// FuzzWorker runs scripts of outcomes, container restarts and edits on both sides. Both must run
// their probes at the same times and change their states at the same runs.
//
// The first four bytes are the kind of probe, its thresholds and its initial delay. Each following
// byte is one period, as decoded by step.
func FuzzWorker(f *testing.F) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		script := make([]byte, 4+rng.IntN(80))
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) < 4 || len(script) > 500 {
			return // Not a script.
		}
		synctest.Test(t, func(t *testing.T) { play(t, script) })
	})
}

func play(t *testing.T, script []byte) {
	spec := execProbe(func(p *corev1.Probe) {
		p.PeriodSeconds = int32(period / time.Second)
		p.SuccessThreshold, p.FailureThreshold = int32(script[1]%4)+1, int32(script[2]%4)+1
		p.InitialDelaySeconds = max(int32(script[3]%16)-8, 0)
	})
	k := []kind{readiness, liveness, startup}[script[0]%3]
	p := &pair{bench: newBench(t, k), t: t, kind: k}
	p.pod = podWith(p.kind, spec)
	p.evaluator = thresholds.New(thresholds.PolicyOf(spec), thresholds.Phase{})
	p.restart()
	p.manager.AddPod(t.Context(), p.pod)
	synctest.Wait()
	defer p.end()
	p.check(0, p.count(), nil)
	pass(period / 2)
	for _, op := range script[4:] {
		p.step(op)
		if t.Failed() {
			t.Logf("%s, thresholds %d and %d, delay %ds:\n%s", p.kind, spec.SuccessThreshold, spec.FailureThreshold,
				spec.InitialDelaySeconds, strings.Join(p.log, "\n"))
			return
		}
	}
}

// end stops the kubelet's worker.
func (p *pair) end() {
	p.manager.RemovePod(p.pod)
	synctest.Wait()
}

// step decodes one byte: what happens now, and the outcome of the next run.
func (p *pair) step(op byte) {
	if p.held {
		p.restart()
	} else {
		switch op % 16 {
		case 0, 1:
			p.restart()
		case 2:
			p.stop()
		case 3:
			p.edit(int32(op/16)%4+1, int32(op/64)+1)
		}
	}
	outcome := []error{nil, nil, exited(), exited(), errNoAnswer}[op/16%5]
	if p.breaks && !errors.Is(outcome, errNoAnswer) {
		outcome = nil
		if p.last {
			outcome = exited()
		}
	}
	p.answers(outcome)
	before := p.count()
	pass(period / 2)
	p.check(before, p.count(), outcome)
	pass(period / 2)
}

// restart starts a new container. The kubelet continues to count from the old container, Seamark
// does not. Therefore the next outcome breaks the streak (see TestStreakAcrossRestart).
func (p *pair) restart() {
	p.containers++
	p.running, p.breaks, p.held, p.kept = true, p.containers > 1, false, ""
	p.containerRuns(p.id(), p.kind != startup)
	p.evaluator.ContainerChanged(time.Now(), thresholds.ContainerRun{ID: p.id(), Running: true, StartedAt: time.Now()})
	p.note("container %s starts", p.id())
}

func (p *pair) stop() {
	if !p.running {
		return
	}
	p.running, p.kept = false, ""
	p.containerEnds(p.id())
	p.evaluator.ContainerChanged(time.Now(), thresholds.ContainerRun{ID: p.id(), Reason: "exited with code 1"})
	p.note("container %s ends", p.id())
}

// edit changes the command and the thresholds. The kubelet's side gets another worker, because pods
// do not allow that.
func (p *pair) edit(successes, failures int32) {
	p.end()
	spec := execProbe(func(e *corev1.Probe) {
		e.PeriodSeconds = int32(period / time.Second)
		e.SuccessThreshold, e.FailureThreshold = successes, failures
		e.Exec.Command = []string{"idle", fmt.Sprint(len(p.log))}
	})
	p.pod = podWith(p.kind, spec)
	pass(period / 2)
	p.answers(errNoAnswer)
	p.manager.AddPod(p.t.Context(), p.pod)
	synctest.Wait()
	p.kept = string(p.evaluator.State().State)
	p.evaluator.Edited(time.Now(), thresholds.PolicyOf(spec))
	p.evaluator.Begin(time.Now())
	p.breaks = false
	p.note("edited: thresholds %d and %d", successes, failures)
	pass(period / 2)
}

// check runs Seamark's probe if it is due, with the outcome of the kubelet's, and compares both.
func (p *pair) check(before, after int, outcome error) {
	p.t.Helper()
	now := time.Now()
	due, ok := p.evaluator.Due()
	ran, want := after > before, ok && !due.After(now)
	p.note("%s: the kubelet runs its probe: %t, outcome: %v", now.Sub(p.start), ran, outcome)
	if ran != want {
		p.t.Errorf("after %s the kubelet's probe runs: %t, Seamark's: %t", now.Sub(p.start), ran, want)
	}
	if ran {
		p.evaluator.Begin(now)
		if !errors.Is(outcome, errNoAnswer) {
			p.last, p.breaks = outcome == nil, false
			p.evaluator.Outcome(now, probing.Outcome{Success: outcome == nil})
		}
	}
	theirs, ours := p.state(p.id()), string(p.evaluator.State().State)
	if ours == "" {
		ours = "Unknown"
	}
	p.note("    %s", theirs)
	if theirs != "Unknown" {
		p.kept = ""
	}
	if want := cmp.Or(p.kept, theirs); want != ours {
		p.t.Errorf("after %s the kubelet's state is %s, Seamark's is %s, want %s", now.Sub(p.start), theirs, ours, want)
	}
	// A failed liveness probe and a completed startup probe wait for the next container.
	p.held = p.running && (p.kind == liveness && theirs == "Failed" || p.kind == startup && theirs != "Unknown")
}

func (p *pair) id() string { return fmt.Sprint("c", p.containers) }

func (p *pair) note(format string, args ...any) { p.log = append(p.log, fmt.Sprintf(format, args...)) }
