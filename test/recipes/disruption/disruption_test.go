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
| etcd | the recipe: and a guard and a hand-over | 1 | 1 / 1 | 0 / 0 | 0 / 0 | 0 of 800 | 50 / 50 |
| redis | StatefulSet of Kubernetes | 2 | 2.5 / 3 | 16 / 20 | 8.5 / 9 | 4 of 1300 | 40.5 / 41 |
| redis | the recipe: and a guard and a hand-over | 1 | 1 / 1 | 0.6 / 0.6 | 1 / 1 | 0 of 900 | 61 / 61 |
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

// New runs of a program and a variant replace earlier ones.
func TestResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	for _, run := range runs() {
		r, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		r.Add(run.Program, run.Variant, []Run{run})
		if err := r.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	saved, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	all := runs()
	want := Results{Runs: []Run{all[0], all[2], all[3]}}
	if diff := cmp.Diff(want, saved); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}
