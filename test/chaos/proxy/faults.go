// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Count says how often a fault was injected.
type Count struct {
	// Hits is the number of requests that the fault hit, each counted once: delayed, refused, answered
	// with 410, lost, or whose watch was cut, ended, expired or had an event delayed. A request that
	// matches a fault but that the fault does not hit, such as a watch without events, is not counted.
	// Down counts connections if it concerns whole connections.
	Hits int
	// Interrupted is the number of other requests that were running on connections that the fault
	// reset.
	Interrupted int
}

// faults are the faults that are set, and how often they were injected. It is for concurrent use.
type faults struct {
	seed  uint64
	state atomic.Pointer[state]

	mu     sync.Mutex
	sets   uint64
	counts map[Kind]Count
}

// state is a set of faults. Only the counters in it change.
type state struct {
	faults []*active
	// replaced is closed when other faults are set.
	replaced chan struct{}
}

func newFaults(seed uint64) *faults {
	f := &faults{seed: seed, counts: map[Kind]Count{}}
	f.state.Store(&state{replaced: make(chan struct{})})
	return f
}

// set replaces the faults. Each gets a seed of its own.
func (f *faults) set(list []Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := &state{replaced: make(chan struct{})}
	for _, fault := range list {
		f.sets++
		next.faults = append(next.faults, &active{Fault: fault, seed: f.seed + f.sets<<32, since: time.Now()})
	}
	close(f.state.Swap(next).replaced)
}

// downs reports whether all connections of the client are down.
func (f *faults) downs(client string) bool {
	for _, fault := range f.state.Load().faults {
		if fault.Kind == Down && fault.Match.ofConnections() && fault.Match.matches(request{client: client}) {
			return true
		}
	}
	return false
}

// count adds a hit of the kind, which interrupted other requests.
func (f *faults) count(kind Kind, interrupted int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := f.counts[kind]
	count.Hits++
	count.Interrupted += interrupted
	f.counts[kind] = count
}

// Kind is a kind of fault.
type Kind string

// The kinds of faults. A fault counts as injected when a client can see it: see [Count].
const (
	// Down resets connections. If Match limits at most the clients, existing connections are reset
	// at once, and new ones before they carry a request. Otherwise, a request that matches resets
	// its connection before the request is forwarded.
	Down Kind = "Down"
	// Delay forwards a request only after Fault.Delay. Watches that run are not delayed.
	Delay Kind = "Delay"
	// Refuse answers a request with Fault.Code and does not forward it.
	Refuse Kind = "Refuse"
	// LoseResponse forwards a write and resets the connection when the API server has executed it.
	// Responses to writes that fail are not lost, nor are responses to reads.
	LoseResponse Kind = "LoseResponse"
	// CutWatches resets the connection of a watch after half of its next event. A watch without events
	// is not cut.
	CutWatches Kind = "CutWatches"
	// EndWatches ends a watch between two events, without an error.
	EndWatches Kind = "EndWatches"
	// DelayWatches delivers each event of a watch Fault.Delay after it arrived, in order. Events that
	// wait when the fault is removed are delivered at once. A watch that holds more than
	// Options.WatchBuffer ends without an error, and the client reads the lost events again.
	DelayWatches Kind = "DelayWatches"
	// Expire ends a watch with an ERROR event of 410 Expired, as if the API server had no events of
	// that age any more. Without Fault.After, it leaves out watches that start during the fault without
	// a resource version, because nothing can be too old for them. Lists of a resource version other
	// than "0", and of a further page, are answered with 410.
	Expire Kind = "Expire"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Down, Delay, Refuse, LoseResponse, CutWatches, EndWatches, DelayWatches, Expire}
}

// Fault is a fault that a proxy injects until it is removed.
type Fault struct {
	Kind Kind
	// Match limits the requests. The zero value matches all.
	Match Match
	// Delay is how long Delay and DelayWatches delay. Required for these, at most MaxDuration.
	Delay time.Duration
	// After is how long CutWatches, EndWatches and Expire leave a watch alone: since its start, or
	// since the fault is set if that is later. At most MaxDuration.
	After time.Duration
	// Code is the HTTP status of Refuse: 429, 500 or 503.
	Code int
	// RetryAfter is the number of seconds after which a client may repeat a request that was refused
	// with 429. With 0, the response has no Retry-After. At most 3600.
	RetryAfter int
}

