// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probing_test

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestHandlersCoverProbeHandler fails when core/v1 gains a handler that the table lacks.
func TestHandlersCoverProbeHandler(t *testing.T) {
	var fields []probing.Handler
	handlers := reflect.TypeFor[corev1.ProbeHandler]()
	for i := range handlers.NumField() {
		name, _, _ := strings.Cut(handlers.Field(i).Tag.Get("json"), ",")
		fields = append(fields, probing.Handler(name))

		var h corev1.ProbeHandler
		field := reflect.ValueOf(&h).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		got, err := probing.HandlerOf(&h)
		if err != nil || got != probing.Handler(name) {
			t.Errorf("HandlerOf(%s) = %q, %v, want %q", name, got, err, name)
		}
	}
	slices.Sort(fields)
	expect.Equal(t, "fields of core/v1 ProbeHandler (-Handlers +fields)", slices.Sorted(slices.Values(probing.Handlers())), fields)
}

func TestHandlerOfRequiresExactlyOne(t *testing.T) {
	cases := map[string]struct {
		handler corev1.ProbeHandler
		want    string
	}{
		"none": {want: "probe: must have exactly one of exec, httpGet, tcpSocket and grpc, has none"},
		"two": {
			handler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}, GRPC: &corev1.GRPCAction{}},
			want:    "probe: must have exactly one of exec, httpGet, tcpSocket and grpc, has exec and grpc",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := probing.HandlerOf(&tc.handler); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// named succeeds with its own name.
type named string

func (n named) Probe(context.Context, probing.Target) (probing.Outcome, error) {
	return probing.Outcome{Success: true, Message: string(n)}, nil
}

func TestSetUsesProberOfHandler(t *testing.T) {
	set := probing.Set{probing.HandlerExec: named("exec"), probing.HandlerTCP: named("tcp")}

	got, err := set.Probe(t.Context(), probing.Target{Handler: probing.HandlerTCP})
	expect.NoError(t, err)
	expect.Equal(t, "Probe()", probing.Outcome{Success: true, Message: "tcp"}, got)
	if _, err := set.Probe(t.Context(), probing.Target{Handler: probing.HandlerGRPC}); err == nil || !strings.Contains(err.Error(), "grpc") {
		t.Errorf("error = %v, want one that names grpc", err)
	}
}

// failing returns an error from its first runs. It calls began with the number of each run.
func failing(runs int, began func(n int)) proberFunc {
	n := 0
	return func(context.Context, probing.Target) (probing.Outcome, error) {
		n++
		began(n)
		if n <= runs {
			return probing.Outcome{}, fmt.Errorf("no result of run %d", n)
		}
		return probing.Outcome{Success: true}, nil
	}
}

type proberFunc func(context.Context, probing.Target) (probing.Outcome, error)

func (p proberFunc) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	return p(ctx, target)
}

func TestSetRetriesErrors(t *testing.T) {
	cases := map[string]struct {
		failures, cancelAt int
		wantRuns           int
		wantErr            string
	}{
		"result of first run":  {failures: 0, wantRuns: 1},
		"result of second run": {failures: 1, wantRuns: 2},
		"result of third run":  {failures: 2, wantRuns: 3},
		"no result":            {failures: 3, wantRuns: 3, wantErr: "no result of run 3"},
		"context ended":        {failures: 3, cancelAt: 1, wantRuns: 1, wantErr: "no result of run 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			runs := 0
			set := probing.Set{probing.HandlerTCP: failing(tc.failures, func(n int) {
				runs = n
				if n == tc.cancelAt {
					cancel()
				}
			})}
			again := 0
			got, err := set.Probe(ctx, probing.Target{Handler: probing.HandlerTCP, Again: func(bool) { again++ }})
			expect.Equal(t, fmt.Sprintf("calls of Again() in %d runs", tc.wantRuns), tc.wantRuns-1, again)
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			if runs != tc.wantRuns || gotErr != tc.wantErr || got.Success != (tc.wantErr == "") {
				t.Errorf("Probe() = %+v, %q after %d runs, want error %q after %d", got, gotErr, runs, tc.wantErr, tc.wantRuns)
			}
		})
	}
}

