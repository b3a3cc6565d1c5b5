// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/cli/timeline/chart"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/test/expect"
)

func timeline() chart.Timeline {
	start := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	at := func(m int) time.Time { return start.Add(time.Duration(m) * time.Minute) }
	return chart.Timeline{Namespace: "game", Pod: "game-0", Start: start, End: at(60), Lines: []history.Line{
		{Marker: "server", Probe: "idle", Spans: []history.Span{
			{Start: at(0), End: at(10), Phase: history.NotKnown},
			{Start: at(10), End: at(30), Phase: history.Succeeded, Message: "idle"},
			{Start: at(30), End: at(40), Phase: history.Changing},
			{Start: at(40), End: at(60), Phase: history.Failed, Message: "<busy>\nwith a match"},
		}},
		{
			Marker: "server-with-a-very-long-name-that-takes-room", Probe: "healthy", Problem: &probestatus.Problem{Reason: "CannotRun", Message: "no program"},
			Spans: []history.Span{
				{Start: at(0), End: at(20), Phase: history.Unknown}, {Start: at(20), End: at(60), Phase: history.Error, Message: "no program"},
			},
		},
	}}
}

// TestCharts compares each chart with the file in testdata that has its name.
func TestCharts(t *testing.T) {
	for name, draw := range map[string]func(io.Writer) error{
		"ascii.txt":  func(w io.Writer) error { return timeline().Text(w, chart.Style{Width: 100}) },
		"blocks.txt": func(w io.Writer) error { return timeline().Text(w, chart.Style{Width: 70, Blocks: true}) },
		"narrow.txt": func(w io.Writer) error { return timeline().Text(w, chart.Style{Width: 10}) },
		"colors.txt": func(w io.Writer) error {
			return timeline().Text(w, chart.Style{Width: 80, Blocks: true, Colors: true})
		},
		"timeline.svg": timeline().SVG,
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			expect.NoError(t, draw(&out))
			want, err := os.ReadFile("testdata/" + name)
			expect.NoError(t, err)
			expect.Equal(t, "chart", string(want), out.String())
		})
	}
}

// TestSVGIsWellFormed checks that names and messages cannot break the document.
func TestSVGIsWellFormed(t *testing.T) {
	var out bytes.Buffer
	expect.NoError(t, timeline().SVG(&out))
	if strings.Contains(out.String(), "<busy>") {
		t.Error("a message is not escaped")
	}
	decoder := xml.NewDecoder(&out)
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestMessagesAreSafe(t *testing.T) {
	hostile := timeline()
	for i := range hostile.Lines {
		hostile.Lines[i].Marker = texttest.Hostile
		hostile.Lines[i].Spans[0].Message = texttest.Hostile
	}
	hostile.Lines[1].Problem.Message = texttest.Hostile
	var plain, colored bytes.Buffer
	expect.NoError(t, errors.Join(hostile.Text(&plain, chart.Style{}), hostile.Text(&colored, chart.Style{Colors: true})))
	texttest.Check(t, plain.String())
	texttest.CheckColored(t, colored.String())
}
