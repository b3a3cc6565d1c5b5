// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/fakeapi"
	"github.com/seamark-dev/seamark/test/floor/podevents"
)

// newNamespaces returns namespaces with these names.
func newNamespaces(t *testing.T, names ...string) fakeapi.Store {
	t.Helper()
	var all []any
	for _, name := range names {
		all = append(all, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"games": "true"}}})
	}
	return fakeapi.NewStore(t, nil, all)
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

// TestPodsThatAreCounted checks after the changes of which pods the pods without a set are counted again.
func TestPodsThatAreCounted(t *testing.T) {
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "set"}}
	set.Status.InForce = &v1alpha1.SidecarSetInForce{
		Generation: 1, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web"}},
		}},
	}
	pod := func(namespace, app string, edits ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Labels: map[string]string{"app": app}}}
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	injected := func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.SidecarSetListKey: "logs"} }
	mirror := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n", Controller: new(true)}}
	}
	for name, test := range map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"created":                              {nil, pod("games", "game"), true},
		"deleted":                              {pod("games", "game"), nil, true},
		"in a namespace that is not selected":  {nil, pod("web", "game"), false},
		"in a namespace that is excluded":      {nil, pod("db", "game"), false},
		"in a namespace that is not known yet": {nil, pod("new", "game"), true},
		"with other labels":                    {nil, pod("games", "other"), false},
		"with the set":                         {nil, pod("games", "game", injected), false},
		"mirror":                               {nil, pod("games", "game", mirror), false},
		"gets the label":                       {pod("games", "other"), pod("games", "game"), true},
		"loses the label":                      {pod("games", "game"), pod("games", "other"), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(Options{Namespace: "seamark-system", ExcludedNamespaces: []string{"db"}})
			c.Namespaces, c.Sets = newNamespaces(t, "games", "web", "db"), fakeapi.NewStore(t, SetIndexers(), []any{set})
			// The pods have been counted.
			c.states.update(set, func(s *setState) {
				s.generation, s.uninjected, s.selector = 1, 0, labels.SelectorFromSet(set.Status.InForce.Selector.MatchLabels)
			})
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			c.podChanged(t.Context(), q, test.before, test.after, false)
			again := false
			c.states.update(set, func(s *setState) { again = s.uninjected < 0 })
			if again != test.want {
				t.Errorf("counted again %t, want %t", again, test.want)
			}
		})
	}
}

// BenchmarkPodWithoutSidecarSet has 100 sets that select all pods of other namespaces.
func BenchmarkPodWithoutSidecarSet(b *testing.B) {
	c := New(Options{Namespace: "seamark-system"})
	c.Sets = fakeapi.NewStore[any](b, SetIndexers(), nil)
	for i := range 100 {
		set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("set-", i)}}
		set.Status.InForce = &v1alpha1.SidecarSetInForce{Namespace: fmt.Sprint("ns-", i), Selector: &metav1.LabelSelector{}}
		if err := c.Sets.GetIndexer().Add(set); err != nil {
			b.Fatal(err)
		}
	}
	podevents.Foreign(b, func(q controllers.Queue, before, after *corev1.Pod) {
		c.podChanged(b.Context(), q, before, after, false)
	})
}

// TestSetIndexers checks after the changes of the pods of which namespaces sets are looked at.
func TestSetIndexers(t *testing.T) {
	in := func(values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: values},
		}}
	}
	for name, test := range map[string]struct {
		force *v1alpha1.SidecarSetInForce
		want  []string
	}{
		"not in force":   {},
		"all namespaces": {&v1alpha1.SidecarSetInForce{}, []string{anyNamespace}},
		"one namespace":  {&v1alpha1.SidecarSetInForce{Namespace: "games"}, []string{"games"}},
		"namespaces":     {&v1alpha1.SidecarSetInForce{NamespaceSelector: in("web", "games")}, []string{"games", "web"}},
		"by another label": {
			&v1alpha1.SidecarSetInForce{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"games": "true"}}}, []string{anyNamespace},
		},
	} {
		got, err := SetIndexers()[boundIndex](&v1alpha1.SidecarSet{Status: v1alpha1.SidecarSetStatus{InForce: test.force}})
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: namespaces %q (%v), want %q", name, got, err, test.want)
		}
	}
}

// TestSetsThatMove checks that the pods of a set are counted again when what it selects changes: events of pods between the
// count and the change of the status were compared with the selection before.
func TestSetsThatMove(t *testing.T) {
	before := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "set", Generation: 2}}
	before.Status.InForce = &v1alpha1.SidecarSetInForce{Generation: 1, Namespace: "games"}
	after := before.DeepCopy()
	after.Status.InForce.Generation, after.Status.InForce.Namespace = 2, "web"
	c := New(Options{})
	c.Sets = fakeapi.NewStore(t, SetIndexers(), []any{after})
	c.states.update(after, func(s *setState) { s.generation, s.uninjected = 2, 0 })
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	c.setChanged(t.Context(), q, before, after, false)
	again := false
	c.states.update(after, func(s *setState) { again = s.uninjected < 0 })
	if !again || q.Len() != 1 {
		t.Errorf("counted again %t, %d requests, want 1", again, q.Len())
	}
}
