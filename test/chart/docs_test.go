// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestDocumentedValues renders the chart with each set of values that docs/install.md
// recommends.
func TestDocumentedValues(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	expect.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.+?)^```$").FindAllSubmatch(page, -1)
	if len(blocks) < 2 {
		t.Fatalf("found %d sets of values, want those for a small and for a large cluster", len(blocks))
	}
	for _, block := range blocks {
		parse(t, template(t, tool(t, "helm"), "ns", "--values", valuesFile(t, string(block[1]))))
	}
}

// TestReadmeValues checks that the README of the chart states the defaults of values.yaml.
func TestReadmeValues(t *testing.T) {
	readme, err := os.ReadFile("../../charts/seamark/README.md")
	expect.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]*)` \\|").FindAllSubmatch(readme, -1)
	if len(rows) < 10 {
		t.Fatalf("found %d rows in the table of values, want the main values", len(rows))
	}
	values := readValues(t)
	for _, row := range rows {
		var documented any
		expect.NoError(t, yaml.Unmarshal(row[2], &documented))
		expect.Equal(t, at(values, strings.Split(string(row[1]), ".")), documented, "default of %s", row[1])
	}
}

// TestIcon checks that the icon of the chart is the file in the repository.
func TestIcon(t *testing.T) {
	const folder = "https://raw.githubusercontent.com/seamark-dev/seamark/main/"
	content, err := os.ReadFile("../../charts/seamark/Chart.yaml")
	expect.NoError(t, err)
	var chart struct{ Icon string }
	expect.NoError(t, yaml.Unmarshal(content, &chart))
	path, found := strings.CutPrefix(chart.Icon, folder)
	if !found {
		t.Fatalf("icon %q is not below %s", chart.Icon, folder)
	}
	if _, err := os.Stat("../../" + path); err != nil {
		t.Error(err)
	}
}
