// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package objectversion_test

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/program/objectversion"
)

func TestOlderAndNewer(t *testing.T) {
	for name, c := range map[string]struct {
		a, b, newest string
		older        bool
	}{
		"more digits": {"9", "10", "10", true}, "newer": {"10", "9", "10", false}, "equal": {"9", "9", "9", false},
		"first empty": {"", "9", "9", false}, "second empty": {"9", "", "9", false}, "no number": {"9", "x", "9", false},
	} {
		if newest, older := objectversion.Newer(c.a, c.b), objectversion.Older(c.a, c.b); newest != c.newest || older != c.older {
			t.Errorf("%s: newest %q, older %t, want %q, %t", name, newest, older, c.newest, c.older)
		}
	}
}
