// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// store is an informer with fixed objects.
type store struct {
	toolscache.Indexer
	synced bool
}

func (s *store) GetIndexer() toolscache.Indexer { return s.Indexer }
func (s *store) HasSynced() bool                { return s.synced }

func newStore(t *testing.T, synced bool, objects ...client.Object) *store {
	t.Helper()
	indexer := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
	})
	if err := errors.Join(indexer.AddIndexers(gather.PodIndexers()), indexer.AddIndexers(gather.SliceIndexers())); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := indexer.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return &store{Indexer: indexer, synced: synced}
}

func report(node string, number int) *seamarkv1alpha1.ProbeReport {
	return &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%d", node, number)}, NodeName: node}
}

func TestReaderListsFromSyncedStores(t *testing.T) {
	pods := []client.Object{
		builders.Pod("ns", "a").Label("app", "game").Node("n").Build(), builders.Pod("ns", "b").Label("app", "db").Node("n").Build(),
		builders.Pod("ns", "c").Label("app", "game").Node("m").Build(), builders.Pod("other", "d").Label("app", "game").Node("n").Build(),
	}
	marker := builders.Marker("ns", "web").Selector("app", "game").Build()
	markers := []client.Object{marker, builders.Marker("other", "web").Build()}
	reports := []client.Object{report("n", 0), report("n", 1), report("m", 0)}
	want := map[string][]string{
		"reports": {"n.0", "n.1"},
		"node":    {"ns/a", "ns/b", "other/d"}, "namespace": {"ns/a", "ns/b", "ns/c"}, "selected": {"ns/a", "ns/c"}, "markers": {"ns/web"},
	}
	synced := gather.Reader{
		Client: broken{}, Compiler: plan.NewCompiler(),
		Stores: gather.Stores{Pods: newStore(t, true, pods...), Markers: newStore(t, true, markers...), Slices: newStore(t, true, reports...)},
	}
	all := fakeapi.Client(t, slices.Concat(pods, markers, reports)...).WithIndex(&corev1.Pod{}, gather.NodeNameField, func(object client.Object) []string {
		return []string{object.(*corev1.Pod).Spec.NodeName} //nolint:forcetypeassert // a panic fails the test
	}).Build()
	bare := gather.Reader{Client: all, Compiler: plan.NewCompiler()}
	unsynced := bare
	unsynced.Stores = gather.Stores{Pods: newStore(t, false), Markers: newStore(t, false), Slices: newStore(t, false)}
	for name, r := range map[string]gather.Reader{
		"synced": synced, "not synced": unsynced, "no stores": bare,
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string][]string{
				"node":      names(func() ([]*corev1.Pod, error) { return r.NodePods(t.Context(), "n") }),
				"namespace": names(func() ([]*corev1.Pod, error) { return r.NamespacePods(t.Context(), "ns") }),
				"selected":  names(func() ([]*corev1.Pod, error) { return r.SelectedPods(t.Context(), marker) }),
			}
			found, err := r.Markers(t.Context(), "ns")
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range found {
				got["markers"] = append(got["markers"], m.Key().String())
			}
			slicesOf, err := r.Slices(t.Context(), "n")
			if err != nil {
				t.Fatal(err)
			}
			for _, slice := range slicesOf {
				got["reports"] = append(got["reports"], slice.Name)
			}
			slices.Sort(got["reports"])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReaderReturnsErrorsOfStores(t *testing.T) {
	unindexed := &store{Indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil), synced: true}
	r := gather.Reader{Client: broken{}, Compiler: plan.NewCompiler(), Stores: gather.Stores{Pods: unindexed, Markers: unindexed, Slices: unindexed}}
	for name, list := range map[string]func(context.Context) error{
		"Markers":  func(ctx context.Context) error { _, err := r.Markers(ctx, "ns"); return err },
		"NodePods": func(ctx context.Context) error { _, err := r.NodePods(ctx, "n"); return err },
		"Slices":   func(ctx context.Context) error { _, err := r.Slices(ctx, "n"); return err },
	} {
		if list(t.Context()) == nil {
			t.Errorf("%s: no error from a store without an index", name)
		}
	}
}

// names returns the sorted names of the pods, or the error.
func names(list func() ([]*corev1.Pod, error)) []string {
	pods, err := list()
	if err != nil {
		return []string{err.Error()}
	}
	found := make([]string, 0, len(pods))
	for _, pod := range pods {
		found = append(found, client.ObjectKeyFromObject(pod).String())
	}
	slices.Sort(found)
	return found
}
