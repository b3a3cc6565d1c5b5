// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"fmt"
	"testing"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/view"
	"github.com/seamark-dev/seamark/internal/view/gather"
	"github.com/seamark-dev/seamark/test/floor"
)

// informer is an informer with fixed objects.
type informer struct{ toolscache.Indexer }

func (i informer) GetIndexer() toolscache.Indexer { return i.Indexer }
func (informer) HasSynced() bool                  { return true }

func newInformer(b *testing.B, indexers toolscache.Indexers) informer {
	b.Helper()
	indexer := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	if err := indexer.AddIndexers(indexers); err != nil {
		b.Fatal(err)
	}
	return informer{indexer}
}

// checking returns a function that checks so many of the markers of a namespace with 10 pods. All
// markers have 32 probes, and declare the same labels for all pods.
func checking(b *testing.B, markers, checked int) func() {
	b.Helper()
	pods, slices, stored := newInformer(b, gather.PodIndexers()), newInformer(b, gather.SliceIndexers()), newInformer(b, nil)
	add := func(to informer, object client.Object) {
		if err := to.Add(object); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 10 {
		add(pods, game(fmt.Sprint("p", i)).Build())
	}
	all := many(markers, 32)
	for _, marker := range all {
		add(stored, marker)
	}
	r := New(Options{Reader: gather.Reader{
		Client: &store{}, Compiler: plan.NewCompiler(), Options: view.Options{Defaults: plan.KubernetesDefaults()},
		Stores: gather.Stores{Pods: pods, Markers: stored, Slices: slices},
	}})
	return func() {
		found, err := r.survey(b.Context(), all, all[:checked])
		if err != nil || found["m000"].matched != 10 {
			b.Fatalf("found %+v, error %v", found, err)
		}
		for _, marker := range all[:checked] {
			found[marker.Name].findings(marker)
		}
	}
}

// BenchmarkCheck checks one marker with rivals, and all of the largest namespace in one pass. The
// floor is the check of a marker without rivals.
func BenchmarkCheck(b *testing.B) {
	for _, rivals := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(rivals, " rivals"), func(b *testing.B) {
			floor.Compare(b, "x_of_alone", checking(b, rivals+1, 1), checking(b, 1, 1))
		})
	}
	b.Run("all of 1000", func(b *testing.B) {
		floor.Compare(b, "x_of_alone", checking(b, 1000, 1000), checking(b, 1, 1))
	})
}
