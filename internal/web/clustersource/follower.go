// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersource

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/states"
	"github.com/seamark-dev/seamark/internal/web"
)

// follower is a View. It collects what has changed between two calls of Next.
type follower struct {
	source *Source
	scope  ui.Scope
	// signal receives a value after each change.
	signal chan struct{}

	mu    sync.Mutex
	stale probestate.Stale
	// all is whether everything must be computed, and nothing was before.
	all bool
}

// reset makes the next call of Next return everything.
func (f *follower) reset() {
	f.stale, f.all = probestate.NewStale(), true
	f.signal <- struct{}{}
}

// take returns what is stale, and whether everything is.
func (f *follower) take() (stale probestate.Stale, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stale, all = f.stale, f.all
	f.stale, f.all = probestate.NewStale(), false
	return stale, all
}

// note records that an object has changed, if it is in the scope.
func (f *follower) note(object any) {
	switch o := object.(type) {
	case *corev1.Pod:
		if !f.includes(o.Namespace) {
			return
		}
	case *v1alpha1.PodProbeMarker:
		if !f.includes(o.Namespace) {
			return
		}
	default:
		if !f.scope.Full {
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale.Note(object)
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

func (f *follower) includes(namespace string) bool {
	return f.scope.Namespace == "" || f.scope.Namespace == namespace
}

// Next waits for a change.
func (f *follower) Next(ctx context.Context) (ui.Change, error) {
	select {
	case <-f.signal:
	case <-ctx.Done():
		return ui.Change{}, fmt.Errorf("wait for changes: %w", context.Cause(ctx))
	}
	stale, all := f.take()
	pods, missing, err := f.source.pods(stale, all, f.scope.Namespace)
	if err != nil {
		return ui.Change{}, err
	}
	change := ui.Change{All: all, Removed: missing}
	var states probestate.States
	if change.Pods, states, err = f.source.rows(pods, f.scope.Full); err != nil {
		return ui.Change{}, err
	}
	if waiting := states.Waiting; len(waiting) > 0 {
		time.AfterFunc(states.Again.Sub(f.source.now()), func() {
			for _, pod := range waiting {
				f.note(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
			}
		})
	}
	if !all {
		change.Removed = append(change.Removed, without(pods, change.Pods)...)
	}
	if all || stale.Namespaces.Len() > 0 {
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
