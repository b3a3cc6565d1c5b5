// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// indexed is an informer with objects.
type indexed struct{ toolscache.Indexer }

// GetIndexer implements reconciler.Store.
func (i indexed) GetIndexer() toolscache.Indexer { return i.Indexer }

func newStore(t *testing.T, indexers toolscache.Indexers, objects ...any) indexed {
	t.Helper()
	store := indexed{toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)}
	for _, object := range objects {
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// newNamespaces returns namespaces with these names.
func newNamespaces(t *testing.T, names ...string) indexed {
	t.Helper()
	var all []any
	for _, name := range names {
		all = append(all, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"games": "true"}}})
	}
	return newStore(t, toolscache.Indexers{}, all...)
}

// TestExcludedNamespaces checks that pods are updated and counted where they are injected.
func TestExcludedNamespaces(t *testing.T) {
	c := New(Options{Namespace: "seamark-system", ExcludedNamespaces: []string{"kube-system", "db"}})
	c.Namespaces = newNamespaces(t, "games", "db", "kube-system", "seamark-system")
	for name, test := range map[string]struct {
		namespace string
		selector  *metav1.LabelSelector
		want      string
	}{
		"all":                  {want: "games"},
		"by name":              {namespace: "games", want: "games"},
		"by label":             {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"games": "true"}}, want: "games"},
		"excluded, by name":    {namespace: "db"},
		"excluded, by default": {namespace: "kube-system"},
		"another label":        {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"games": "false"}}},
	} {
		set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs"}}
		set.Status.InForce = &v1alpha1.SidecarSetInForce{Namespace: test.namespace, NamespaceSelector: test.selector, Selector: &metav1.LabelSelector{}}
		injected, err := metav1.LabelSelectorAsSelector(c.server().Entry(set).NamespaceSelector)
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range []string{"games", "db", "kube-system", "seamark-system"} {
			of := labels.Set{corev1.LabelMetadataName: each, "games": "true"}
			if got, want := c.selectsNamespace(set.Status.InForce, each), each == test.want; got != want || injected.Matches(of) != want {
				t.Errorf("%s: pods of namespace %s are counted %t, injected %t, want %t", name, each, got, injected.Matches(of), want)
			}
		}
	}
}
