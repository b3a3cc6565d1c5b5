// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package keyed_test

import (
	"sync"
	"testing"

	"github.com/seamark-dev/seamark/internal/program/keyed"
)

func TestStore(t *testing.T) {
	var s keyed.Store[string, int]
	steps := []struct {
		name  string
		do    func()
		key   string
		want  int
		found bool
		size  int
	}{
		{"empty", func() {}, "a", 0, false, 0},
		{"forget in an empty store", func() { s.Forget("a") }, "a", 0, false, 0},
		{"set", func() { s.Set("a", 1) }, "a", 1, true, 1},
		{"replace", func() { s.Set("a", 2) }, "a", 2, true, 1},
		{"update", func() { s.Update("a", func(v *int) bool { *v += 3; return true }) }, "a", 5, true, 1},
		{"update of a new key", func() { s.Update("b", func(v *int) bool { *v++; return true }) }, "b", 1, true, 2},
		{"update that forgets", func() { s.Update("b", func(*int) bool { return false }) }, "b", 0, false, 1},
		{"update that adds nothing", func() { s.Update("c", func(*int) bool { return false }) }, "c", 0, false, 1},
		{"set two more", func() { s.Set("b", 10); s.Set("c", 20) }, "c", 20, true, 3},
		{"expire", func() { s.Expire(func(_ string, v int) bool { return v >= 10 }) }, "a", 5, true, 1},
		{"forget the last", func() { s.Forget("a") }, "a", 0, false, 0},
	}
	for _, step := range steps {
		step.do()
		if got, found := s.Get(step.key); got != step.want || found != step.found || s.Len() != step.size {
			t.Errorf("%s: got %d, %t with %d keys, want %d, %t with %d", step.name, got, found, s.Len(), step.want, step.found, step.size)
		}
	}
}

func TestTake(t *testing.T) {
	var s keyed.Store[string, int]
	s.Set("a", 1)
	if got, found := s.Take("a"); got != 1 || !found {
		t.Errorf("got %d, %t, want 1, true", got, found)
	}
	if got, found := s.Take("a"); got != 0 || found {
		t.Errorf("second take: got %d, %t, want 0, false", got, found)
	}
}

func TestConcurrentUse(t *testing.T) {
	var s keyed.Store[int, int]
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 100 {
				s.Update(i%4, func(v *int) bool { *v++; return true })
				s.Get(worker)
			}
		})
	}
	wg.Wait()
	total := 0
	s.Expire(func(_, v int) bool { total += v; return true })
	if total != 800 || s.Len() != 0 {
		t.Errorf("%d updates took effect and %d keys remain, want 800 and none", total, s.Len())
	}
}
