// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/program/inbox"
)

func TestLineWriter(t *testing.T) {
	long := strings.Repeat("x", maxLineBytes)
	for name, test := range map[string]struct {
		writes []string
		want   []string
	}{
		"one write, many lines": {[]string{"a\nb\n\nc\n"}, []string{"a", "b", "", "c"}},
		"one line, many writes": {[]string{"a", "b", "c\n"}, []string{"abc"}},
		"no newline at end":     {[]string{"a\nb"}, []string{"a", "b"}},
		"carriage return":       {[]string{"a\r\n"}, []string{"a"}},
		"invalid UTF-8":         {[]string{"a\xffb\n"}, []string{"a\uFFFDb"}},
		"invalid at the limit":  {[]string{long[2:] + "\xff\xfe\n"}, []string{long[2:] + "\uFFFD"}},
		"long line":             {[]string{long, "yz\n", "next\n"}, []string{long, "next"}},
		"nothing":               {nil, nil},
		"empty line":            {[]string{"\n"}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			events := inbox.New(time.Now)
			p := newPod(&corev1.Pod{}, "node", lifecycle.CrashLoop{})
			w := newOutput(events, &changes{}).writer(p, "main", "stdout")
			for _, text := range test.writes {
				if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
					t.Fatalf("wrote %d: %v", n, err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			events.Deliver()
			var got []string
			for _, change := range p.logs.all() {
				got = append(got, change.Log.Text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogRingKeepsLastLines(t *testing.T) {
	var ring logRing
	for i := range maxLogs + 3 {
		ring.add(Change{Log: &LogLine{Text: fmt.Sprint(i)}})
	}
	all := ring.all()
	if len(all) != maxLogs || all[0].Log.Text != "3" || all[maxLogs-1].Log.Text != fmt.Sprint(maxLogs+2) {
		t.Errorf("%d lines from %s to %s", len(all), all[0].Log.Text, all[len(all)-1].Log.Text)
	}
}
