// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expect fails tests, and says how what they got differs from what they want.
package expect

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// NoError ends the test if there is an error.
func NoError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// NoErrorf ends the test if there is an error. The format says what was attempted.
func NoErrorf(tb testing.TB, err error, format string, args ...any) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// Success reports an error, and lets the test go on.
func Success(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Error(err)
	}
}

// ErrorWith fails the test unless there is an error whose text contains the part. What names the error in the message.
func ErrorWith(tb testing.TB, what, part string, err error) {
	tb.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		tb.Errorf("%s: error %v, want one with %q", what, err, part)
	}
}

// longest is the length of the values that are shown in one line.
const longest = 200

// Equal fails the test if the values differ. What names them in the message.
func Equal[T any](tb testing.TB, what string, want, got T, options ...cmp.Option) {
	tb.Helper()
	diff := cmp.Diff(want, got, options...)
	if diff == "" {
		return
	}
	verb, kind := "%v", reflect.TypeFor[T]().Kind()
	if kind == reflect.String {
		verb = "%q"
	}
	text := fmt.Sprintf("%s: got "+verb+", want "+verb, what, got, want)
	if kind >= reflect.Array && kind != reflect.String || len(text) > longest || strings.Contains(text, `\n`) {
		text = fmt.Sprintf("%s (-want +got):\n%s", what, diff)
		if strings.HasSuffix(what, ")") { // It says what the signs are.
			text = fmt.Sprintf("%s:\n%s", what, diff)
		}
	}
	tb.Error(text)
}
