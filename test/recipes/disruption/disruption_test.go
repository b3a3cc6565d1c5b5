// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOutage(t *testing.T) {
	const pace = 50 * time.Millisecond
	start := time.Unix(0, 0)
	var times []time.Time
	for _, after := range []int{0, 50, 110, 400, 2450, 2500, 3000} {
		times = append(times, start.Add(time.Duration(after)*time.Millisecond))
	}
	if got, want := Outage(times, pace), 2450*time.Millisecond; got != want {
		t.Errorf("outage %s, want %s: gaps of 2050 ms and 500 ms", got, want)
	}
	if got := Outage(nil, pace); got != 0 {
		t.Errorf("outage without times %s, want 0", got)
	}
}

func runs() []Run {
	return []Run{
		{Program: "redis", Variant: Recipe, Elections: 1, Outage: 0.64, Total: 61.2, Failed: 1, Acked: 900},
		{Program: "redis", Variant: Plain, Elections: 2, Outage: 12, Total: 40, Failed: 8, Acked: 700, Lost: 3},
		{Program: "redis", Variant: Plain, Elections: 3, Outage: 20.04, Total: 41, Failed: 9, Acked: 600, Lost: 1},
		{Program: "etcd", Variant: Recipe, Elections: 1, Outage: 0, Total: 50, Acked: 800},
	}
}

func TestTable(t *testing.T) {
	want := `| program | upgrade | runs | elections | seconds without a write | failed writes | acknowledged writes that are lost | seconds in total |
| --- | --- | --- | --- | --- | --- | --- | --- |
| etcd | the recipe, with guard and hand-over | 1 | 1 / 1 | 0 / 0 | 0 / 0 | 0 of 800 | 50 / 50 |
| redis | StatefulSet of Kubernetes | 2 | 2.5 / 3 | 16 / 20 | 8.5 / 9 | 4 of 1300 | 40.5 / 41 |
| redis | the recipe, with guard and hand-over | 1 | 1 / 1 | 0.6 / 0.6 | 1 / 1 | 0 of 900 | 61 / 61 |
`
	if diff := cmp.Diff(want, Table(runs())); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestChart(t *testing.T) {
	chart := Chart(runs())
	decoder := xml.NewDecoder(strings.NewReader(chart))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{">16 s, 2.5 elections<", ">0.6 s, 1 election<", `width="430.0"`} {
		if !strings.Contains(chart, want) {
			t.Errorf("the chart lacks %s:\n%s", want, chart)
		}
	}
}

// The label moves after 12 s, and is lost by the first pod after 70 s.
func TestLabels(t *testing.T) {
	start := time.Unix(100, 0)
	after := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	type seen struct {
		pod string
		has bool
		at  int
	}
	for name, tc := range map[string]struct {
		seen []seen
		want Loss
	}{
		"it moves":         {[]seen{{"a", false, 11}, {"b", false, 11}, {"b", true, 12}}, Loss{Moved: 12}},
		"two have it":      {[]seen{{"a", true, 1}, {"b", true, 12}, {"b", true, 13}, {"a", false, 70}}, Loss{Moved: 12, Both: 58}},
		"two keep it":      {[]seen{{"b", true, 12}}, Loss{Moved: 12, Both: 78, Limited: true}},
		"two have it more": {[]seen{{"b", true, 12}, {"b", false, 13}, {"b", true, 20}, {"a", false, 25}}, Loss{Moved: 12, Both: 6}},
		"nobody gets it":   {[]seen{{"a", false, 40}}, Loss{Limited: true}},
	} {
		t.Run(name, func(t *testing.T) {
			labels := NewLabels("a", start)
			for _, s := range tc.seen {
				labels.See(s.pod, s.has, after(s.at))
			}
			tc.want.Program, tc.want.Marker, tc.want.Date = "redis", Stale, "1970-01-01"
			if diff := cmp.Diff(tc.want, labels.Loss("redis", Stale, after(90))); diff != "" {
				t.Errorf("loss (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLossTable(t *testing.T) {
	losses := []Loss{
		{Program: "redis", Marker: Neither, Moved: 12, Both: 100, Limited: true}, {Program: "redis", Marker: Exclusive, Moved: 14},
		{Program: "etcd", Marker: Stale, Moved: 4, Both: 70}, {Program: "etcd", Marker: Stale, Moved: 2, Both: 72.04},
	}
	want := `| program | marker | runs | seconds until another pod has the label | seconds with two labels |
| --- | --- | --- | --- | --- |
| etcd | ` + Stale + ` | 2 | 3 / 4 | 71 / 72 |
| redis | neither field | 1 | 12 / 12 | 100 / 100, and not over |
| redis | ` + Exclusive + ` | 1 | 14 / 14 | 0 / 0 |
`
	if diff := cmp.Diff(want, LossTable(losses)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// New runs of a program and a variant, or of servers, replace earlier ones.
func TestResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	for _, run := range runs() {
		r, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		r.Add(run.Program, run.Variant, []Run{run})
		r.AddGame(Game{Servers: "Deployment", Rollouts: run.Elections, Left: 5, Interrupted: 2})
		r.AddLosses(run.Program, Stale, []Loss{{Program: run.Program, Marker: Stale, Moved: run.Total}})
		if err := r.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	saved, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	all := runs()
	want := Results{
		Runs:   []Run{all[0], all[2], all[3]},
		Games:  []Game{{Servers: "Deployment", Rollouts: 1, Left: 5, Interrupted: 2}},
		Losses: []Loss{{Program: "redis", Marker: Stale, Moved: 41}, {Program: "etcd", Marker: Stale, Moved: 50}},
	}
	if diff := cmp.Diff(want, saved); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	table := `| servers | scale-ins | rollouts | drains | matches | interrupted matches |
| --- | --- | --- | --- | --- | --- |
| Deployment | 0 | 1 | 0 | 7 | 2 |
`
	if diff := cmp.Diff(table, GameTable(saved.Games)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
