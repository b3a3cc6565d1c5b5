// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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
