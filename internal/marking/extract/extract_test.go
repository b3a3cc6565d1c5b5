// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package extract_test

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/extract"
	"github.com/seamark-dev/seamark/test/expect"
)

func from(key, path string, allowed ...string) *v1alpha1.ValueSource {
	return &v1alpha1.ValueSource{Key: key, JSONPath: path, AllowedValues: allowed}
}

const message = `{"role":"primary","players":12,"big":12345678,"half":0.5,"up":true,"none":null,"list":[{"name":"a b"}],"a.b/c":"d"}`

func TestLabel(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		from    *v1alpha1.ValueSource
		want    string
		reason  extract.Reason
	}{
		"first line":              {message: "  dust \r\nmore", from: from("map", ""), want: "dust"},
		"nothing":                 {message: " \n ", from: from("map", ""), reason: extract.Missing},
		"not a label value":       {message: "de dust", from: from("map", ""), reason: extract.Invalid},
		"too long":                {message: strings.Repeat("a", 64), from: from("map", ""), reason: extract.Invalid},
		"truncated":               {message: "dus" + extract.Cut, from: from("map", ""), reason: extract.Invalid},
		"allowed":                 {message: "dust", from: from("map", "", "dust", "mill"), want: "dust"},
		"not allowed":             {message: "Dust", from: from("map", "", "dust", "mill"), reason: extract.NotAllowed},
		"string":                  {message: message, from: from("role", ".role"), want: "primary"},
		"integer":                 {message: message, from: from("players", ".players"), want: "12"},
		"large integer":           {message: message, from: from("players", ".big"), want: "12345678"},
		"decimal":                 {message: message, from: from("players", ".half"), want: "0.5"},
		"boolean":                 {message: message, from: from("up", ".up"), want: "true"},
		"quoted field":            {message: message, from: from("up", "['a.b/c']"), want: "d"},
		"index":                   {message: message, from: from("up", ".list[0].name"), reason: extract.Invalid},
		"index that is missing":   {message: message, from: from("up", ".list[1].name"), reason: extract.Missing},
		"field that is missing":   {message: message, from: from("up", ".color"), reason: extract.Missing},
		"field of a string":       {message: message, from: from("up", ".role.color"), reason: extract.Missing},
		"null":                    {message: message, from: from("up", ".none"), reason: extract.NotScalar},
		"object":                  {message: message, from: from("up", ".list[0]"), reason: extract.NotScalar},
		"JSON and standard error": {message: message + "\nwarning: slow", from: from("role", ".role"), want: "primary"},
		"before a truncation":     {message: message[:40], from: from("role", ".role"), want: "primary"},
		"after a truncation":      {message: message[:40], from: from("half", ".half"), reason: extract.Truncated},
		"marked as truncated":     {message: message[:15] + extract.Cut, from: from("role", ".role"), reason: extract.Truncated},
		"not JSON":                {message: "primary", from: from("role", ".role"), reason: extract.NotJSON},
		"broken JSON":             {message: "{role: primary}", from: from("role", ".role"), reason: extract.NotJSON},
		"a number is no object":   {message: "12", from: from("role", ".role"), reason: extract.NotJSON},
	} {
		t.Run(name, func(t *testing.T) {
			got, refusal := extract.Label(tc.message, tc.from)
			if got != tc.want || reasonOf(refusal) != tc.reason {
				t.Errorf("value %q, refusal %v; want %q, %s", got, refusal, tc.want, tc.reason)
			}
		})
	}
}

// Wherever a message is truncated, a value is the one of the whole message, or is missing.
func TestTruncatedAnywhere(t *testing.T) {
	for _, path := range []string{".role", ".players", ".big", ".half", ".up", ".none", ".list[0].name", "['a.b/c']"} {
		whole, _ := extract.Annotation(message, from("value", path))
		for end := range message {
			for _, cut := range []string{"", extract.Cut} {
				got, refusal := extract.Annotation(message[:end]+cut, from("value", path))
				if refusal == nil && got != whole || refusal != nil && refusal.Reason != extract.Truncated && end > 0 && path != ".none" {
					t.Errorf("%s of %s: value %q, refusal %v; want %q or %s", path, message[:end]+cut, got, refusal, whole, extract.Truncated)
				}
			}
		}
	}
}

func reasonOf(refusal *extract.Refusal) extract.Reason {
	if refusal == nil {
		return ""
	}
	return refusal.Reason
}

func TestAnnotation(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		from    *v1alpha1.ValueSource
		want    string
		reason  extract.Reason
	}{
		"any text":                  {message: "de dust: 12 of 16", from: from("says", ""), want: "de dust: 12 of 16"},
		"too long":                  {message: strings.Repeat("a", 257), from: from("says", ""), reason: extract.Invalid},
		"truncated":                 {message: "de du" + extract.Cut, from: from("says", ""), reason: extract.Truncated},
		"deletion cost":             {message: message, from: from(corev1.PodDeletionCost, ".players"), want: "12"},
		"negative deletion cost":    {message: "-2147483648", from: from(corev1.PodDeletionCost, ""), want: "-2147483648"},
		"deletion cost is too high": {message: "2147483648", from: from(corev1.PodDeletionCost, ""), reason: extract.Invalid},
		"deletion cost with zeros":  {message: "012", from: from(corev1.PodDeletionCost, ""), reason: extract.Invalid},
		"deletion cost is a name":   {message: message, from: from(corev1.PodDeletionCost, ".role"), reason: extract.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			got, refusal := extract.Annotation(tc.message, tc.from)
			if got != tc.want || reasonOf(refusal) != tc.reason {
				t.Errorf("value %q, refusal %v; want %q, %s", got, refusal, tc.want, tc.reason)
			}
		})
	}
}

