// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/program/command/commandtest"
)

func TestInvalidFlags(t *testing.T) {
	commandtest.Reject(t, newCommand, map[string]commandtest.Case{
		"invalid boolean":     {{"--leader-elect=perhaps"}, {"--leader-elect", "perhaps"}},
		"missing kubeconfig":  {{"--kubeconfig=/nowhere"}, {`--kubeconfig="/nowhere"`, "no such file"}},
		"positional argument": {{"now"}, {"now"}},
	})
}
