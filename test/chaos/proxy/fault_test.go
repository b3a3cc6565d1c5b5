// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault Fault
		// want is a part of the error, empty if there is none.
		want string
	}{
		"down":                     {Fault{Kind: Down}, ""},
		"one program":              {Fault{Kind: Down, Match: Match{Clients: []string{"agent-1"}}}, ""},
		"name of a client":         {Fault{Kind: Down, Match: Match{Clients: []string{"node.1"}}}, `client "node.1"`},
		"kind":                     {Fault{Kind: "Up"}, `kind "Up": must be one of`},
		"delay":                    {Fault{Kind: Delay, Delay: time.Second}, ""},
		"delay without a duration": {Fault{Kind: DelayWatches}, "delay 0s: DelayWatches requires one"},
		"long delay":               {Fault{Kind: Delay, Delay: time.Hour}, "delay 1h0m0s of Delay: must be between 0 and 10m0s"},
		"delay of another":         {Fault{Kind: EndWatches, Delay: 1}, "delay 1ns of EndWatches"},
		"after":                    {Fault{Kind: EndWatches, After: time.Second}, ""},
		"negative after":           {Fault{Kind: EndWatches, After: -1}, "after -1ns of EndWatches"},
		"refuse":                   {Fault{Kind: Refuse, Code: 429, RetryAfter: 1}, ""},
		"refuse without a code":    {Fault{Kind: Refuse}, "code 0: Refuse allows [429 500 503]"},
		"code of another":          {Fault{Kind: Down, Code: 500}, "code 500: Down allows [0]"},
		"retry after 500":          {Fault{Kind: Refuse, Code: 500, RetryAfter: 1}, "retry after 1 s"},
		"verb":                     {Fault{Kind: Down, Match: Match{Verbs: []string{"PUT"}}}, `verb "PUT"`},
		"empty user agent":         {Fault{Kind: Down, Match: Match{UserAgents: []string{""}}}, "userAgents"},
		"many resources":           {Fault{Kind: Down, Match: Match{Resources: strings.Split(strings.Repeat("a", 65), "")}}, "resources"},
		"one in less than none":    {Fault{Kind: Down, Match: Match{OneIn: -1}}, "one in -1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := validate([]Fault{tc.fault})
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if err := validate(make([]Fault, maxFaults+1)); err == nil {
		t.Error("too many faults are allowed")
	}
}

func TestNewRequest(t *testing.T) {
	t.Parallel()
	coordination := schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}
	v1 := schema.GroupVersion{Version: "v1"}
	for target, want := range map[string]request{
		"GET " + pods:                 {verb: "list", resource: "pods", qualified: "pods", version: v1},
		"GET " + pods + "/a":          {verb: "get", resource: "pods", qualified: "pods", version: v1},
		"PATCH " + pods + "/a/status": {verb: "patch", resource: "pods/status", qualified: "pods/status", version: v1},
		"PUT " + leases + "/a":        {verb: "update", resource: "leases", qualified: "leases.coordination.k8s.io", version: coordination},
		"DELETE " + leases: {
			verb: "deletecollection", resource: "leases", qualified: "leases.coordination.k8s.io", version: coordination,
		},
		"GET " + pods + "?watch=true&resourceVersion=7":   {verb: "watch", resource: "pods", qualified: "pods", version: v1, old: true},
		"GET " + pods + "?watch=1&sendInitialEvents=true": {verb: "watch", resource: "pods", qualified: "pods", version: v1},
		"GET " + pods + "?resourceVersion=0":              {verb: "list", resource: "pods", qualified: "pods", version: v1},
		"GET " + pods + "?continue=x":                     {verb: "list", resource: "pods", qualified: "pods", version: v1, old: true},
		"GET /readyz":                                     {verb: "get"},
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews": {
			verb: "create", resource: "subjectaccessreviews", qualified: "subjectaccessreviews.authorization.k8s.io",
			version: schema.GroupVersion{Group: "authorization.k8s.io", Version: "v1"},
		},
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			method, path, _ := strings.Cut(target, " ")
			r := httptest.NewRequest(method, path, nil)
			r.Header.Set("User-Agent", "agent/v1")
			want.client, want.userAgent = "agent", "agent/v1"
			got, err := newRequest("agent", r)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{})); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	r := request{client: "agent-1", userAgent: "seamark-agent/v1", verb: "update", resource: "leases/status", qualified: "leases.coordination.k8s.io/status"}
	for name, tc := range map[string]struct {
		match Match
		want  bool
	}{
		"all":            {Match{}, true},
		"client":         {Match{Clients: []string{"x", "agent-1"}}, true},
		"another client": {Match{Clients: []string{"agent"}}, false},
		"program":        {Match{UserAgents: []string{"seamark-agent/"}}, true},
		"another":        {Match{UserAgents: []string{"seamark-manager/"}}, false},
		"verb":           {Match{Verbs: []string{"update"}}, true},
		"another verb":   {Match{Verbs: []string{"patch"}}, false},
		"resource":       {Match{Resources: []string{"leases/status"}}, true},
		"group":          {Match{Resources: []string{"leases.coordination.k8s.io/status"}}, true},
		"the object":     {Match{Resources: []string{"leases"}}, false},
		"one of two":     {Match{Clients: []string{"agent-1"}, Verbs: []string{"get"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.match.matches(r); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestHits checks which requests a fault without limits hits.
func TestHits(t *testing.T) {
	t.Parallel()
	read, list, write, watch := request{verb: "list"}, request{verb: "list", old: true}, request{verb: "patch"}, request{verb: "watch"}
	for kind, want := range map[Kind][]request{
		Down: {read, list, write, watch}, Delay: {read, list, write, watch}, Refuse: {read, list, write, watch},
		LoseResponse: {write}, CutWatches: {watch}, EndWatches: {watch}, DelayWatches: {watch}, Expire: {list, watch},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var got []request
			for _, r := range []request{read, list, write, watch} {
				if (&active{Fault: Fault{Kind: kind}}).hits(r) {
					got = append(got, r)
				}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestChosen checks the share of the requests that are hit, and that it depends only on the seed.
func TestChosen(t *testing.T) {
	t.Parallel()
	pick := func(seed uint64) (out []uint64) {
		for n := range uint64(3000) {
			if chosen(seed, n, 3) {
				out = append(out, n)
			}
		}
		return out
	}
	one := pick(1)
	if len(one) < 900 || len(one) > 1100 {
		t.Errorf("%d of 3000 are chosen", len(one))
	}
	if !cmp.Equal(one, pick(1)) || cmp.Equal(one, pick(2)) {
		t.Error("the choice does not depend on the seed alone")
	}
	if !chosen(1, 1, 0) || !chosen(1, 1, 1) {
		t.Error("not all are chosen without a share")
	}
}
