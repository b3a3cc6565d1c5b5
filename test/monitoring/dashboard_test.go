// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type dashboard struct {
	UID        string
	Templating struct {
		List []struct {
			Name, Type, Definition string
		}
	}
	Panels []struct {
		ID          int
		Type, Title string
		Datasource  struct{ UID string }
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct {
			Expr       string
			Datasource struct{ UID string }
		}
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	contents, err := os.ReadFile(filepath.Join(root, "charts/seamark/files/dashboards/seamark.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(contents, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// expressions returns the expressions of all panels and variables, with a fixed interval instead
// of Grafana's variable.
func (d dashboard) expressions() map[string][]string {
	all := map[string][]string{}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			all[panel.Title] = append(all[panel.Title], strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
	values := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for _, variable := range d.Templating.List {
		if variable.Type == "query" {
			all["$"+variable.Name] = []string{values.ReplaceAllString(variable.Definition, "sum by ($2) ($1)")}
		}
	}
	return all
}

func TestDashboard(t *testing.T) {
	c, d := readCatalog(t), readDashboard(t)
	shown := map[string]bool{}
	for title, expressions := range d.expressions() {
		for _, expression := range expressions {
			for _, problem := range c.check(expression) {
				t.Errorf("%s: %s: %s", title, expression, problem)
			}
			for name := range c {
				shown[name] = shown[name] || regexp.MustCompile(`\b`+name+`\b`).MatchString(expression)
			}
		}
	}
	for name := range c {
		base := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, suffix)
		}
		if strings.HasPrefix(name, "seamark_") && !shown[name] && !shown[base+"_bucket"] {
			t.Errorf("no panel shows %s", base)
		}
	}
}

// TestDashboardCanBeProvisioned checks what Grafana requires of a provisioned dashboard.
func TestDashboardCanBeProvisioned(t *testing.T) {
	d := readDashboard(t)
	if d.UID != "seamark" {
		t.Errorf("uid %q, want seamark: links and bookmarks contain it", d.UID)
	}
	var variables, titles []string
	for _, variable := range d.Templating.List {
		variables = append(variables, variable.Name)
	}
	ids := map[int]bool{}
	for i, panel := range d.Panels {
		if ids[panel.ID] || panel.ID == 0 {
			t.Errorf("%s: id %d is not unique", panel.Title, panel.ID)
		}
		ids[panel.ID] = true
		if slices.Contains(titles, panel.Title) {
			t.Errorf("two panels are named %s", panel.Title)
		}
		titles = append(titles, panel.Title)
		for _, other := range d.Panels[:i] {
			a, b := panel.GridPos, other.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%s overlaps %s", panel.Title, other.Title)
			}
		}
		if panel.Type == "row" {
			continue
		}
		if len(panel.Targets) == 0 || panel.Datasource.UID != "${datasource}" {
			t.Errorf("%s: %d queries of the data source %q, want at least one of ${datasource}", panel.Title, len(panel.Targets), panel.Datasource.UID)
		}
		for _, target := range panel.Targets {
			if target.Datasource.UID != "${datasource}" {
				t.Errorf("%s: queries the data source %q, want ${datasource}", panel.Title, target.Datasource.UID)
			}
		}
	}
	if !slices.Contains(variables, "datasource") {
		t.Errorf("variables %v, want datasource included", variables)
	}
}

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

// root is the root of the repository.
const root = "../.."

// tool returns the path of a program that make has put into $SEAMARK_BIN.
func tool(t *testing.T, name string) string {
	t.Helper()
	folder := os.Getenv("SEAMARK_BIN")
	if folder == "" {
		t.Fatal("SEAMARK_BIN is not set: run `make test-monitoring`")
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("find %s: %v: run `make test-monitoring`", name, err)
	}
	return path
}

// output runs a tool in the root of the repository and returns its standard output.
func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), tool(t, name), args...)
	command.Dir = root
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.Bytes()
}
