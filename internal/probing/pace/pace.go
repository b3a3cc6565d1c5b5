// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pace decides when the probes of a node may run, so that probes with short periods do not
// take its processor. It has no clock and no goroutine: the caller passes the time, and asks again
// when At says. Its rules:
//
//   - each pod has a rate, and all probes of the node together have one, in runs of TCP probes per
//     second. Cost says how many of them another run counts as. Both allow a burst of one second;
//   - a probe that is due and exceeds a rate waits. It runs later, and is never dropped;
//   - if several probes wait for the node, the next run is one of the namespace that has used least
//     since it waits, then of the pod of this namespace in the same way, then of the probe that waits
//     longest. This is start-time fair queuing. A namespace that needs less than its share of the
//     node therefore waits for at most one run of each other waiting namespace, and what it leaves
//     is divided between the others.
package pace

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/earliest"
)

const (
	// burst is how long a rate may be saved up.
	burst = time.Second

	// maxDebt bounds how long a pod, or the node, waits until it may run a probe again, also if the
	// clock was set back. A run that costs more than the rate of a second counts as that much only.
	maxDebt = time.Second
)

// Limits are the rates of probes. A rate of 0 is no limit.
type Limits struct {
	// Pod is the rate of one pod, in runs of TCP probes per second.
	Pod int
	// Node is the rate of all probes together, in runs of TCP probes per second.
	Node int
}

// podParts is how many pods can use up the rate of a node.
const podParts = 8

// LimitsOf returns the limits of a node with a rate. A pod may use an eighth of it.
func LimitsOf(node int) Limits { return Limits{Pod: node / podParts, Node: node} }

// Limit is a limit that delays a probe.
type Limit string

// The limits.
const (
	LimitPod  Limit = "pod"
	LimitNode Limit = "node"
)

// CostTLS is the cost of a request with a TLS handshake.
const CostTLS = 8

// Cost returns how many runs of a TCP probe a run counts as: as many TCP probes as take
// about the same processor time. A TCP probe needs 0.13 ms in a busy agent, an HTTP request 0.34 ms, a gRPC call 0.67 ms, and
// a TLS handshake 1.4 ms. The command of an exec probe runs outside of the agent, which has slots
// for it.
func Cost(target *probing.Target) int {
	const exec, http, grpc = 2, 2, 4
	switch target.Handler {
	case probing.HandlerHTTP:
		if target.HTTP != nil && target.HTTP.URL.Scheme == "https" {
			return CostTLS
		}
		return http
	case probing.HandlerGRPC:
		if target.GRPC != nil && target.GRPC.TLS {
			return CostTLS
		}
		return grpc
	case probing.HandlerExec:
		return exec
	default:
		return 1
	}
}

// Pacer orders the probes of a node that are due. It is not safe for concurrent use.
type Pacer struct {
	pods, all  rate
	node       bucket
	now        virtual
	namespaces map[string]*namespace
	// waiting are the namespaces with probes that wait.
	waiting []*namespace
	// next is when a probe may run that Next could not return.
	next time.Time
}

type namespace struct {
	// turn orders the namespace among others, and now the turns of its pods.
	turn, now virtual
	pods      map[types.UID]*pod
	// waiting are the pods with probes that wait.
	waiting []*pod
}

type pod struct {
	turn   virtual
	bucket bucket
	// queue are the probes that wait, in the order of their arrival.
	queue []waiter
	// limit is what the first one of the queue waits for.
	limit Limit
}

type waiter struct {
	key  identity.Key
	cost int
}

// New returns a pacer that has run nothing yet.
func New(limits Limits) *Pacer {
	return &Pacer{pods: rateOf(limits.Pod), all: rateOf(limits.Node), namespaces: map[string]*namespace{}}
}

// Await adds a probe that is due, and that counts as so many runs of a TCP probe. It must not wait
// already.
func (p *Pacer) Await(name string, key identity.Key, cost int) {
	n := p.namespaces[name]
	if n == nil {
		n = &namespace{turn: p.now, pods: map[types.UID]*pod{}}
		p.namespaces[name] = n
	}
	q := n.pods[key.PodUID]
	if q == nil {
		q = &pod{turn: n.now, limit: LimitNode}
		n.pods[key.PodUID] = q
	}
	if len(n.waiting) == 0 {
		p.waiting = append(p.waiting, n)
	}
	if len(q.queue) == 0 {
		n.waiting = append(n.waiting, q)
	}
	q.queue = append(q.queue, waiter{key, cost})
}

