// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keyed remembers one value per key for goroutines that share them, such as what a
// controller knows about each object between two reconciles.
package keyed

import "sync"

// Store holds one value per key. It is safe for concurrent use. The zero value is empty and ready
// for use. Nothing bounds it: its owner forgets the keys of objects that are gone, or expires them.
type Store[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

// Get returns the value of the key, and whether there is one.
func (s *Store[K, V]) Get(key K) (value V, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, found = s.values[key]
	return value, found
}

// Set replaces the value of the key.
func (s *Store[K, V]) Set(key K, value V) {
	s.Update(key, func(current *V) bool {
		*current = value
		return true
	})
}

// Update calls change with the value of the key, or with a zero value if there is none. If change
// returns false, the key is forgotten. No other call of the Store takes place meanwhile, so change
// must not use the Store.
func (s *Store[K, V]) Update(key K, change func(value *V) (keep bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value := s.values[key]
	if !change(&value) {
		s.drop(key)
		return
	}
	if s.values == nil {
		s.values = make(map[K]V)
	}
	s.values[key] = value
}

// Take returns the value of the key, and whether there is one, and forgets it.
func (s *Store[K, V]) Take(key K) (value V, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, found = s.values[key]
	s.drop(key)
	return value, found
}

// Forget removes the key.
func (s *Store[K, V]) Forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
}

// Expire removes the keys for which expired returns true. expired must not use the Store.
func (s *Store[K, V]) Expire(expired func(key K, value V) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, value := range s.values {
		if expired(key, value) {
			s.drop(key)
		}
	}
}

// Each calls visit with each key and its value, in any order. visit must not use the Store.
func (s *Store[K, V]) Each(visit func(key K, value V)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, value := range s.values {
		visit(key, value)
	}
}

// Len returns the number of keys.
func (s *Store[K, V]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.values)
}

// drop requires the lock. An empty map is replaced, because maps keep the memory of their largest
// size.
func (s *Store[K, V]) drop(key K) {
	delete(s.values, key)
	if len(s.values) == 0 {
		s.values = nil
	}
}
