// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"testing"

	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
)

// A slow stream gets the last states of the pods that have changed, or the whole state if it has missed
// too many changes, so that nothing waits for it in memory.
func TestSlowStreams(t *testing.T) {
	g := newGroup(t.Context(), Scope{})
	defer g.stop()
	apply := func(change Change) {
		t.Helper()
		expect.NoError(t, g.apply(change))
	}
	apply(Change{All: true, Pods: []model.Pod{{Key: "a"}, {Key: "b"}, {Key: "c"}}})
	_, first, _, _ := g.read(-1)
	for i := range 500 {
		apply(Change{Pods: []model.Pod{{Key: "a", Name: fmt.Sprint(i)}, {Key: "b", Name: fmt.Sprint(i)}}})
	}
	apply(Change{Removed: []string{"b"}})
	count := func(sent int) string {
		b, _, _, _ := g.read(sent)
		return fmt.Sprintf("whole=%t pods=%d removed=%v", b.whole, len(b.pods), b.removed)
	}
	got := []string{count(first)}
	for i := range 2 * minLog {
		apply(Change{Pods: []model.Pod{{Key: "a", Name: fmt.Sprint("again", i)}}})
	}
	got = append(got, count(first))
	expect.Equal(t, "batches", []string{"whole=false pods=1 removed=[b]", "whole=true pods=2 removed=[]"}, got)
	if len(g.log) > 2*minLog+2 {
		t.Errorf("%d changes are kept", len(g.log))
	}
}
