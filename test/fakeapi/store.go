// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"testing"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/test/expect"
)

// Store is an informer with fixed objects, which is synced.
type Store struct{ toolscache.Indexer }

// NewStore returns a Store with the objects, which indexes them by namespace too.
func NewStore[T any](tb testing.TB, indexers toolscache.Indexers, objects []T) Store {
	tb.Helper()
	indexer := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	expect.NoError(tb, indexer.AddIndexers(indexers))
	for _, object := range objects {
		expect.NoError(tb, indexer.Add(object))
	}
	return Store{indexer}
}

// GetIndexer returns the objects.
func (s Store) GetIndexer() toolscache.Indexer { return s.Indexer }

// HasSynced returns true.
func (Store) HasSynced() bool { return true }
