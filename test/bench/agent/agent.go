// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent measures the resources of the agent.
package agent

import "github.com/seamark-dev/seamark/test/bench/harness"

// Measures returns the measures in the order of the page.
func Measures() []harness.Measure { return nil }
