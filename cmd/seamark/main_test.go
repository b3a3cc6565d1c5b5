// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	command := newCommand(&out)
	command.SetArgs([]string{"version"})
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	if want := "seamark " + version + " ("; !strings.HasPrefix(out.String(), want) {
		t.Errorf("printed %q, want a line that starts with %q", out.String(), want)
	}
}

func TestUnknownArguments(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown command":            {"vers"},
		"unknown flag":               {"version", "--short"},
		"argument where none is due": {"version", "now"},
	} {
		t.Run(name, func(t *testing.T) {
			command := newCommand(io.Discard)
			command.SetErr(io.Discard)
			command.SetArgs(args)
			if err := command.Execute(); err == nil {
				t.Errorf("seamark %s: no error", strings.Join(args, " "))
			}
		})
	}
}
