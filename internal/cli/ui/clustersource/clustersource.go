// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersource has the pods and markers of a cluster for the web page. It computes them
// from caches with the code of package probestatus, so the page shows the rows of `seamark get`. Pods
// that have ended are not shown.
package clustersource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// Informer is an informer of a cache.
type Informer interface {
	cache.Informer
	// GetIndexer returns the objects.
	GetIndexer() toolscache.Indexer
	// HasSyncedChecker is done when the informer has all objects.
	HasSyncedChecker() toolscache.DoneChecker
}

// Informers are those of the objects that rows depend on. PlanSlices and Reports must be indexed by
// gather.SliceIndexers.
type Informers struct {
	Pods, Markers Informer
	// Nodes, Plans (NodePodProbes), PlanSlices (ProbePlans) and Reports are nil if these may not be
	// read. Then states come from the marks of the pods. OpenKruise has no ProbePlans.
	Nodes, Plans, PlanSlices, Reports Informer
}

// all returns the informers that are not nil.
func (i *Informers) all() []Informer {
	all := []Informer{i.Pods, i.Markers, i.Nodes, i.Plans, i.PlanSlices, i.Reports}
	return slices.DeleteFunc(all, func(informer Informer) bool { return informer == nil })
}

// InformersOf returns the informers of a cache. Nodes, plans and reports are among them only if full
// is true.
func InformersOf(ctx context.Context, informers cache.Cache, full bool) (Informers, error) {
	var found Informers
	kinds := map[client.Object]*Informer{&corev1.Pod{}: &found.Pods, &v1alpha1.PodProbeMarker{}: &found.Markers}
	if full {
		kinds[gather.NewNode()], kinds[&v1alpha1.NodePodProbe{}] = &found.Nodes, &found.Plans
		kinds[&seamarkv1alpha1.ProbePlan{}], kinds[&seamarkv1alpha1.ProbeReport{}] = &found.PlanSlices, &found.Reports
	}
	for object, target := range kinds {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if meta.IsNoMatchError(err) && target == &found.PlanSlices {
			continue
		}
		if err != nil {
			return found, fmt.Errorf("get the informer of %T: %w", object, err)
		}
		typed, ok := informer.(Informer)
		if !ok {
			return found, fmt.Errorf("informer %T of %T has no indexer", informer, object)
		}
		*target = typed
	}
	return found, nil
}

// Source has the pods in the caches.
type Source struct {
	informers Informers
	options   podview.Options
	now       func() time.Time

	mu        sync.Mutex
	followers map[*follower]struct{}
}

// New returns a source for the informers, which it uses as long as these run. The options are those of
// the manager.
func New(informers Informers, options podview.Options, now func() time.Time) (*Source, error) {
	s := &Source{informers: informers, options: options, now: now, followers: map[*follower]struct{}{}}
	for _, informer := range []Informer{informers.PlanSlices, informers.Reports} {
		if informer != nil && informer.GetIndexer().GetIndexers()[gather.SliceNodeIndex] == nil {
			return nil, errors.New("watch for the web page: slices have no index by node")
		}
	}
	for _, informer := range informers.all() {
		if _, err := informer.AddEventHandler(s.handler()); err != nil {
			return nil, fmt.Errorf("watch for the web page: %w", err)
		}
	}
	return s, nil
}

// handler returns an event handler that tells all followers about an object.
func (s *Source) handler() toolscache.ResourceEventHandlerFuncs {
	all := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for f := range s.followers {
			f.note(object)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: all, DeleteFunc: all,
		UpdateFunc: func(before, after any) {
			// A report or a pod may have moved.
			all(before)
			all(after)
		},
	}
}

// follow adds or removes a follower.
func (s *Source) follow(f *follower, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.followers[f] = struct{}{}
	} else {
		delete(s.followers, f)
	}
}

// Open follows the scope. It waits until the caches are filled.
func (s *Source) Open(ctx context.Context, scope web.Scope) (web.Changes, error) {
	if err := s.await(ctx); err != nil {
		return nil, err
	}
	f := &follower{source: s, scope: scope, signal: make(chan struct{}, 1), stale: probestatus.NewChanges()}
	s.follow(f, true)
	context.AfterFunc(ctx, func() { s.follow(f, false) })
	return web.Follow(ctx, f.signal, f.change), nil
}

// await waits until the caches are filled.
func (s *Source) await(ctx context.Context) error {
	var filled []toolscache.DoneChecker
	for _, informer := range s.informers.all() {
		filled = append(filled, informer.HasSyncedChecker())
	}
	if !toolscache.WaitFor(ctx, "", filled...) {
		return fmt.Errorf("wait for the caches: %w", context.Cause(ctx))
	}
	return nil
}

// Timeline returns the timeline of the only pod of the input. It lists the events of the pod if this has
// probes. If they cannot be listed, the error is the note of the timeline.
func Timeline(in probestatus.Input, query web.TimelineQuery, list func() ([]corev1.Event, error)) (model.Timeline, error) {
	rows := probestatus.List(in).Rows
	if len(rows) == 0 {
		return model.Timeline{}, web.NotFound(query.Pod)
	}
	events, incomplete := list()
	return model.TimelineOf(in.Pods[0], rows, history.ParseEvents(events), incomplete, query.Since, in.Now), nil
}
