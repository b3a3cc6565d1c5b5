// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/test/bench/page"
	"github.com/seamark-dev/seamark/test/chaos/report"
	"github.com/seamark-dev/seamark/test/chaos/schedule"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// Environment variables of a run. Without the first, nothing runs.
const (
	// sizeVariable is short, a fixed selection, or full.
	sizeVariable = "SEAMARK_CHAOS"
	// seedVariable is a number, and durationVariable how long new faults start, such as 10m.
	seedVariable, durationVariable = "SEAMARK_CHAOS_SEED", "SEAMARK_CHAOS_DURATION"
	// onlyVariable is the beginning of the names of the faults to inject.
	onlyVariable = "SEAMARK_CHAOS_ONLY"
	// clockVariable is the folder of programs whose clocks can be stepped. Without it, there are no such faults.
	clockVariable = "SEAMARK_CHAOS_CLOCK"
	// writeVariable is set to write the table into docs/reliability.md.
	writeVariable = "SEAMARK_CHAOS_WRITE"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// settings are those of a run.
type settings struct {
	seed     uint64
	duration time.Duration
	turns    []schedule.Turn
}

// shortSelection are the faults of a short run, in this order.
func shortSelection() []string {
	return []string{"agent killed", "lease stolen", "responses to writes lost", "containerd killed", "API server killed"}
}

func newSettings(t *testing.T) settings {
	t.Helper()
	s := settings{seed: 1, duration: 10 * time.Minute}
	var err error
	if text := os.Getenv(seedVariable); text != "" {
		if s.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %q is invalid: must be a number: %v", seedVariable, text, err)
		}
	}
	if text := os.Getenv(durationVariable); text != "" {
		if s.duration, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %q is invalid: must be a duration such as 10m: %v", durationVariable, text, err)
		}
	}
	all := slices.Sorted(maps.Keys((&world{}).faults()))
	switch size := os.Getenv(sizeVariable); size {
	case "":
		t.Skip(sizeVariable + " is not set: run `make chaos`")
	case "short":
		for i, name := range shortSelection() {
			s.turns = append(s.turns, schedule.Turn{Fault: name, Seed: uint64(i)}) //nolint:gosec // It is small.
		}
	case "full":
		only := os.Getenv(onlyVariable)
		names := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !strings.HasPrefix(name, only) })
		if len(names) == 0 {
			t.Fatalf("%s: no fault begins with %q: the faults are %q", onlyVariable, only, all)
		}
		const mostRounds = 1000
		s.turns = schedule.Draw(s.seed, names, mostRounds)
	default:
		t.Fatalf("%s: %q is invalid: must be short or full", sizeVariable, size)
	}
	return s
}

// run is a run of faults.
type run struct {
	*world
	all   map[string]fault
	first usage
	report.Report
}

// TestChaos injects one fault after another while users change things, and checks every object after each.
func TestChaos(t *testing.T) {
	s := newSettings(t)
	r := &run{world: newWorld(t, s.seed)}
	r.all = r.faults()
	var err error
	r.users, err = newUsers(t.Context(), r.world)
	r.must(err)
	expect.NoError(t, r.settle(t.Context()))
	r.forget()
	r.growth(t.Context())
	start := time.Now()
	for i, turn := range s.turns {
		if time.Since(start) > s.duration {
			break
		}
		t.Logf("%s: fault %d: %s", time.Since(start).Round(time.Second), i+1, turn.Fault)
		if !r.turn(t.Context(), turn) {
			break
		}
	}
	for _, lost := range r.Lost() {
		t.Error(lost)
	}
	t.Logf("seed %d, %s, %d faults, deletions of pods: %v\n%s", s.seed, time.Since(start).Round(time.Second), len(r.Turns), r.ledger.Causes(), r.Table())
	r.keep(s, time.Since(start))
}

// keep writes the results of the runs of this commit into the pages, if that is wanted.
func (r *run) keep(s settings, took time.Duration) {
	r.Helper()
	if os.Getenv(writeVariable) == "" {
		return
	}
	machine := r.machine()
	runs, err := report.Keep(filepath.Join(os.Getenv("SEAMARK_BIN"), "chaos", "runs.json"),
		report.Run{Seed: s.seed, Only: os.Getenv(onlyVariable), Took: took, Commit: machine.Commit, Report: r.Report})
	r.must(err)
	all, sum, seeds := report.Merge(runs)
	r.writeBlock("chaos", fmt.Sprintf("| machine | Kubernetes | commit | date | seeds | time | faults |\n| --- | --- | --- | --- | --- | --- | --- |\n"+
		"| %d × %s, %s | %s | %s | %s | %s | %.0f min | %d |\n\n%s", machine.Cores, machine.CPU, machine.Memory, machine.Kubernetes, machine.Commit, machine.Date,
		strings.Join(seeds, ", "), sum.Minutes(), len(all.Turns), all.Table()))
}

