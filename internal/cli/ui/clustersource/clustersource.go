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
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/kinds"
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
	// Guards is that of the PodDisruptionBudgets that are guards. It is nil if these may not be read.
	Guards Informer
	// Sets are those of the kinds of sets that the user may read, by kind. Their objects are those of TrimSet.
	Sets map[string]Informer
	// SetsNote is why kinds of sets are missing. It is empty if none is.
	SetsNote string
}

// all returns the informers that are not nil.
func (i *Informers) all() []Informer {
	all := slices.AppendSeq([]Informer{i.Pods, i.Markers, i.Nodes, i.Plans, i.PlanSlices, i.Reports, i.Guards}, maps.Values(i.Sets))
	return slices.DeleteFunc(all, func(informer Informer) bool { return informer == nil })
}

// AddNamespaced adds the informers of a cache of namespaces: of pods, markers, the kinds of sets, and guards if these can be read.
func (i *Informers) AddNamespaced(ctx context.Context, informers cache.Cache, sets []kinds.Kind, guards bool) error {
	found := make([]Informer, len(sets))
	wanted := map[client.Object]*Informer{&corev1.Pod{}: &i.Pods, &v1alpha1.PodProbeMarker{}: &i.Markers}
	if guards {
		wanted[&policyv1.PodDisruptionBudget{}] = &i.Guards
	}
	for at := range sets {
		wanted[sets[at].New()] = &found[at]
	}
	if err := i.add(ctx, informers, wanted); err != nil {
		return err
	}
	i.Sets = map[string]Informer{}
	for at := range sets {
		i.Sets[sets[at].Kind] = found[at]
	}
	return nil
}

// AddStates adds the informers of nodes, plans and reports of a cache, and indexes them as New demands.
func (i *Informers) AddStates(ctx context.Context, informers cache.Cache) error {
	err := i.add(ctx, informers, map[client.Object]*Informer{
		gather.NewNode(): &i.Nodes, &v1alpha1.NodePodProbe{}: &i.Plans, &seamarkv1alpha1.ProbePlan{}: &i.PlanSlices, &seamarkv1alpha1.ProbeReport{}: &i.Reports,
	})
	if err != nil {
		return err
	}
	for _, slices := range []Informer{i.PlanSlices, i.Reports} {
		if slices == nil {
			continue
		}
		if err := slices.AddIndexers(gather.SliceIndexers()); err != nil {
			return fmt.Errorf("index the caches: %w", err)
		}
	}
	return nil
}

// add gets the informers of the objects.
func (i *Informers) add(ctx context.Context, informers cache.Cache, wanted map[client.Object]*Informer) error {
	for object, target := range wanted {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if meta.IsNoMatchError(err) && target == &i.PlanSlices {
			continue
		}
		if err != nil {
			return fmt.Errorf("get the informer of %T: %w", object, err)
		}
		typed, ok := informer.(Informer)
		if !ok {
			return fmt.Errorf("informer %T of %T has no indexer", informer, object)
		}
		*target = typed
	}
	return nil
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
			// The status of a budget changes with its pods, and does not matter.
			old, is := before.(*policyv1.PodDisruptionBudget)
			if budget, _ := after.(*policyv1.PodDisruptionBudget); is && old.UID == budget.UID && old.Generation == budget.Generation {
				return
			}
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
	timeline := model.TimelineOf(in.Pods[0], rows, history.ParseEvents(events), incomplete, query.Since, in.Now)
	timeline.Events = model.EventsOf(events, in.Pods[0].UID)
	return timeline, nil
}
