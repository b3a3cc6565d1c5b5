// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"testing"
)

func TestPoolForgetsUnusedValues(t *testing.T) {
	p := newPool[*int]()
	p.size = 4
	first := p.share([]byte("first"), new(0))
	for i := range 100 {
		p.share(fmt.Append(nil, i), new(i))
		if got := p.share([]byte("first"), new(i)); got != first {
			t.Fatalf("a value that is used is not shared after %d others", i)
		}
	}
	for i := range 2 * p.size {
		p.share(fmt.Append(nil, "more", i), new(i))
	}
	if known := len(p.recent) + len(p.older); known > 2*p.size {
		t.Errorf("%d values, want at most %d", known, 2*p.size)
	}
	if got := p.share([]byte("first"), new(1)); got == first {
		t.Error("an unused value is kept")
	}
}

func TestMapsWithOtherBoundariesDiffer(t *testing.T) {
	a := appendMap(nil, map[string]string{"a": "bc"})
	if b := appendMap(nil, map[string]string{"ab": "c"}); string(a) == string(b) {
		t.Errorf("both are %q", a)
	}
}
