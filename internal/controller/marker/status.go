// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// interval is the shortest time between two looks at one generation of a marker: pods
// that come and go one by one cost at most one status write a second.
const interval = time.Second

// next returns the status that follows the current one at the time now, with the
// conditions merged into it.
func next(current v1alpha1.PodProbeMarkerStatus, generation int64, matched int, conditions []metav1.Condition, now time.Time) v1alpha1.PodProbeMarkerStatus {
	status := v1alpha1.PodProbeMarkerStatus{
		ObservedGeneration: generation,
		MatchedPods:        int64(matched),
		Conditions:         slices.Clone(current.Conditions),
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = generation
		condition.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// same tells whether writing after over before would change nothing.
func same(before, after v1alpha1.PodProbeMarkerStatus) bool {
	return equality.Semantic.DeepEqual(before, after)
}

// news returns the conditions that are False now, and weren't before or had another
// cause: how many pods they hold for is no news.
func news(before, after v1alpha1.PodProbeMarkerStatus) []metav1.Condition {
	var fresh []metav1.Condition
	for _, condition := range after.Conditions {
		if condition.Status != metav1.ConditionFalse {
			continue
		}
		old := meta.FindStatusCondition(before.Conditions, condition.Type)
		if old == nil || old.Status != metav1.ConditionFalse || old.Reason != condition.Reason ||
			withoutShares(old.Message) != withoutShares(condition.Message) {
			fresh = append(fresh, condition)
		}
	}
	return fresh
}

// withoutShares drops what stands in parentheses.
func withoutShares(message string) string {
	var kept strings.Builder
	for {
		before, rest, found := strings.Cut(message, " (")
		kept.WriteString(before)
		if !found {
			return kept.String()
		}
		_, message, _ = strings.Cut(rest, ")")
	}
}

// looks remembers of each marker when it was last looked at, and what the API server
// did not store of its status.
type looks struct {
	mu sync.Mutex
	by map[types.NamespacedName]look
}

type look struct {
	uid        types.UID
	generation int64
	at         time.Time
	// dropped are the conditions last written to an API server whose CRD has none.
	dropped []metav1.Condition
}

func newLooks() *looks {
	return &looks{by: make(map[types.NamespacedName]look)}
}

// wait returns how long the next look at the marker waits; zero takes it.
func (l *looks) wait(key types.NamespacedName, uid types.UID, generation int64, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.by[key]
	if last.uid == uid && last.generation == generation {
		if wait := last.at.Add(interval).Sub(now); wait > 0 {
			return wait
		}
	}
	if last.uid != uid {
		last = look{uid: uid}
	}
	last.generation, last.at = generation, now
	l.by[key] = last
	return 0
}

// dropped returns the conditions that were written and not stored.
func (l *looks) dropped(key types.NamespacedName) []metav1.Condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[key].dropped
}

func (l *looks) setDropped(key types.NamespacedName, conditions []metav1.Condition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.by[key]
	last.dropped = conditions
	l.by[key] = last
}

// again lets the next look at the marker be taken at once: the last one came to nothing.
func (l *looks) again(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.by[key]
	last.at = time.Time{}
	l.by[key] = last
}

func (l *looks) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, key)
}
