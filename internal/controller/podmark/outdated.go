// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// outdatedPods remembers the cached versions of pods that a write found outdated, so that the
// write is repeated only when the cache has another version. It is safe for concurrent use.
type outdatedPods struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]string
}

func newOutdatedPods() *outdatedPods {
	return &outdatedPods{versions: make(map[types.NamespacedName]string)}
}

func (o *outdatedPods) note(pod types.NamespacedName, version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.versions[pod] = version
}

// has reports whether the version is outdated. It forgets any other version.
func (o *outdatedPods) has(pod types.NamespacedName, version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, found := o.versions[pod]
	if found && last != version {
		delete(o.versions, pod)
	}
	return found && last == version
}

func (o *outdatedPods) forget(pod types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.versions, pod)
}
