// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersource

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

// follower collects what has changed between two changes of a scope.
type follower struct {
	source *Source
	scope  web.Scope
	// signal receives a value after each change.
	signal chan struct{}

	mu    sync.Mutex
	stale probestatus.Changes
	// staleSets is whether a set has changed.
	staleSets bool
}

// take returns what is stale.
func (f *follower) take() (stale probestatus.Changes, sets bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stale, sets = f.stale, f.staleSets
	f.stale, f.staleSets = probestatus.NewChanges(), false
	return stale, sets
}

// note records that an object has changed, if it is in the scope.
func (f *follower) note(object any) {
	_, isSet := setview.Of(object)
	accessor, isObject := object.(metav1.Object)
	switch object.(type) {
	case *corev1.Pod, *v1alpha1.PodProbeMarker, *policyv1.PodDisruptionBudget:
		if !isObject || !f.includes(accessor.GetNamespace()) {
			return
		}
	default:
		if isSet && !f.includes(accessor.GetNamespace()) || !isSet && !f.scope.Full {
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if isSet {
		f.staleSets = true
	} else {
		f.stale.Add(object)
	}
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

func (f *follower) includes(namespace string) bool {
	return f.scope.Namespace == "" || f.scope.Namespace == namespace
}

// change returns what has changed, or all pods and markers.
func (f *follower) change(all bool) web.Change {
	stale, sets := f.take()
	pods := f.source.pods(stale, all, f.scope.Namespace)
	in := f.source.input(pods, f.scope.Full)
	current := probestatus.List(in)
	if waiting := current.Waiting; len(waiting) > 0 {
		time.AfterFunc(current.RecheckAt.Sub(in.Now), func() {
			for _, pod := range waiting {
				f.note(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
			}
		})
	}
	change := web.Change{All: all, Pods: model.PodsOf(pods, current.Rows)}
	// Those that do not exist, or have no probes.
	for _, pod := range pods {
		stale.Pods.Insert(client.ObjectKeyFromObject(pod))
	}
	for key := range stale.Pods {
		change.Removed = append(change.Removed, key.String())
	}
	if all || stale.Namespaces.Len() > 0 {
		change.Markers = f.source.markers(f.scope.Namespace)
	}
	if all || sets {
		change.Sets = f.source.sets(f.scope.Namespace)
	}
	return change
}
