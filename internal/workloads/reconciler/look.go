// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/workloads/owner"
)

const (
	// lookPage is the number of pods per request.
	lookPage = 500
	// mostSkew is by how much the clock of the API server may be ahead: a set that seems younger than the leadership of the
	// process by less may be older.
	mostSkew = 5 * time.Minute
)

// mayCreate reports whether the cache has the pods of the set, before the process creates the first ones. Another process may
// have created pods just before this one became the leader, and the cache of pods may be older than that of sets: the set would
// get too many. Later, the process waits for what it has written itself. A set that was created after it became the
// leader has no such pods.
func (b *base) mayCreate(ctx context.Context, set client.Object) (bool, error) {
	looked := set.GetCreationTimestamp().After(b.expectations.since().Add(mostSkew))
	b.expect(set, func(e *expectations) { looked = looked || e.looked })
	if looked {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(b.parts(set).Selector)
	if err != nil {
		return false, fmt.Errorf("spec.selector: %w", err)
	}
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	for token := ""; ; token = found.Continue {
		options := []client.ListOption{
			client.InNamespace(set.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}, client.Limit(lookPage), client.Continue(token),
		}
		if err := b.Live.List(ctx, found, options...); err != nil {
			return false, fmt.Errorf("list the pods of the set before the first ones are created: %w", err)
		}
		for i := range found.Items {
			if b.misses(set, &found.Items[i]) {
				return false, nil
			}
		}
		if found.Continue == "" {
			b.expect(set, func(e *expectations) { e.looked = true })
			return true, nil
		}
	}
}

// misses reports whether the cache does not have a pod of the set.
func (b *base) misses(set client.Object, live *metav1.PartialObjectMetadata) bool {
	if live.DeletionTimestamp != nil || !owner.Of(b.kind, set).Controls(live) {
		return false
	}
	cached := get(b.Stores.Pods, client.ObjectKeyFromObject(live))
	return cached == nil || cached.GetUID() != live.UID
}
