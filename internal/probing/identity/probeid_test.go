// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestSamePlan(t *testing.T) {
	cases := map[string]struct {
		a, b string
		want bool
	}{
		"equal":                {"1", "1", true},
		"different":            {"1", "2", false},
		"report of OpenKruise": {"1", "", true},
		"plan of OpenKruise":   {"", "1", true},
		"both of OpenKruise":   {"", "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, fmt.Sprintf("SamePlan(%q, %q)", tc.a, tc.b), tc.want, identity.SamePlan(tc.a, tc.b))
		})
	}
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		in      string
		want    identity.ID
		wantErr bool
	}{
		"two names":      {in: "web#idle", want: identity.ID{Marker: "web", Probe: "idle"}},
		"dotted marker":  {in: "my.web#idle", want: identity.ID{Marker: "my.web", Probe: "idle"}},
		"no separator":   {in: "idle", wantErr: true},
		"no marker":      {in: "#idle", wantErr: true},
		"no probe":       {in: "web#", wantErr: true},
		"two separators": {in: "web#idle#2", wantErr: true},
		"empty":          {in: "", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := identity.Parse(tc.in)
			if (err != nil) != tc.wantErr {
				t.Fatalf("Parse(%q): error = %v, want error: %t", tc.in, err, tc.wantErr)
			}
			expect.Equal(t, fmt.Sprintf("Parse(%q)", tc.in), tc.want, got)
		})
	}
}

func TestParseSelection(t *testing.T) {
	const invalid = `%q is invalid: must be MARKER or MARKER#PROBE`
	cases := map[string]struct {
		in   string
		want identity.ID
		err  string
	}{
		"all":                  {in: ""},
		"marker":               {in: "my.web", want: identity.ID{Marker: "my.web"}},
		"probe":                {in: "web#idle", want: identity.ID{Marker: "web", Probe: "idle"}},
		"slash":                {in: "web/idle", err: invalid},
		"probe with a slash":   {in: "web#a/b", want: identity.ID{Marker: "web", Probe: "a/b"}},
		"no probe":             {in: "web#", err: invalid},
		"no probe after slash": {in: "web/", err: invalid},
		"no marker":            {in: "#idle", err: invalid},
		"two separators":       {in: "web#idle#2", err: invalid},
		"two slashes":          {in: "web/idle/2", err: invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := identity.ParseSelection(tc.in)
			if err != nil && err.Error() != fmt.Sprintf(tc.err, tc.in) || err == nil && tc.err != "" {
				t.Errorf("ParseSelection(%q): error = %v, want %q", tc.in, err, tc.err)
			}
			expect.Equal(t, fmt.Sprintf("ParseSelection(%q)", tc.in), tc.want, got)
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"web#idle", "web", "#", "a#b#c", "a#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := identity.Parse(s)
		if err == nil && id.String() != s {
			t.Errorf("Parse(%q).String() = %q", s, id.String())
		}
	})
}

// FuzzString checks that Parse accepts the wire form of valid names and rejects all others.
func FuzzString(f *testing.F) {
	for _, seed := range [][2]string{{"web", "idle"}, {"my.web", "idle"}, {"", "a"}, {"a", ""}, {"a#b", "c"}, {"a", "b#c"}, {"#", "#"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, marker, probe string) {
		id := identity.ID{Marker: marker, Probe: probe}
		valid := marker != "" && probe != "" && !strings.Contains(marker+probe, "#")
		got, err := identity.Parse(id.String())
		if (err == nil) != valid || valid && got != id {
			t.Errorf("Parse(%q) = %+v, %v, want %+v, valid: %t", id.String(), got, err, id, valid)
		}
	})
}
