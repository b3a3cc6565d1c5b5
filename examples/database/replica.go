// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// timing holds the durations of the election.
type timing struct {
	// lag is how long a replica that was not the primary needs to catch up.
	lag time.Duration
	// settle is how long a successor is announced before it becomes the primary, and for how long
	// the primary must not have changed when a starting replica becomes ready. It does not become
	// ready between the announcement and the change: the next pod would be updated while the labels
	// change.
	settle time.Duration
	// lease is the time after which a primary that does not renew the record is replaced.
	lease time.Duration
	// retry is the interval at which the record is read. A primary renews the record as often.
	retry time.Duration
}

// state is what a replica knows. The zero value is that of a replica that has not started.
type state struct {
	name   string
	timing timing

	// started is when the replica started.
	started time.Time
	// seen is the latest record, and seenAt is when its version was first seen.
	seen   record
	seenAt time.Time
	// renewedAt is when the replica began the last write that made or kept it the primary.
	renewedAt time.Time
	// announcedAt is when the successor was first seen.
	announcedAt time.Time
	// behindSince is when the replica began to catch up.
	behindSince time.Time
	// crashed reports whether an earlier process of this replica was the primary when it ended.
	crashed bool
	// joined reports whether the replica was ready once. It stays ready then.
	joined bool
}

// observe updates the state with the record that was read at a time.
func (s *state) observe(r record, now time.Time) {
	if s.started.IsZero() {
		s.started, s.behindSince = now, now
		if r.fresh {
			s.behindSince = now.Add(-s.timing.lag)
		}
		s.crashed = r.holder == s.name && !r.fresh
	}
	s.crashed = s.crashed && r.holder == s.name
	if s.seen.holder == s.name && r.holder != s.name {
		s.behindSince = now
	}
	if r.successor != s.seen.successor {
		s.announcedAt = now
	}
	if r.version != s.seen.version || s.seenAt.IsZero() {
		s.seenAt = now
	}
	s.seen = r
	if s.behind(now) == 0 && r.holder != "" && now.Sub(r.since) >= s.timing.settle && !s.awaitsSuccessor(now) {
		s.joined = true
	}
}

// awaitsSuccessor reports whether the role is about to move to another replica. A successor that does
// not come is not waited for.
func (s *state) awaitsSuccessor(now time.Time) bool {
	return s.seen.successor != "" && !s.isSuccessor() && now.Sub(s.announcedAt) <= 4*s.timing.lease
}

// behind returns how long the replica still needs to catch up.
func (s *state) behind(now time.Time) time.Duration {
	if s.isPrimary(now) {
		return 0
	}
	return max(s.behindSince.Add(s.timing.lag).Sub(now), 0)
}

// isPrimary reports whether the replica is the primary. A primary that has not renewed the record
// for some time is none, because another replica may have replaced it.
func (s *state) isPrimary(now time.Time) bool {
	return s.seen.holder == s.name && !s.renewedAt.IsZero() && now.Sub(s.renewedAt) < s.timing.lease*2/3
}

// isSuccessor reports whether the replica is about to become the primary.
func (s *state) isSuccessor() bool { return s.seen.successor == s.name }

// next returns the record to write now, if any.
func (s *state) next(now time.Time) (r record, write bool) {
	r = s.seen
	switch {
	case s.crashed:
		// This process has to catch up before it can be the primary.
		r.holder = ""
		return r, true
	case r.holder == s.name && r.successor != "" && r.successor != s.name:
		if now.Sub(s.announcedAt) >= s.timing.settle {
			return r.give(r.successor, now), true
		}
		return r, true
	case r.holder == s.name:
		r.successor = ""
		return r, true
	case r.holder != "" && now.Sub(s.seenAt) <= s.timing.lease:
		return r, false
	case s.behind(now) > 0:
		return r, false
	default:
		return r.give(s.name, now), true
	}
}

// give returns the record with another holder, which begins now.
func (r record) give(to string, now time.Time) record {
	if r.last != "" && r.last != to {
		r.switches++
	}
	r.holder, r.last, r.since, r.successor = to, to, now, ""
	return r
}

// replica is a running replica. It is safe for concurrent use.
type replica struct {
	version  string
	election election
	out      io.Writer

	mu    sync.Mutex
	state state
}

func newReplica(name, version string, t timing, e election, out io.Writer) *replica {
	return &replica{version: version, election: e, out: out, state: state{name: name, timing: t}}
}

// run takes part in the election until ctx ends. Then it releases the role.
func (r *replica) run(ctx context.Context) {
	fmt.Fprintf(r.out, "%s: started, version %s\n", r.state.name, r.version)
	ticker := time.NewTicker(r.state.timing.retry)
	defer ticker.Stop()
	for ctx.Err() == nil {
		r.report(r.step(ctx))
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.state.timing.lease)
	defer cancel()
	r.report(r.release(ctx))
}

func (r *replica) report(err error) {
	if err != nil && !errors.Is(err, errOutdated) && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(r.out, "%s: %v\n", r.state.name, err)
	}
}

// step reads the record and writes the next one.
func (r *replica) step(ctx context.Context) error {
	begun := time.Now()
	seen, err := r.election.read(ctx)
	if err != nil {
		return err
	}
	next, write := r.observe(seen)
	if !write {
		return nil
	}
	if next.holder != "" && next.holder != seen.holder {
		if ok, err := r.electable(ctx, next.holder); err != nil {
			return err
		} else if !ok && seen.holder != r.state.name {
			return nil
		} else if !ok {
			// Stay the primary until the successor can replace it.
			next = seen
		}
	}
	if err := r.election.write(ctx, next); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if next.holder != r.state.name {
		return nil
	}
	if !r.state.isPrimary(time.Now()) {
		fmt.Fprintf(r.out, "%s: is the primary\n", r.state.name)
	}
	r.state.renewedAt = begun
	// The version is seen with the next read.
	next.version = r.state.seen.version
	r.state.seen = next
	return nil
}

// electable reports whether a replica can become the primary. After a long time without one, any
// replica can.
func (r *replica) electable(ctx context.Context, name string) (bool, error) {
	if s := r.snapshot(); s.seen.holder != r.state.name && time.Since(s.seenAt) > 4*s.timing.lease {
		return true, nil
	}
	return r.election.electable(ctx, name, name != r.state.name)
}

func (r *replica) observe(seen record) (next record, write bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.state.observe(seen, now)
	return r.state.next(now)
}

// release gives up the role, so that another replica can take it at once.
func (r *replica) release(ctx context.Context) error {
	r.mu.Lock()
	r.state.renewedAt = time.Time{}
	r.mu.Unlock()
	for {
		seen, err := r.election.read(ctx)
		if err != nil || seen.holder != r.state.name {
			return err
		}
		seen.holder = ""
		if err := r.election.write(ctx, seen); !errors.Is(err, errOutdated) {
			if err == nil {
				fmt.Fprintf(r.out, "%s: released the role\n", r.state.name)
			}
			return err
		}
	}
}

// snapshot returns a copy of the state.
func (r *replica) snapshot() state {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}