// Match limits a fault to some requests. An empty list does not limit.
type Match struct {
	// Clients are names that were passed to [Proxy.Config].
	Clients []string
	// UserAgents are prefixes of the user agent, such as "seamark-manager/".
	UserAgents []string
	// Verbs are those of RBAC: get, list, watch, create, update, patch, delete, deletecollection.
	Verbs []string
	// Resources are plural names, with the subresource if there is one, and with the group to
	// distinguish resources of the same name: "pods", "pods/status", "statefulsets.apps/scale".
	Resources []string
	// OneIn limits the fault to one in so many requests, chosen at random. 0 and 1 mean all.
	OneIn int
}

// MaxDuration is the upper bound of Fault.Delay and Fault.After.
const MaxDuration = 10 * time.Minute

// Bounds of what is set.
const (
	maxFaults     = 64
	maxList       = 64
	maxRetryAfter = 3600
)

func validate(faults []Fault) error {
	if len(faults) > maxFaults {
		return fmt.Errorf("%d faults: at most %d are allowed", len(faults), maxFaults)
	}
	for i, f := range faults {
		if err := f.validate(); err != nil {
			return fmt.Errorf("fault %d: %w", i, err)
		}
	}
	return nil
}

func (f Fault) validate() error {
	if !slices.Contains(Kinds(), f.Kind) {
		return fmt.Errorf("kind %q: must be one of %q", f.Kind, Kinds())
	}
	if err := duration("delay", f.Delay, f.Kind, Delay, DelayWatches); err != nil {
		return err
	}
	if f.Delay == 0 && (f.Kind == Delay || f.Kind == DelayWatches) {
		return fmt.Errorf("delay 0s: %s requires one", f.Kind)
	}
	if err := duration("after", f.After, f.Kind, CutWatches, EndWatches, Expire); err != nil {
		return err
	}
	codes := []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}
	if f.Kind != Refuse {
		codes = []int{0}
	}
	if !slices.Contains(codes, f.Code) {
		return fmt.Errorf("code %d: %s allows %v", f.Code, f.Kind, codes)
	}
	if f.RetryAfter < 0 || f.RetryAfter > maxRetryAfter || f.RetryAfter > 0 && f.Code != http.StatusTooManyRequests {
		return fmt.Errorf("retry after %d s: must be between 0 and %d, and 0 without code %d", f.RetryAfter, maxRetryAfter, http.StatusTooManyRequests)
	}
	return f.Match.validate()
}

// duration checks a duration that only some kinds have.
func duration(field string, d time.Duration, kind Kind, kinds ...Kind) error {
	if d < 0 || d > MaxDuration || d > 0 && !slices.Contains(kinds, kind) {
		return fmt.Errorf("%s %s of %s: must be between 0 and %s, and 0 except for %q", field, d, kind, MaxDuration, kinds)
	}
	return nil
}

func (m Match) validate() error {
	for field, list := range map[string][]string{"clients": m.Clients, "userAgents": m.UserAgents, "verbs": m.Verbs, "resources": m.Resources} {
		if len(list) > maxList || slices.Contains(list, "") {
			return fmt.Errorf("%s %q: at most %d that are not empty", field, list, maxList)
		}
	}
	for _, client := range m.Clients {
		if err := validateClient(client); err != nil {
			return err
		}
	}
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	for _, verb := range m.Verbs {
		if !slices.Contains(verbs, verb) {
			return fmt.Errorf("verb %q: must be one of %q", verb, verbs)
		}
	}
	if m.OneIn < 0 {
		return fmt.Errorf("one in %d: must be at least 0", m.OneIn)
	}
	return nil
}

// validateClient checks the name of a client, which is a label of a server name in TLS.
func validateClient(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("client %q: %s", name, problems[0])
	}
	return nil
}
