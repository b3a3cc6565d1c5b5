// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager measures the writes of plans and the resources of the manager.
package manager

import "github.com/seamark-dev/seamark/test/bench/harness"

// Measures returns the measures in the order of the page.
func Measures() []harness.Measure {
	return []harness.Measure{plansMeasure(), replaceMeasure(), resourcesMeasure()}
}