// The details of refusals are in conditions and events: they have one short line of ASCII.
func TestDetailIsSafe(t *testing.T) {
	_, refusal := extract.Label("\x1b[31m\u202e"+strings.Repeat("x", 500), from("map", ""))
	if want := `"\x1b[31m\u202e` + strings.Repeat("x", 40) + `"... is not a label value`; !strings.HasPrefix(refusal.Detail, want) {
		t.Errorf("detail %s, want the prefix %s", refusal.Detail, want)
	}
}

func TestSame(t *testing.T) {
	watched := extract.Watched([]v1alpha1.ProbeMarkerPolicy{{
		State:           v1alpha1.ProbeSucceeded,
		LabelsFrom:      []v1alpha1.ValueSource{*from("role", ".role", "primary", "secondary")},
		AnnotationsFrom: []v1alpha1.ValueSource{*from("players", ".players")},
	}})
	const primary = `{"role":"primary","players":1}`
	for name, tc := range map[string]struct {
		state v1alpha1.ProbeState
		other string
		want  bool
	}{
		"free value":        {v1alpha1.ProbeSucceeded, `{"role":"primary","players":2}`, true},
		"allowed value":     {v1alpha1.ProbeSucceeded, `{"role":"secondary","players":1}`, false},
		"value that is not": {v1alpha1.ProbeSucceeded, `{"role":"leader","players":1}`, false},
		"no value":          {v1alpha1.ProbeSucceeded, `{"players":1}`, false},
		"another state":     {v1alpha1.ProbeFailed, `{"role":"secondary","players":1}`, true},
	} {
		expect.Equal(t, name, tc.want, extract.SameValues(watched, tc.state, primary, tc.other))
	}
	if !extract.SameValues(watched, v1alpha1.ProbeSucceeded, "no JSON", `{"role":"leader"}`) {
		t.Error("two messages without an allowed value differ")
	}
	expect.Equal(t, "watched values", 2, len(watched))
}

// No message leads to a label or annotation that the API server refuses, or to a panic.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{
		message, message[:40], "primary", "", "{", "[[[[", `{"a":1e400}`, `{"a":"\ud800"}`, "\xff\x00", `{"a":-0}`, `[{"a":9223372036854775808}]`,
	} {
		f.Add(seed, ".a")
		f.Add(seed, "")
		f.Add(seed, "[0].a")
		f.Add(seed, "['role']")
	}
	f.Fuzz(func(t *testing.T, message, path string) {
		if label, refusal := extract.Label(message, from("key", path)); refusal == nil {
			if errs := validation.IsValidLabelValue(label); len(errs) > 0 {
				t.Errorf("label %q: %v", label, errs)
			}
		} else if label != "" || refusal.Detail == "" || len(refusal.Detail) > 512 {
			t.Errorf("label %q, refusal of %d bytes", label, len(refusal.Detail))
		}
		if text, refusal := extract.Annotation(message, from("key", path)); refusal == nil && len(text) > extract.MaxAnnotationBytes {
			t.Errorf("annotation of %d bytes", len(text))
		}
		if cost, refusal := extract.Annotation(message, from(corev1.PodDeletionCost, path)); refusal == nil && !extract.IsDeletionCost(cost) {
			t.Errorf("deletion cost %q", cost)
		}
	})
}

func TestTerm(t *testing.T) {
	for message, want := range map[string]string{
		`{"term":7}`:                      "7",
		`{"term":"-3"} on standard error`: "-3",
		`{"term":9223372036854775807}`:    "9223372036854775807",
		`{"term":9223372036854775808}`:    "Invalid",
		`{"term":1.5}`:                    "Invalid",
		`{"term":"seven"}`:                "Invalid",
		`{"term":true}`:                   "Invalid",
		`{"term":null}`:                   "NotScalar",
		`{"role":"primary"}`:              "Missing",
		`{"term":7`:                       "Truncated",
		`{"term":7…`:                      "Truncated",
		`{"term":7 `:                      "Truncated",
		`{"term":7,`:                      "7",
		`{"term":7,"members":[{"id":12`:   "7",
		`{"a":{"term":1},"b":[1,{"term`:   "Truncated",
		`{"a":[],"term":8,"b":{"term":9`:  "8",
		`{"term":"7…`:                     "Truncated",
		`{"term":}`:                       "NotJSON",
		`7`:                               "NotJSON",
	} {
		term, refusal := extract.Integer(message, ".term")
		got := strconv.FormatInt(term, 10)
		if refusal != nil {
			got = string(refusal.Reason)
		}
		expect.Equal(t, message, want, got)
	}
}
