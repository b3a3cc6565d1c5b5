// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// introduction is the text above the tables.
const introduction = `# Metrics

The programs serve their metrics at ` + "`/metrics`" + ` in Prometheus' text format: every manager and every
pod of ` + "`seamark-workloads`" + ` on port 8080, every agent on port 18357 of its node. No label contains the
name or UID of a pod or of a set, so the number of series grows with nodes and markers, but not with
pods and sets. An agent has about 250 series,
including those of its runtime. The leading manager has one series per node with a plan, four per
probe of a marker, and about 600 others.

Only the leader exports values that a program reads from its caches at a scrape, as the help texts
state. Queries need not know which pod leads: ` + "`sum`" + ` and ` + "`max`" + ` give the same result.

` + "`seamark_agent_info`" + ` contains the node of an agent. To add the node to another metric of the agent:

` + "```promql\nseamark_agent_exec_queue_length * on (instance) group_left (node) seamark_agent_info\n```" + `

## Scraping

With the Prometheus operator, the chart creates the monitors, the rules and the dashboard:

<!-- needs: cluster -->
<!-- not run: it needs the operator's CRDs -->
` + "```console" + `
$ helm upgrade seamark charts/seamark --namespace seamark-system --reset-then-reuse-values \
    --set monitoring.serviceMonitor.enabled=true,monitoring.podMonitor.enabled=true \
    --set monitoring.prometheusRule.enabled=true,monitoring.dashboard.enabled=true
` + "```" + `

Without the operator, scrape the port ` + "`metrics`" + ` of the pods with the label
` + "`app.kubernetes.io/name=seamark`" + `. Set ` + "`honor_labels: true`" + `, because the label ` + "`namespace`" + ` is the
namespace of a marker. Use ` + "`charts/seamark/files/alerts/seamark.yaml`" + ` as a rule file, and import
` + "`charts/seamark/files/dashboards/seamark.json`" + ` into Grafana. Each alert has a
[runbook](runbooks/README.md). The alerts require that all programs are scraped: an agent that is
not scraped counts as missing. They apply to one cluster: the Prometheus of each cluster must
evaluate them.

` + "`make generate`" + ` generates the tables from the code.
`

// librariesIntroduction is the text above the metrics of the manager's libraries.
const librariesIntroduction = `
These metrics of libraries also help to operate Seamark. The labels ` + "`controller`" + ` and ` + "`name`" + ` are
` + "`nodeprobe`" + ` (plans), ` + "`podmark`" + ` (marks), ` + "`marker`" + ` (the status of markers) and, with its feature gate,
` + "`serverless`" + ` (annotations for providers of virtual nodes).
`

// processIntroduction is the text above the metrics of the agent's process.
const processIntroduction = `
Metrics of the Go runtime and the process:
`

// workloadsIntroduction is the text above the metrics of the process of seamark-workloads.
const workloadsIntroduction = `
The metrics of the manager's libraries exist for this program, too. The labels ` + "`controller`" + ` and
` + "`name`" + ` are ` + "`cloneset`" + ` and ` + "`statefulset`" + `. Metrics of the Go runtime and the process:
`

// page returns the reference as Markdown.
func page(programs []Program) string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, program := range programs {
		fmt.Fprintf(&b, "\n## %s\n\n", program.Name)
		table(&b, program.Own)
		b.WriteString(program.Introduction)
		b.WriteString("\n")
		table(&b, program.Others)
	}
	return b.String()
}

func table(b *strings.Builder, metrics []Metric) {
	b.WriteString("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range metrics {
		help := m.Help
		if len(m.Buckets) > 0 {
			help += fmt.Sprintf(" Buckets from %s to %s.", number(m.Buckets[0]), number(m.Buckets[len(m.Buckets)-1]))
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels(m.Labels), help)
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 4, 64) }

func labels(all []Label) string {
	words := make([]string, 0, len(all))
	for _, label := range all {
		word := "`" + label.Name + "`"
		if len(label.Values) > 0 {
			word += ": " + strings.Join(label.Values, ", ")
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}
