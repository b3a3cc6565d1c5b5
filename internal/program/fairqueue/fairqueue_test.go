// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package fairqueue_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/program/fairqueue"
	"github.com/seamark-dev/seamark/test/expect"
)

// tenant is the letter at the beginning of an item.
func tenant(item string) string { return item[:1] }

func TestQueue(t *testing.T) {
	cases := map[string]struct {
		// steps are items to push, and numbers of items to pop.
		steps []any
		want  string
	}{
		"one tenant, in order":             {steps: []any{"a1", "a2", "a3", 3}, want: "a1 a2 a3"},
		"tenants in turn":                  {steps: []any{"a1", "a2", "a3", "b1", "b2", 5}, want: "a1 b1 a2 b2 a3"},
		"a new tenant waits for one round": {steps: []any{"a1", "a2", "b1", "b2", 1, "c1", 4}, want: "a1 b1 a2 c1 b2"},
		"a tenant that has waited is next": {steps: []any{"a1", "a2", "b1", 1, "a3", 3}, want: "a1 b1 a2 a3"},
		"a tenant that returns waits":      {steps: []any{"a1", "b1", "b2", 1, "a1", 3}, want: "a1 b1 a1 b2"},
		"empty in between":                 {steps: []any{"a1", 1, "b1", 1, "a1", 1}, want: "a1 b1 a1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := fairqueue.New(tenant)
			var got []string
			for _, step := range tc.steps {
				switch step := step.(type) {
				case string:
					q.Push(step)
				case int:
					for range step {
						got = append(got, q.Pop())
					}
				}
			}
			expect.Equal(t, "served", tc.want, strings.Join(got, " "))
			expect.Equal(t, "items remain", 0, q.Len())
		})
	}
}

// FuzzQueue pushes and pops at random. Every item is served once, those of a tenant in order, and
// between two items of a waiting tenant, every other tenant is served at most once.
func FuzzQueue(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 7))
		q := fairqueue.New(tenant)
		waiting, since := map[string][]string{}, map[string]map[string]int{}
		total := 0
		for i := range 300 {
			if rng.IntN(5) < 3 || total == 0 {
				item := fmt.Sprint(string(rune('a'+rng.IntN(5)*rng.IntN(2))), i)
				if len(waiting[tenant(item)]) == 0 {
					since[tenant(item)] = map[string]int{}
				}
				q.Push(item)
				waiting[tenant(item)] = append(waiting[tenant(item)], item)
				total++
				continue
			}
			item := q.Pop()
			own := tenant(item)
			if len(waiting[own]) == 0 || waiting[own][0] != item {
				t.Fatalf("served %s, want the first of %v", item, waiting[own])
			}
			waiting[own], since[own] = waiting[own][1:], map[string]int{}
			total--
			for other, served := range since {
				if served[own]++; other != own && len(waiting[other]) > 0 && served[own] > 1 {
					t.Fatalf("%s is served twice while %s waits", own, other)
				}
			}
		}
		expect.Equal(t, "the length", total, q.Len())
	})
}

// TestPriorities pushes items with priorities, which are their second characters.
func TestPriorities(t *testing.T) {
	raised, popped := map[string]int{}, 0
	q := fairqueue.NewWithPriorities(tenant, func(item string) int { return max(int(item[1]-'0'), raised[item]) }, func(string) { popped++ })
	for _, item := range []string{"a0x", "a1x", "a0y", "b0x", "a1y"} {
		q.Push(item)
	}
	raised["a0y"] = 2
	q.Touch("a0y")
	q.Touch("a0x")
	q.Touch("c0x")
	var got []string
	pop := func() { got = append(got, q.Pop()) }
	pop()
	raised["a0y"] = 0
	q.Push("a0y") // Its first entry is not served twice.
	for q.Len() > 0 {
		pop()
	}
	if diff := cmp.Diff("a0y b0x a1x a1y a0x a0y", strings.Join(got, " ")); diff != "" || popped != 6 {
		t.Errorf("served %d (-want +got):\n%s", popped, diff)
	}
}
