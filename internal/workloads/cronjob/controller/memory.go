// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// memory is what the process remembers about objects. It is safe for concurrent use.
type memory struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*remembered
}

func newMemory() *memory { return &memory{objects: map[types.NamespacedName]*remembered{}} }

// of returns what is remembered about an object. Only its reconciles, which follow each other, use it.
func (m *memory) of(object *v1alpha1.AdvancedCronJob) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(object)
	if found := m.objects[key]; found == nil || found.uid != object.UID {
		m.objects[key] = &remembered{uid: object.UID}
	}
	return m.objects[key]
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
}

// remembered is what is remembered about an object.
type remembered struct {
	uid types.UID
	// object and job are the resource versions that were written last, empty if none were.
	object, job string
	// started is the last slot that was started, and created is whether the status does not have it yet.
	started *metav1.Time
	created bool
}

// wrote remembers the resource versions of what was written, empty if nothing was.
func (r *remembered) wrote(object, job string) {
	if object != "" {
		r.object = object
	}
	if job != "" {
		r.job = job
	}
}

// cached reports whether the caches have what was written.
func (r *remembered) cached(objects, jobs reconciler.Store) bool {
	return !reconciler.Behind(objects, r.object) && !reconciler.Behind(jobs, r.job)
}
