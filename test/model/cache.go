// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// cache is what the informers of one leader contain. Each kind lags on its own.
type cache struct {
	store *store
	kinds [kinds]struct {
		objects objects
		// next is the index of the next event in the log of the table, version the version of the last one.
		next    int
		version int64
	}
}

// newCache returns a cache that lacks the last events of each kind.
func newCache(s *store, lag func(Kind) int) *cache {
	c := &cache{store: s}
	for k := range kinds {
		c.kinds[k].objects = objects{}
		c.advance(k, max(0, len(s.Tables[k].Log)-lag(k)))
	}
	return c
}

// advance receives up to n events of a kind and reports whether there were any.
func (c *cache) advance(k Kind, n int) bool {
	log, kind := c.store.Tables[k].Log, &c.kinds[k]
	end := min(len(log), kind.next+n)
	if kind.next == end {
		return false
	}
	for _, e := range log[kind.next:end] {
		if e.After == nil {
			delete(kind.objects, e.Key)
		} else {
			kind.objects[e.Key] = e.After
		}
		kind.version = e.Version
	}
	kind.next = end
	return true
}

// catchUp receives all events and reports whether there were any.
func (c *cache) catchUp() bool {
	received := false
	for k := range kinds {
		received = c.advance(k, len(c.store.Tables[k].Log)) || received
	}
	return received
}

func (c *cache) state() *State {
	var all [kinds]objects
	for k := range kinds {
		all[k] = maps.Clone(c.kinds[k].objects)
	}
	return state(c.store.now, all)
}

// written is what a leader remembers of its own writes, per kind.
type written struct {
	versions [kinds]int64
	deleted  map[types.UID]string
}

// raise remembers a write, unless the version is empty.
func (w *written) raise(k Kind, version string) {
	number, _ := strconv.ParseInt(version, 10, 64)
	w.versions[k] = max(w.versions[k], number)
}

// seen reports whether the cache contains all of these writes. It forgets deletions that it contains.
func (w *written) seen(c *cache) bool {
	for k, version := range w.versions {
		if c.kinds[k].version < version {
			return false
		}
	}
	for uid, name := range w.deleted {
		o, ok := c.kinds[Pods].objects[keyOf(name)]
		if ok && o.GetUID() == uid && o.GetDeletionTimestamp() == nil {
			return false
		}
		delete(w.deleted, uid)
	}
	return true
}
