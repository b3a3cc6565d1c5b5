// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// root is the repository's.
const root = "../.."

// metric is what hack/metricsdocs tells of one.
type metric struct {
	Name, Type string
	Labels     []struct {
		Name   string
		Values []string
	}
}

// catalog are the series that the programs export, by their names.
type catalog map[string]metric

// readCatalog asks the code for its metrics. A histogram stands for its three series.
func readCatalog(t *testing.T) catalog {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "run", "./hack/metricsdocs", "-json")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatalf("ask for the metrics: %v", err)
	}
	var programs []struct{ Own, Others []metric }
	if err := json.Unmarshal(out, &programs); err != nil {
		t.Fatalf("read the metrics: %v", err)
	}
	all := catalog{}
	for _, program := range programs {
		for _, m := range append(program.Own, program.Others...) {
			if m.Type != "histogram" {
				all[m.Name] = m
				continue
			}
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				all[m.Name+suffix] = m
			}
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %d series are told of", len(all))
	}
	return all
}

// check returns what is wrong with an expression, beginning with its syntax.
func (c catalog) check(expression string) []string {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	var known []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			wrong = append(wrong, c.selector(selector)...)
			known = append(known, c.labelsOf(selector.Name)...)
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		for _, label := range grouping(node) {
			if !slices.Contains(known, label) {
				wrong = append(wrong, fmt.Sprintf("no metric in it has the label %q", label))
			}
		}
		return nil
	})
	return wrong
}

// selector checks a metric's name, its labels, and the values that they are compared with.
func (c catalog) selector(s *parser.VectorSelector) []string {
	m, found := c[s.Name]
	if !found {
		return []string{fmt.Sprintf("there is no metric %q", s.Name)}
	}
	var wrong []string
	for _, matcher := range s.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			continue
		}
		if !slices.Contains(c.labelsOf(s.Name), matcher.Name) {
			wrong = append(wrong, fmt.Sprintf("%s has no label %q", s.Name, matcher.Name))
		}
		for _, label := range m.Labels {
			if label.Name == matcher.Name && len(label.Values) > 0 && !slices.ContainsFunc(label.Values, matcher.Matches) {
				wrong = append(wrong, fmt.Sprintf("%s matches none of the values %v of %s", matcher, label.Values, s.Name))
			}
		}
	}
	return wrong
}

// labelsOf are the labels that a series has, with those that every scrape adds.
func (c catalog) labelsOf(name string) []string {
	all := []string{"instance", "job"}
	if strings.HasSuffix(name, "_bucket") {
		all = append(all, "le")
	}
	for _, label := range c[name].Labels {
		all = append(all, label.Name)
	}
	return all
}

// grouping are the labels by which a node groups or joins.
func grouping(node parser.Node) []string {
	switch n := node.(type) {
	case *parser.AggregateExpr:
		return n.Grouping
	case *parser.BinaryExpr:
		if n.VectorMatching != nil {
			return append(slices.Clone(n.VectorMatching.MatchingLabels), n.VectorMatching.Include...)
		}
	}
	return nil
}

// TestCheck holds the checks below to finding what they are for.
func TestCheck(t *testing.T) {
	c := readCatalog(t)
	cases := map[string]struct{ expression, want string }{
		"right": {expression: `sum by (handler) (rate(seamark_agent_probes_total{result="timeout"}[5m]))`},
		"a metric that is none": {
			expression: `seamark_agent_probe_total`, want: `there is no metric "seamark_agent_probe_total"`,
		},
		"a histogram without its suffix": {
			expression: `rate(seamark_agent_report_size_bytes[5m])`, want: `there is no metric "seamark_agent_report_size_bytes"`,
		},
		"a label that it lacks": {
			expression: `seamark_agent_probes_total{pod="a"}`, want: `seamark_agent_probes_total has no label "pod"`,
		},
		"a value that there is not": {
			expression: `seamark_agent_probes_total{result="timed_out"}`,
			want:       `result="timed_out" matches none of the values [error failure success timeout] of seamark_agent_probes_total`,
		},
		"grouped by what none has": {
			expression: `sum by (marker) (seamark_agent_probes_total)`, want: `no metric in it has the label "marker"`,
		},
		"joined by what none has": {
			expression: `seamark_agent_probes_total and on (node) seamark_agent_planned_probes`, want: `no metric in it has the label "node"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(c.check(tc.expression), "; "); got != tc.want {
				t.Errorf("check() = %q, want %q", got, tc.want)
			}
		})
	}
}
