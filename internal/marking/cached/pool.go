// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"unique"
)

// poolSize is the number of values after which a pool forgets those that it has not returned
// since. A value is used by all pods of a workload, so this is the number of workloads, twice or
// more because of marks.
const poolSize = 8192

// pool returns one copy of equal values, so that the pods of a workload share their labels and
// containers. It forgets values that are no longer requested; pods keep the values that they
// have. It is safe for concurrent use.
type pool[T any] struct {
	size int

	mu            sync.Mutex
	recent, older map[digest]T
}

// digest is the hash of a value's bytes. It takes less memory than the bytes.
type digest [sha256.Size]byte

func newPool[T any]() *pool[T] { return &pool[T]{size: poolSize, recent: map[digest]T{}} }

// share returns the known value that has the bytes, or else the given one.
func (p *pool[T]) share(text []byte, value T) T {
	key := digest(sha256.Sum256(text))
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, found := p.recent[key]; found {
		return known
	}
	if known, found := p.older[key]; found {
		value = known
	}
	if len(p.recent) >= p.size {
		p.recent, p.older = make(map[digest]T), p.recent
	}
	p.recent[key] = value
	return value
}

// intern returns one copy of equal strings.
func intern[S ~string](s S) S {
	if s == "" {
		return s
	}
	return S(unique.Make(string(s)).Value())
}

// appendString appends a string and its length, so that different sequences of strings never have
// the same bytes.
func appendString[S ~string](key []byte, s S) []byte {
	return append(binary.AppendUvarint(key, uint64(len(s))), s...)
}

// appendMap appends the entries of a map.
func appendMap(key []byte, m map[string]string) []byte {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		key = appendString(appendString(key, name), m[name])
	}
	return key
}
