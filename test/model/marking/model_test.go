// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// The race detector crashes in many synctest bubbles with timers (golang/go#78156).

package marking

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/model"
)

const (
	// seeds is the number of seeds that run by default.
	seeds = 100
	// shrinking is the maximum number of cases that are played to shrink one.
	shrinking = 400
	// maxFailures is the number of failures after which no more seeds run.
	maxFailures = 5
)

// TestSeeds plays the seeds 1 to 100, or to SEAMARK_MODEL_SEEDS, or only SEAMARK_MODEL_SEED. It shrinks those that fail.
func TestSeeds(t *testing.T) {
	first, last, _ := model.Seeds(t, seeds)
	start, played, failures := time.Now(), 0, 0
	for seed := first; seed <= last && failures < maxFailures; seed++ {
		played++
		c := NewCase(seed)
		if _, err := Play(t, c, false); err != nil {
			failures++
			report(t, c, err)
		}
	}
	t.Logf("%d seeds, %.0f per minute", played, float64(played)/time.Since(start).Minutes())
}

// kindOfError returns the beginning of the message, without names.
func kindOfError(err error) string {
	text, _, _ := strings.Cut(err.Error(), " (")
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' })
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return strings.ContainsAny(word, "0123456789\"=") }), " ")
}

// report reports the smallest case that fails, and what happens in it.
func report(t *testing.T, c *Case, err error) {
	t.Helper()
	// The smallest case fails in the same way.
	small := Shrink(c, shrinking, func(c *Case) bool {
		_, again := Play(t, c, false)
		return again != nil && kindOfError(again) == kindOfError(err)
	})
	lines, again := Play(t, small, true)
	t.Errorf("seed %d: %v\n%d of %d steps: %v\nto repeat it, add to TestKept:\n%s\n%s",
		c.Seed, err, len(small.Steps), len(c.Steps), again, small, strings.Join(lines, "\n"))
}

// TestKept plays the cases that have failed before.
func TestKept(t *testing.T) {
	for name, c := range map[string]Case{
		// The report of a probe that an edit moves to another container had the ID of the former container, so the next
		// agent started the state again from Unknown.
		"a probe moves to another container": {Seed: 12, Steps: []Step{
			{"end a watch", 3018566252}, {"create a marker", 643270011}, {"label a pod", 519922484}, {"create a pod", 3528414906},
		}},
		// A manager whose cache had the earlier Node, and the plan of the later one with the same name, deleted this plan.
		"a node is recreated": {Seed: 706, Steps: []Step{
			{"recreate a node", 1859654930}, {"come to rest", 2725695862}, {"create a pod", 359119554}, {"restart the manager", 4160224765},
		}},
		// Nothing looked at a node again to which the first pod came after its agent was gone: its states never became stale.
		"a pod comes to a node without an agent": {Seed: 560, Steps: []Step{
			{"let everything run", 3266664683}, {"create a pod", 2861519466}, {"lose an agent", 3674935989}, {"create a marker", 1449606912},
			{"edit a marker", 968087724}, {"stop an agent", 4177675089},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Play(t, &c, false); err != nil {
				report(t, &c, err)
			}
		})
	}
}

func TestRepeatedCasesAreEqual(t *testing.T) {
	for seed := range uint64(5) {
		first, _ := Play(t, NewCase(seed+1), true)
		second, _ := Play(t, NewCase(seed+1), true)
		expect.Equal(t, fmt.Sprintf("seed %d", seed+1), first, second)
	}
}

func TestShrink(t *testing.T) {
	c := &Case{Seed: 1}
	for i := range 40 {
		c.Steps = append(c.Steps, Step{Operation: strconv.Itoa(i)})
	}
	has := func(c *Case, operation string) bool {
		for _, s := range c.Steps {
			if s.Operation == operation {
				return true
			}
		}
		return false
	}
	small := Shrink(c, shrinking, func(c *Case) bool { return has(c, "7") && has(c, "31") })
	expect.Equal(t, "steps", []Step{{Operation: "7"}, {Operation: "31"}}, small.Steps)
}