// Next removes the probe that runs now, and returns it. If it has waited, the limit is the one that it
// waited for. It returns false if no probe may run at now.
func (p *Pacer) Next(now time.Time) (identity.Key, Limit, bool) {
	n, q := p.first(now)
	if q == nil {
		return identity.Key{}, "", false
	}
	w, limit := q.queue[0], q.limit
	q.limit = LimitNode
	p.now.serve(&n.turn, w.cost)
	n.now.serve(&q.turn, w.cost)
	p.node.take(now, p.all, w.cost)
	q.bucket.take(now, p.pods, w.cost)
	p.drop(n, q, 0)
	return w.key, limit, true
}

// At returns when to call Next again, after it has returned false. It returns false if no probe waits.
func (p *Pacer) At() (time.Time, bool) { return p.next, len(p.waiting) > 0 }

// Withdraw removes a probe that waits, if it does.
func (p *Pacer) Withdraw(name string, key identity.Key) {
	n := p.namespaces[name]
	if n == nil || n.pods[key.PodUID] == nil {
		return
	}
	q := n.pods[key.PodUID]
	if at := slices.IndexFunc(q.queue, func(w waiter) bool { return w.key == key }); at >= 0 {
		p.drop(n, q, at)
	}
}

// Forget removes the pods without probes that wait, if their rates are saved up again: nothing
// distinguishes them from new ones.
func (p *Pacer) Forget(now time.Time) {
	for name, n := range p.namespaces {
		for uid, q := range n.pods {
			if len(q.queue) == 0 && !q.bucket.full.After(now) {
				delete(n.pods, uid)
			}
		}
		if len(n.pods) == 0 {
			delete(p.namespaces, name)
		}
	}
}

// first returns the pod whose first probe runs now, and its namespace. If there is none, it sets next. It
// notes the pods that wait for their own rate.
func (p *Pacer) first(now time.Time) (n *namespace, q *pod) {
	if p.next = p.node.ready(now, p.all); p.next.After(now) {
		return nil, nil
	}
	p.next = time.Time{}
	for _, each := range p.waiting {
		if n != nil && each.turn >= n.turn {
			continue
		}
		for _, pod := range each.waiting {
			at := pod.bucket.ready(now, p.pods)
			switch {
			case at.After(now):
				pod.limit = LimitPod
			case n != each || pod.turn < q.turn:
				n, q = each, pod
			}
			p.next = earliest.Time(p.next, at)
		}
	}
	return n, q
}

// drop removes a probe from the queue of its pod.
func (p *Pacer) drop(n *namespace, q *pod, at int) {
	q.queue = slices.Delete(q.queue, at, at+1)
	if len(q.queue) > 0 {
		return
	}
	q.limit = LimitNode
	n.waiting = without(n.waiting, q)
	if len(n.waiting) == 0 {
		p.waiting = without(p.waiting, n)
	}
}

// without removes a value that occurs once. The order does not matter: turns decide.
func without[T comparable](all []T, one T) []T {
	last := len(all) - 1
	all[slices.Index(all, one)] = all[last]
	return slices.Delete(all, last, last+1)
}

// virtual is a time that passes by what those who wait use.
type virtual uint64

// serve gives a turn to the one who is first. Who has used less than the others, because it did not
// wait, gets no more for that.
func (v *virtual) serve(turn *virtual, cost int) {
	*v = max(*v, *turn)
	*turn = *v + virtual(cost)
}

// rate is the time for which one run of a TCP probe uses up a rate. It is 0 if there is no limit.
type rate time.Duration

func rateOf(perSecond int) rate {
	if perSecond <= 0 {
		return 0
	}
	return rate(time.Second / time.Duration(perSecond))
}

// bucket is what is left of a rate. The zero bucket is full.
type bucket struct {
	// full is when nothing of the burst is used any more.
	full time.Time
}

// ready returns when the next probe may run: when one run of a TCP probe is left. The rest of a run that
// counts as more is a debt.
func (b *bucket) ready(now time.Time, r rate) time.Time {
	if r == 0 {
		return time.Time{}
	}
	if most := now.Add(burst + maxDebt); b.full.After(most) {
		b.full = most
	}
	return b.full.Add(time.Duration(r) - burst)
}

// take uses up a part of the rate.
func (b *bucket) take(now time.Time, r rate, cost int) {
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(time.Duration(r) * time.Duration(cost))
}