// machine describes where the test runs.
func (w *world) machine() page.Machine {
	return page.Describe(w.Context(), w.Root, filepath.Join(w.Dir, "bin"), time.Now().UTC().Format(time.DateOnly))
}

// forget starts to count what is lost.
func (r *run) forget() {
	r.watch.take()
	r.watch.settle()
	r.ledger.Settle()
}

// stepTime is the time between two things that users do during a fault.
const stepTime = 2 * time.Second

// turn injects one fault and waits for the end of what it does. It returns false if the world does not recover, so
// that nothing can be said about further faults.
func (r *run) turn(ctx context.Context, turn schedule.Turn) bool {
	parameters, random := turn.Random()
	f := r.all[turn.Fault]
	result := report.Turn{Fault: turn.Fault}
	violations := len(r.ledger.Violations())
	if err := r.inject(ctx, f, parameters, random); err != nil {
		result.Lost = append(result.Lost, err.Error())
	}
	healed := time.Now()
	unsettled := r.settle(ctx)
	r.users.mayLose = false
	result.Recovered = time.Since(healed)
	if unsettled != nil {
		result.Lost = append(result.Lost, fmt.Sprintf("not recovered after %s: %v", recoveryLimit, unsettled))
	}
	worst, where, problems := r.watch.take()
	result.Wrong = worst
	result.Lost = append(append(result.Lost, problems...), r.ledger.Violations()[violations:]...)
	r.ledger.Settle()
	if unsettled == nil {
		r.watch.settle()
		result.Lost = append(result.Lost, r.growth(ctx)...)
	}
	r.Logf("  wrong for %s (%s), recovered after %s, lost %q", worst.Round(time.Millisecond), where, result.Recovered.Round(time.Millisecond), result.Lost)
	r.Turns = append(r.Turns, result)
	return unsettled == nil
}

// inject lets users act before and during a fault, and heals it.
func (r *run) inject(ctx context.Context, f fault, parameters, random *rand.Rand) error {
	if err := r.users.act(ctx, random, 3, true); err != nil {
		return fmt.Errorf("before the fault: %w", err)
	}
	injected := f.inject(ctx, parameters)
	var acted error
	if injected == nil {
		for range f.steps(parameters) {
			if acted = r.users.act(ctx, random, 1, f.api); acted != nil {
				break
			}
			if f.again != nil {
				if injected = f.again(ctx, parameters); injected != nil {
					break
				}
			}
			linger(ctx, stepTime)
		}
	}
	if f.heal != nil {
		if err := f.heal(ctx); err != nil {
			return fmt.Errorf("heal: %w", err)
		}
	}
	if injected != nil {
		return fmt.Errorf("inject: %w", injected)
	}
	if acted != nil {
		return fmt.Errorf("during the fault: %w", acted)
	}
	return nil
}

// growthTime is how long growth must last: each probe in flight has goroutines and connections.
const growthTime = 20 * time.Second

// growth samples the programs, and returns what has grown since the first fault.
func (r *run) growth(ctx context.Context) []string {
	var found []string
	err := poll(ctx, growthTime, func(ctx context.Context) bool {
		now, err := r.use(ctx)
		if err != nil {
			found = []string{err.Error()}
			return false
		}
		if r.first == nil {
			r.first = now
		}
		if found = grown(r.first, now); len(found) > 0 {
			linger(ctx, stepTime)
		}
		return len(found) == 0
	})
	if err != nil {
		r.profile(ctx)
	}
	return found
}

// profile writes the goroutines of the programs next to their logs.
func (r *run) profile(ctx context.Context) {
	for _, program := range r.running {
		for _, arg := range program.Args {
			if address, ok := strings.CutPrefix(arg, "--pprof-bind-address="); ok {
				r.must(os.WriteFile(program.Log+".goroutines", []byte(env.Get(ctx, address, "/debug/pprof/goroutine?debug=1")), 0o600))
			}
		}
	}
}

// writeBlock writes results into the pages of both languages, if that is wanted.
func (w *world) writeBlock(block, content string) {
	w.Helper()
	if os.Getenv(writeVariable) == "" {
		return
	}
	for _, page := range []string{"docs/reliability.md", "docs/zh/reliability.md"} {
		path := filepath.Join(w.Root, page)
		text, err := os.ReadFile(path)
		w.must(err)
		text, err = report.Fill(text, block, content)
		w.must(err)
		w.must(os.WriteFile(path, text, 0o644)) //nolint:gosec // The page is not secret.
	}
}

// linger waits, or until ctx ends.
func linger(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
