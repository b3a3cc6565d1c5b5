// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// introduction stands above the tables.
const introduction = `# Metrics

Both programs serve their metrics at ` + "`/metrics`" + ` in Prometheus' text format: every manager on port 8080, every
agent on port 10357 of its node. No label holds the name or UID of a pod, so the number of series grows with
nodes and markers and never with pods: an agent has about 250, those of its runtime included; the leading manager
has one for each node with a plan, four for each probe of a marker, and some 600 besides.

What the manager reads from its caches at a scrape, the leader alone exports, as the help says. So no query
needs to know which of the managers leads: ` + "`sum`" + ` and ` + "`max`" + ` give the same.

` + "`seamark_agent_info`" + ` tells which node an agent serves. To see the node beside another metric of the agent:

` + "```promql\nseamark_agent_exec_queue_length * on (instance) group_left (node) seamark_agent_info\n```" + `

## Have them scraped

With the Prometheus operator, the chart makes what it needs:

<!-- needs: cluster -->
<!-- not run: it needs the operator's CRDs -->
` + "```console" + `
$ helm upgrade seamark charts/seamark --namespace seamark-system --reset-then-reuse-values \
    --set monitoring.serviceMonitor.enabled=true,monitoring.podMonitor.enabled=true \
    --set monitoring.prometheusRule.enabled=true,monitoring.dashboard.enabled=true
` + "```" + `

Without it, scrape the pods by their label ` + "`app.kubernetes.io/name=seamark`" + ` and their port ` + "`metrics`" + `, with
` + "`honor_labels: true`" + `, since the label ` + "`namespace`" + ` is that of a marker. Take
` + "`charts/seamark/files/alerts/seamark.yaml`" + ` as a rule file, and import ` + "`charts/seamark/files/dashboards/seamark.json`" + `
into Grafana. Each alert has a page in [runbooks](runbooks/README.md). The alerts rest on both programs being
scraped: an agent that nobody scrapes counts as missing. They speak of one cluster: have each cluster's
own Prometheus evaluate them.

The tables are generated from the code, by ` + "`make generate`" + `.
`

// othersIntroduction stands above the metrics of libraries.
const othersIntroduction = `
Of the metrics that its libraries make, these answer questions about Seamark. The controllers, in the labels
` + "`controller` and `name`" + `, are ` + "`nodeprobe`" + ` (plans), ` + "`podmark`" + ` (marks), ` + "`marker`" + ` (the status of markers) and, with its gate,
` + "`serverless`" + ` (what providers are told).
`

const agentOthersIntroduction = `
And of the Go runtime and the process:
`

// page writes the reference.
func page(programs []Program) string {
	var b strings.Builder
	b.WriteString(introduction)
	for i, program := range programs {
		fmt.Fprintf(&b, "\n## %s\n\n", program.Name)
		table(&b, program.Own)
		if i == 0 {
			b.WriteString(othersIntroduction)
		} else {
			b.WriteString(agentOthersIntroduction)
		}
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
