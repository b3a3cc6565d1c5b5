// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
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

// TestReadmeValues checks that the README of the chart states the defaults of values.yaml.
func TestReadmeValues(t *testing.T) {
	readme, err := os.ReadFile("../../charts/seamark/README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]*)` \\|").FindAllSubmatch(readme, -1)
	if len(rows) < 10 {
		t.Fatalf("found %d rows in the table of values, want the main values", len(rows))
	}
	values := readValues(t)
	for _, row := range rows {
		var documented any
		if err := yaml.Unmarshal(row[2], &documented); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(at(values, strings.Split(string(row[1]), ".")), documented); diff != "" {
			t.Errorf("default of %s (-values.yaml +README.md):\n%s", row[1], diff)
		}
	}
}

// TestIcon checks that the icon of the chart is the file in the repository.
func TestIcon(t *testing.T) {
	const folder = "https://raw.githubusercontent.com/seamark-dev/seamark/main/"
	content, err := os.ReadFile("../../charts/seamark/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Icon string }
	if err := yaml.Unmarshal(content, &chart); err != nil {
		t.Fatal(err)
	}
	path, found := strings.CutPrefix(chart.Icon, folder)
	if !found {
		t.Fatalf("icon %q is not below %s", chart.Icon, folder)
	}
	if _, err := os.Stat("../../" + path); err != nil {
		t.Error(err)
	}
}
