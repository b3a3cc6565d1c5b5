// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/internal/program/inbox"
	"github.com/seamark-dev/seamark/test/expect"
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
			l := &loop{Runner: &Runner{inbox: inbox.New(time.Now)}, lines: make(chan struct{}, maxPendingLines)}
			p := newPod(&corev1.Pod{}, "node", lifecycle.CrashLoop{})
			w := l.writer(p, "main", "stdout")
			for _, text := range test.writes {
				if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
					t.Fatalf("wrote %d: %v", n, err)
				}
			}
			expect.NoError(t, w.Close())
			l.inbox.Deliver()
			var got []string
			for _, change := range p.logs {
				got = append(got, change.Log.Text)
			}
			expect.Equal(t, "lines", test.want, got)
		})
	}
}

func TestLastLinesAreKept(t *testing.T) {
	l, p := &loop{}, newPod(&corev1.Pod{}, "node", lifecycle.CrashLoop{})
	for i := range maxLogs + 3 {
		l.addLine(time.Time{}, p, "main", LogLine{Text: fmt.Sprint(i)})
	}
	if len(p.logs) != maxLogs || p.logs[0].Log.Text != "3" || p.logs[maxLogs-1].Log.Text != fmt.Sprint(maxLogs+2) {
		t.Errorf("%d lines from %s to %s", len(p.logs), p.logs[0].Log.Text, p.logs[len(p.logs)-1].Log.Text)
	}
}

func TestPlainText(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"plain":     {"no such file: [1]", "no such file: [1]"},
		"colors":    {"\x1b[1;31merror\x1b[0m: x", "error: x"},
		"true":      {"\x1b[38;2;1;2;3mred", "red"},
		"title":     {"\x1b]0;title\x07x", "x"},
		"link":      {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		"other":     {"\x1b(Bx\x1b7y", "xy"},
		"only code": {"\x1b[0m", ""},
		"long":      {strings.Repeat("x", 5000), strings.Repeat("x", 4096)},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "plainText", test.want, plainText(test.line))
		})
	}
}

func TestReasonFirst(t *testing.T) {
	for name, test := range map[string]struct {
		handler   probing.Handler
		err, want string
	}{
		"missing program": {
			probing.HandlerExec, "run command in container 1-main-0: start nope: no such program in PATH", "no such program in PATH (start nope)",
		},
		"ended container": {probing.HandlerExec, "run command in container 1-main-0: run sh: container main ended", "container main ended (run sh)"},
		"only the cause":  {probing.HandlerExec, "run command in container 1-main-0: cancelled", "cancelled"},
		"no context":      {probing.HandlerExec, "cancelled", "cancelled"},
		"network probe":   {probing.HandlerHTTP, "get http://a: b", "get http://a: b"},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "reasonFirst", test.want, reasonFirst(worker.Run{Handler: test.handler, Err: errors.New(test.err)}))
		})
	}
}
