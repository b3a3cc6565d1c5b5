// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"regexp"
	"testing"
)

// TestDocumentedValues renders the chart with each set of values that docs/install.md
// recommends.
func TestDocumentedValues(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.+?)^```$").FindAllSubmatch(page, -1)
	if len(blocks) < 2 {
		t.Fatalf("found %d sets of values, want those for a small and for a large cluster", len(blocks))
	}
	for _, block := range blocks {
		parse(t, template(t, tool(t, "helm"), "ns", "--values", valuesFile(t, string(block[1]))))
	}
}
