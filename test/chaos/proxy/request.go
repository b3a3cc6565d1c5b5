// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// request is what a fault can match.
type request struct {
	client, userAgent string
	// verb is that of RBAC.
	verb string
	// resource is the plural name, and qualified has the group, too. Both have the subresource.
	resource, qualified string
	version             schema.GroupVersion
	// old is whether a list or watch asks for a version that the API server may no longer have.
	old bool
}

// newRequest parses the request of a client as the API server does.
func newRequest(client string, r *http.Request) (request, error) {
	factory := apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := factory.NewRequestInfo(r)
	if err != nil {
		return request{}, fmt.Errorf("parse request: %w", err)
	}
	out := request{
		client: client, userAgent: r.UserAgent(), verb: info.Verb, resource: info.Resource,
		version: schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion},
	}
	out.qualified = schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}.String()
	if info.Subresource != "" {
		out.resource += "/" + info.Subresource
		out.qualified += "/" + info.Subresource
	}
	query := r.URL.Query()
	version := query.Get("resourceVersion")
	out.old = version != "" && version != "0" || query.Get("continue") != ""
	return out, nil
}

// isWrite reports whether the request changes something, or asks for a review or token.
func (r request) isWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.verb)
}

// matches reports whether the request is within the limits, except for OneIn.
func (m Match) matches(r request) bool {
	return matches(m.Clients, func(s string) bool { return s == r.client }) &&
		matches(m.UserAgents, func(s string) bool { return strings.HasPrefix(r.userAgent, s) }) &&
		matches(m.Verbs, func(s string) bool { return s == r.verb }) &&
		matches(m.Resources, func(s string) bool { return s == r.resource || s == r.qualified })
}

func matches(list []string, is func(string) bool) bool {
	return len(list) == 0 || slices.ContainsFunc(list, is)
}

// ofConnections reports whether the limits concern whole connections.
func (m Match) ofConnections() bool {
	return len(m.UserAgents)+len(m.Verbs)+len(m.Resources) == 0 && m.OneIn <= 1
}

// active is a fault that is set.
type active struct {
	Fault
	seed  uint64
	since time.Time
	// seen counts the requests that matched.
	seen atomic.Uint64
}

// ofEvents reports whether the fault concerns the events of a watch and not the request. A watch expires
// with an event, even if it is a new one.
func (a *active) ofEvents(r request) bool {
	return slices.Contains([]Kind{CutWatches, EndWatches, DelayWatches}, a.Kind) || a.Kind == Expire && r.verb == "watch"
}

// hits reports whether the fault hits the request, and counts it if it matches.
func (a *active) hits(r request) bool {
	switch a.Kind {
	case LoseResponse:
		if !r.isWrite() {
			return false
		}
	case CutWatches, EndWatches, DelayWatches:
		if r.verb != "watch" {
			return false
		}
	case Expire:
		if r.verb != "watch" && (r.verb != "list" || !r.old) {
			return false
		}
	}
	return a.Match.matches(r) && chosen(a.seed, a.seen.Add(1), a.Match.OneIn)
}

// chosen reports whether the n-th request that matches a fault is one in so many.
func chosen(seed, n uint64, oneIn int) bool {
	return oneIn <= 1 || rand.New(rand.NewPCG(seed, n)).IntN(oneIn) == 0
}

// treatment is what happens to a request before the API server responds.
type treatment struct {
	down, lose, expire bool
	delay              time.Duration
	// refuse is nil if the request is not refused.
	refuse *Fault
}

// treat returns what happens to a request that arrives. See plan for what happens to a watch later.
func treat(faults []*active, r request) treatment {
	var out treatment
	for _, fault := range faults {
		if fault.ofEvents(r) || !fault.hits(r) {
			continue
		}
		switch fault.Kind {
		case Down:
			out.down = true
		case Delay:
			out.delay = max(out.delay, fault.Delay)
		case Refuse:
			out.refuse = &fault.Fault
		case LoseResponse:
			out.lose = true
		case Expire:
			out.expire = true
		}
	}
	return out
}
