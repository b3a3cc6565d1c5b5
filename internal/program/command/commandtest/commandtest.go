// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commandtest tests the command lines of programs.
package commandtest

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Case is an invalid command line: the arguments, and the parts that the error must contain.
type Case [2][]string

// Reject checks that each command line is rejected.
func Reject(t *testing.T, newCommand func() *cobra.Command, cases map[string]Case) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetOut(io.Discard)
			command.SetErr(io.Discard)
			command.SetArgs(tc[0])
			err := command.ExecuteContext(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc[1] {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not contain %q", err, want)
				}
			}
		})
	}
}
