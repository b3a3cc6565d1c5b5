// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// record holds the marks of every version of the pods in a namespace, as seen by a watch.
type record struct {
	mu sync.Mutex
	// versions holds the distinct marks of each pod, in order.
	versions map[string][]map[string]string
	// writes counts the versions of each pod.
	writes map[string]int
}

// startRecord watches the pods from now until the test ends.
func startRecord(w *world) *record {
	w.Helper()
	r := &record{versions: map[string][]map[string]string{}, writes: map[string]int{}}
	w.FollowPods(func(event watch.Event) {
		if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted {
			r.see(pod)
		}
	})
	return r
}

func (r *record) see(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes[pod.Name]++
	seen, now := r.versions[pod.Name], marks(pod)
	if len(seen) == 0 || !maps.Equal(seen[len(seen)-1], now) {
		r.versions[pod.Name] = append(seen, now)
	}
}

// written returns the number of versions of the pod.
func (r *record) written(pod string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes[pod]
}

// changes returns the values of each mark of the pod that changed, such as
// "label idle: true, -". A dash means that the mark is absent.
func (r *record) changes(pod string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := map[string]bool{}
	for _, version := range r.versions[pod] {
		for key := range version {
			keys[key] = true
		}
	}
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		var values []string
		for _, version := range r.versions[pod] {
			value, found := version[key]
			if !found {
				value = "-"
			}
			if len(values) == 0 || values[len(values)-1] != value {
				values = append(values, value)
			}
		}
		if len(values) > 1 {
			changes = append(changes, key+": "+strings.Join(values, ", "))
		}
	}
	return changes
}