func TestMessage(t *testing.T) {
	long := strings.Repeat("a", 100<<10)
	cases := map[string]struct {
		parts []string
		want  string
	}{
		"no parts":                 {parts: nil, want: ""},
		"one line":                 {parts: []string{"idle\n"}, want: "idle"},
		"white space around":       {parts: []string{" \t\r\n idle now \u00a0\n"}, want: "idle now"},
		"two streams":              {parts: []string{"out\n", "err\n"}, want: "out\nerr"},
		"only the second":          {parts: []string{" \n", "err"}, want: "err"},
		"inner white space stays":  {parts: []string{"a\n\n  b\n"}, want: "a\n\n  b"},
		"invalid UTF-8":            {parts: []string{"a\xff\xfeb"}, want: "a\ufffd\ufffdb"},
		"incomplete rune at end":   {parts: []string{"a\xe2\x82"}, want: "a\ufffd\ufffd"},
		"exactly the limit":        {parts: []string{long[:1024]}, want: long[:1024]},
		"one byte too long":        {parts: []string{long[:1025]}, want: long[:1024]},
		"100 KiB":                  {parts: []string{long}, want: long[:1024]},
		"rune across the limit":    {parts: []string{long[:1023] + "é"}, want: long[:1023]},
		"rune that just fits":      {parts: []string{long[:1022] + "éx"}, want: long[:1022] + "é"},
		"white space at the limit": {parts: []string{long[:1020] + "      x"}, want: long[:1020]},
		"long first, short second": {parts: []string{long, "boom"}, want: long[:1019] + "\nboom"},
		"short first, long second": {parts: []string{"ok", long}, want: "ok\n" + long[:1021]},
		"both long":                {parts: []string{long, strings.Repeat("b", 2000)}, want: long[:511] + "\n" + strings.Repeat("b", 512)},
		"only invalid UTF-8":       {parts: []string{strings.Repeat("\xff", 2000)}, want: strings.Repeat("\ufffd", 341)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parts := make([][]byte, 0, len(tc.parts))
			for _, part := range tc.parts {
				parts = append(parts, []byte(part))
			}
			got := probing.Message(parts...)
			expect.Equal(t, "Message()", tc.want, got)
		})
	}
}

func TestMessageOfManyParts(t *testing.T) {
	parts := make([][]byte, 2000)
	for i := range parts {
		parts[i] = []byte("x")
	}
	if got := probing.Message(parts...); len(got) > probing.MaxMessageBytes {
		t.Errorf("Message() has %d bytes, want at most %d", len(got), probing.MaxMessageBytes)
	}
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte("idle\n"), []byte(""))
	f.Add([]byte("a\xff\xfe"), []byte("\xe2\x82"))
	f.Add(bytes.Repeat([]byte("é"), 600), bytes.Repeat([]byte(" "), 2000))
	f.Add(bytes.Repeat([]byte("\xf0\x9f\x98\x80"), 300), []byte("boom"))
	f.Add([]byte("\x00\u2028x\u3000"), bytes.Repeat([]byte("b"), 1023))
	f.Fuzz(func(t *testing.T, stdout, stderr []byte) {
		got := probing.Message(stdout, stderr)
		if !utf8.ValidString(got) {
			t.Errorf("Message() = %q, invalid UTF-8", got)
		}
		if len(got) > probing.MaxMessageBytes {
			t.Errorf("Message() has %d bytes, want at most %d", len(got), probing.MaxMessageBytes)
		}
		expect.Equal(t, "Message() without white space around it", strings.TrimSpace(got), got)
		expect.Equal(t, "Message() of its result", got, probing.Message([]byte(got)))
		if err := bytes.TrimSpace(stderr); len(err) > 0 && len(err) < 500 && utf8.Valid(err) && !strings.HasSuffix(got, string(err)) {
			t.Errorf("Message() = %q, does not contain stderr %q", got, err)
		}
	})
}
