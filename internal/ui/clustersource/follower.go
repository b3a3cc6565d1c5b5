// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersource

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/ui"
)

// follower is a View. It collects what has changed between two calls of Next.
type follower struct {
	source *Source
	scope  ui.Scope
	// signal receives a value after each change.
	signal chan struct{}

	mu    sync.Mutex
	stale stale
}

// stale is what must be computed again.
type stale struct {
	// all is whether everything must be, and nothing was computed before.
	all bool
	// pods are single pods, nodes are names of nodes whose pods, and namespaces are those whose
	// markers have changed.
	pods       sets.Set[types.NamespacedName]
	nodes      sets.Set[string]
	namespaces sets.Set[string]
}

func newStale() stale {
	return stale{pods: sets.Set[types.NamespacedName]{}, nodes: sets.Set[string]{}, namespaces: sets.Set[string]{}}
}

// reset makes the next call of Next return everything.
func (f *follower) reset() {
	f.stale = newStale()
	f.stale.all = true
	f.signal <- struct{}{}
}

// take returns what is stale.
func (f *follower) take() stale {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.stale
	f.stale = newStale()
	return taken
}

// note records what is stale, if the namespace is in the scope.
func (f *follower) note(namespace string, record func(*stale)) {
	if f.scope.Namespace != "" && namespace != "" && namespace != f.scope.Namespace {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	record(&f.stale)
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

func (f *follower) notePod(object any) {
	if pod, ok := object.(*corev1.Pod); ok {
		f.note(pod.Namespace, func(s *stale) { s.pods.Insert(client.ObjectKeyFromObject(pod)) })
	}
}

func (f *follower) noteMarker(object any) {
	if marker, ok := object.(client.Object); ok {
		f.note(marker.GetNamespace(), func(s *stale) { s.namespaces.Insert(marker.GetNamespace()) })
	}
}

// noteNode is for nodes and their plans, which have the same name.
func (f *follower) noteNode(object any) {
	if node, ok := object.(client.Object); ok && f.scope.Full {
		f.note("", func(s *stale) { s.nodes.Insert(node.GetName()) })
	}
}

func (f *follower) noteReport(object any) {
	if report, ok := object.(*seamarkv1alpha1.ProbeReport); ok && f.scope.Full {
		f.note("", func(s *stale) { s.nodes.Insert(report.NodeName) })
	}
}

// Next waits for a change.
func (f *follower) Next(ctx context.Context) (ui.Change, error) {
	select {
	case <-f.signal:
	case <-ctx.Done():
		return ui.Change{}, fmt.Errorf("wait for changes: %w", context.Cause(ctx))
	}
	taken := f.take()
	pods, missing, err := f.source.stalePods(taken, f.scope.Namespace)
	if err != nil {
		return ui.Change{}, err
	}
	change := ui.Change{All: taken.all, Removed: missing}
	if change.Pods, err = f.source.rows(pods, f.scope.Full); err != nil {
		return ui.Change{}, err
	}
	if !taken.all {
		change.Removed = append(change.Removed, without(pods, change.Pods)...)
	}
	if taken.all || taken.namespaces.Len() > 0 {
		change.Markers, err = f.source.markers(f.scope.Namespace)
	}
	return change, err
}

// Close ends the view.
func (f *follower) Close() {
	f.source.mu.Lock()
	defer f.source.mu.Unlock()
	delete(f.source.followers, f)
}
