// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/isolate"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
)

const (
	// liveRate and liveBurst limit the reads that the cache cannot answer, per second: anyone who reaches the
	// port can ask for sets that do not exist.
	liveRate  = 20
	liveBurst = 100
	// pageSize is the number of sets in one of these reads.
	pageSize = 250
	// keptAnswers is the number of answers that requests share.
	keptAnswers = 16
)

// live reads from the API server what the cache does not have. Requests that wait for the same read share one that
// starts after they have come: when a set selects other pods, API servers send all pods that it selected for about a
// second.
type live struct {
	client  client.Reader
	limiter *rate.Limiter
	// turn has room for one request, so that the reads need little memory.
	turn chan struct{}
	// events counts the requests and the reads, and answers are the last ones. turn protects them.
	events  atomic.Int64
	answers map[string]answered
}

// answered is what a read has returned, and when it started.
type answered struct {
	started int64
	sets    []*v1alpha1.SidecarSet
}

func newLive(reader client.Reader) *live {
	return &live{client: reader, limiter: rate.NewLimiter(liveRate, liveBurst), turn: make(chan struct{}, 1), answers: map[string]answered{}}
}

// get reads an object.
func (l *live) get(ctx context.Context, key types.NamespacedName, object client.Object) error {
	if err := l.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("wait for the limit of reads: %w", err)
	}
	if err := l.client.Get(ctx, key, object); err != nil {
		return fmt.Errorf("get %T %s: %w", object, key, err)
	}
	return nil
}

// set returns the set, or nil if it does not exist.
func (l *live) set(ctx context.Context, name string) (*v1alpha1.SidecarSet, error) {
	sets, err := l.share(ctx, name, func() ([]*v1alpha1.SidecarSet, error) {
		set := &v1alpha1.SidecarSet{}
		if err := l.get(ctx, types.NamespacedName{Name: name}, set); err != nil {
			return nil, client.IgnoreNotFound(err) //nolint:wrapcheck // It is wrapped.
		}
		return []*v1alpha1.SidecarSet{slim(set)}, nil
	})
	if len(sets) == 0 {
		return nil, err
	}
	return sets[0], err
}

// bound returns the sets that are bound to the namespace.
func (l *live) bound(ctx context.Context, namespace string) ([]*v1alpha1.SidecarSet, error) {
	return l.share(ctx, "/"+namespace, func() ([]*v1alpha1.SidecarSet, error) {
		var bound []*v1alpha1.SidecarSet
		list := &v1alpha1.SidecarSetList{}
		for more := true; more; more = list.Continue != "" {
			if err := l.limiter.Wait(ctx); err != nil {
				return nil, fmt.Errorf("wait for the limit of reads: %w", err)
			}
			if err := l.client.List(ctx, list, client.Limit(pageSize), client.Continue(list.Continue)); err != nil {
				return nil, fmt.Errorf("list SidecarSets: %w", err)
			}
			for i := range list.Items {
				if names, _ := entries.Named(targets(&list.Items[i])); slices.Contains(names, namespace) {
					bound = append(bound, slim(&list.Items[i]))
				}
			}
		}
		return bound, nil
	})
}

// share calls read, unless a call for the key started after this one.
func (l *live) share(ctx context.Context, key string, read func() ([]*v1alpha1.SidecarSet, error)) ([]*v1alpha1.SidecarSet, error) {
	came := l.events.Add(1)
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other requests that read SidecarSets: %w", ctx.Err())
	}
	if last, found := l.answers[key]; found && last.started > came {
		return last.sets, nil
	}
	started := l.events.Add(1)
	sets, err := read()
	if err != nil {
		return nil, err
	}
	if len(l.answers) == keptAnswers {
		clear(l.answers)
	}
	l.answers[key] = answered{started, sets}
	return sets, nil
}

// slim returns a copy of the set without what the injector does not read.
func slim(set *v1alpha1.SidecarSet) *v1alpha1.SidecarSet {
	kept := *set
	kept.ObjectMeta = metav1.ObjectMeta{
		Name: set.Name, UID: set.UID, DeletionTimestamp: set.DeletionTimestamp,
		Annotations: map[string]string{v1alpha1.InjectionFailurePolicyKey: set.Annotations[v1alpha1.InjectionFailurePolicyKey]},
	}
	kept.Spec.InjectionStrategy.Paused, kept.Spec.UpdateStrategy.Paused = entries.Paused(set), keepsNamed(set)
	if entries.IsUnknown(set) {
		// The record of what cannot be decoded is in the annotations.
		kept.Status.InForce, kept.Status.Conditions = nil, nil
		if !isNew(set) {
			kept.Status.ObservedGeneration = max(1, set.Status.ObservedGeneration)
		}
	}
	kept.Spec.Containers, kept.Spec.InitContainers, kept.Spec.Volumes, kept.Spec.PatchPodMetadata = nil, nil, nil, nil
	return &kept
}

// isNew reports whether no program has written the status of the set: it has no entry, unless that of an earlier set of its
// name is still stored.
func isNew(set *v1alpha1.SidecarSet) bool {
	return isolate.Of(set) == nil && equality.Semantic.DeepEqual(set.Status, v1alpha1.SidecarSetStatus{})
}

// keepsNamed reports whether all new pods get the named revision: also if it is not known who gets another one.
func keepsNamed(set *v1alpha1.SidecarSet) bool {
	record := isolate.Of(set)
	return set.Spec.UpdateStrategy.Paused || record != nil && record.Lacks("spec.updateStrategy")
}
