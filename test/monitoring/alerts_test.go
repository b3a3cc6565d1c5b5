// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	rulesFile = "charts/seamark/files/alerts/seamark.yaml"
	runbooks  = "https://github.com/seamark-dev/seamark/blob/main/docs/runbooks/"
)

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// readYAML decodes a file of the repository.
func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	contents, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(contents, into); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	readYAML(t, rulesFile, &file)
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no alerts in the file")
	}
	return all
}

func TestAlerts(t *testing.T) {
	c := readCatalog(t)
	for _, alert := range alerts(t) {
		for _, problem := range c.check(alert.Expr) {
			t.Errorf("%s: %s", alert.Alert, problem)
		}
		if !strings.HasPrefix(alert.Alert, "Seamark") {
			t.Errorf("%s: the name does not start with Seamark", alert.Alert)
		}
		if severity := alert.Labels["severity"]; severity != "warning" && severity != "critical" {
			t.Errorf("%s: severity %q, want warning or critical", alert.Alert, severity)
		}
		for _, annotation := range []string{"summary", "description"} {
			if alert.Annotations[annotation] == "" {
				t.Errorf("%s: no %s", alert.Alert, annotation)
			}
		}
		if want := runbooks + alert.Alert + ".md"; alert.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url %q, want %q", alert.Alert, alert.Annotations["runbook_url"], want)
		}
	}
}

// TestRunbooks checks that every alert has a complete page, and every page an alert.
func TestRunbooks(t *testing.T) {
	var want []string
	for _, alert := range alerts(t) {
		want = append(want, alert.Alert)
	}
	index, err := os.ReadFile(filepath.Join(root, "docs/runbooks/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs/runbooks/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		if name == "README" {
			continue
		}
		got = append(got, name)
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"# " + name, "## Meaning", "## Impact", "## Find the cause", "## Remedy"} {
			if !strings.Contains("\n"+string(page), "\n"+part+"\n") {
				t.Errorf("%s has no %q", file, part)
			}
		}
		if !strings.Contains(string(index), "("+name+".md)") {
			t.Errorf("the index does not link to %s", name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(want, got) {
		t.Errorf("pages %v, want one per alert: %v", got, want)
	}
}

// TestEveryAlertIsTested checks that testdata has, for each alert, a case in which it fires
// and a case in which it does not.
func TestEveryAlertIsTested(t *testing.T) {
	var file struct {
		Tests []struct {
			Cases []struct {
				Name   string `yaml:"alertname"`
				Alerts []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	readYAML(t, "test/monitoring/testdata/alerts.yaml", &file)
	firing, inactive := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			if len(c.Alerts) > 0 {
				firing[c.Name] = true
			} else {
				inactive[c.Name] = true
			}
		}
	}
	for _, alert := range alerts(t) {
		if !firing[alert.Alert] || !inactive[alert.Alert] {
			t.Errorf("%s: tested while firing: %t, while inactive: %t; want both", alert.Alert, firing[alert.Alert], inactive[alert.Alert])
		}
	}
}

func TestRules(t *testing.T) {
	output(t, "promtool", "check", "rules", "--lint=all", "--lint-fatal", rulesFile)
	output(t, "promtool", "test", "rules", "test/monitoring/testdata/alerts.yaml")
}
