// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// arrivals holds, for each pod, when the first report arrived that its marks do not reflect yet.
type arrivals struct {
	mu sync.Mutex
	at map[types.NamespacedName]time.Time
}

func newArrivals() *arrivals {
	return &arrivals{at: make(map[types.NamespacedName]time.Time)}
}

// note records the time unless an earlier one is recorded.
func (a *arrivals) note(pod types.NamespacedName, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if earlier, found := a.at[pod]; !found || at.Before(earlier) {
		a.at[pod] = at
	}
}

// take returns and deletes the recorded time.
func (a *arrivals) take(pod types.NamespacedName) (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, found := a.at[pod]
	if delete(a.at, pod); found && len(a.at) == 0 {
		// Maps keep their memory.
		a.at = make(map[types.NamespacedName]time.Time)
	}
	return at, found
}
