// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// metric describes a metric, as hack/metricsdocs prints it.
type metric struct {
	Name, Type string
	Labels     []struct {
		Name   string
		Values []string
	}
}

// catalog maps the names of the series that the programs export to their metrics.
type catalog map[string]metric

// readCatalog gets the metrics from the code. A histogram has three series.
func readCatalog(t *testing.T) catalog {
	t.Helper()
	var programs []struct{ Own, Others []metric }
	if err := json.Unmarshal(output(t, "metricsdocs", "-json"), &programs); err != nil {
		t.Fatalf("decode the metrics: %v", err)
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
		t.Fatalf("only %d series, want at least 30", len(all))
	}
	return all
}

// check returns the problems of an expression: its syntax, or unknown metrics and labels.
func (c catalog) check(expression string) []string {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	var known []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			problems = append(problems, c.selector(selector)...)
			known = append(known, c.labelsOf(selector.Name)...)
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		for _, label := range grouping(node) {
			if !slices.Contains(known, label) {
				problems = append(problems, fmt.Sprintf("none of its metrics has the label %q", label))
			}
		}
		return nil
	})
	return problems
}

// selector checks a metric's name, its labels, and the values that they are compared with.
func (c catalog) selector(s *parser.VectorSelector) []string {
	m, found := c[s.Name]
	if !found {
		return []string{fmt.Sprintf("unknown metric %q", s.Name)}
	}
	var problems []string
	for _, matcher := range s.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			continue
		}
		if !slices.Contains(c.labelsOf(s.Name), matcher.Name) {
			problems = append(problems, fmt.Sprintf("%s has no label %q", s.Name, matcher.Name))
		}
		for _, label := range m.Labels {
			if label.Name == matcher.Name && len(label.Values) > 0 && !slices.ContainsFunc(label.Values, matcher.Matches) {
				problems = append(problems, fmt.Sprintf("%s matches none of the values %v of %s", matcher, label.Values, s.Name))
			}
		}
	}
	return problems
}

// labelsOf returns the labels of a series, including those that every scrape adds.
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

// grouping returns the labels by which a node groups or joins.
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

// TestCheck checks that check finds each kind of problem.
func TestCheck(t *testing.T) {
	c := readCatalog(t)
	cases := map[string]struct{ expression, want string }{
		"valid": {expression: `sum by (handler) (rate(seamark_agent_probes_total{result="timeout"}[5m]))`},
		"unknown metric": {
			expression: `seamark_agent_probe_total`, want: `unknown metric "seamark_agent_probe_total"`,
		},
		"histogram without suffix": {
			expression: `rate(seamark_agent_report_size_bytes[5m])`, want: `unknown metric "seamark_agent_report_size_bytes"`,
		},
		"unknown label": {
			expression: `seamark_agent_probes_total{pod="a"}`, want: `seamark_agent_probes_total has no label "pod"`,
		},
		"unknown value": {
			expression: `seamark_agent_probes_total{result="timed_out"}`,
			want:       `result="timed_out" matches none of the values [error failure success timeout] of seamark_agent_probes_total`,
		},
		"grouped by an unknown label": {
			expression: `sum by (marker) (seamark_agent_probes_total)`, want: `none of its metrics has the label "marker"`,
		},
		"joined on an unknown label": {
			expression: `seamark_agent_probes_total and on (node) seamark_agent_planned_probes`, want: `none of its metrics has the label "node"`,
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
