// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package earliest_test

import (
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestTime(t *testing.T) {
	never, soon := time.Time{}, time.Unix(1, 0)
	late := soon.Add(1)
	for name, c := range map[string]struct{ a, b, want time.Time }{
		"both never": {never, never, never}, "first never": {never, soon, soon}, "second never": {soon, never, soon},
		"first sooner": {soon, late, soon}, "second sooner": {late, soon, soon},
	} {
		if got := earliest.Time(c.a, c.b); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWait(t *testing.T) {
	for name, c := range map[string]struct{ a, b, want time.Duration }{
		"both never": {0, -1, 0}, "first never": {-1, 2, 2}, "second never": {2, -1, 2}, "first shorter": {1, 2, 1}, "second shorter": {2, 1, 1},
	} {
		expect.Equal(t, name, c.want, earliest.Wait(c.a, c.b))
	}
}
