// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// arrivals holds when the first report arrived that a pod's marks don't show yet.
type arrivals struct {
	mu sync.Mutex
	at map[types.NamespacedName]time.Time
}

func newArrivals() *arrivals {
	return &arrivals{at: make(map[types.NamespacedName]time.Time)}
}

// note keeps the time unless an earlier one is kept.
func (a *arrivals) note(pod types.NamespacedName, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if earlier, found := a.at[pod]; !found || at.Before(earlier) {
		a.at[pod] = at
	}
}

// take returns the time kept, if one is, and drops it.
func (a *arrivals) take(pod types.NamespacedName) (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, found := a.at[pod]
	delete(a.at, pod)
	return at, found
}
