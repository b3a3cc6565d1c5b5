// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package expect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seamark-dev/seamark/test/expect"
)

// failures is a test that records how it fails.
type failures struct {
	testing.TB
	text string
}

func (*failures) Helper() {}

func (f *failures) Error(args ...any) { f.text = fmt.Sprint(args...) }

func (f *failures) Errorf(format string, args ...any) { f.text = fmt.Sprintf(format, args...) }

func (f *failures) Fatal(args ...any) { f.text = "fatal: " + fmt.Sprint(args...) }

func TestFailures(t *testing.T) {
	for want, check := range map[string]func(*failures){
		"": func(f *failures) {
			expect.NoError(f, nil)
			expect.Equal(f, "number", 1, 1)
			expect.ErrorWith(f, "write", "refused", errors.New("it is refused"))
			expect.Equal(f, "list", nil, []string{}, cmpopts.EquateEmpty())
		},
		"fatal: refused": func(f *failures) { expect.NoError(f, errors.New("refused")) },
		`write: error later, want one with "refused"`: func(f *failures) { expect.ErrorWith(f, "write", "refused", errors.New("later")) },
		`read: error <nil>, want one with ""`:         func(f *failures) { expect.ErrorWith(f, "read", "", nil) },
		"number: got 2, want 1":                       func(f *failures) { expect.Equal(f, "number", 1, 2) },
		`name: got "b", want "a"`:                     func(f *failures) { expect.Equal(f, "name", "a", "b") },
		"text (-want +got):\n":                        func(f *failures) { expect.Equal(f, "text", "a\nb\n", "a\nc\n") },
		"list (-want +got):\n":                        func(f *failures) { expect.Equal(f, "list", []int{1}, []int{2}) },
		"long (-want +got):\n":                        func(f *failures) { expect.Equal(f, "long", "a", strings.Repeat("b", 300)) },
		"empty list (-want +got):\n":                  func(f *failures) { expect.Equal(f, "empty list", nil, []string{}) },
	} {
		f := &failures{}
		if check(f); !strings.HasPrefix(f.text, want) || (f.text == "") != (want == "") {
			t.Errorf("failed with %q, want %q", f.text, want)
		}
	}
}
