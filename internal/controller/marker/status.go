// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// interval is the minimum time between two checks of one generation of a marker: pods that
// change one after the other cause at most one status write per second.
const interval = time.Second

// finding is a condition of a marker.
type finding struct {
	metav1.Condition
	// cause lists the problems that make the condition False. Unlike the message, it does
	// not depend on how many pods have them.
	cause string
}

// next returns the status that follows the current one at the time now.
func next(current v1alpha1.PodProbeMarkerStatus, generation int64, matched int, findings []finding, now time.Time) v1alpha1.PodProbeMarkerStatus {
	status := v1alpha1.PodProbeMarkerStatus{
		ObservedGeneration: generation,
		MatchedPods:        int64(matched),
		Conditions:         slices.Clone(current.Conditions),
	}
	for _, f := range findings {
		f.ObservedGeneration = generation
		f.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		meta.SetStatusCondition(&status.Conditions, f.Condition)
	}
	return status
}

// same reports whether both statuses are equal, so that no write is needed.
func same(before, after v1alpha1.PodProbeMarkerStatus) bool {
	return equality.Semantic.DeepEqual(before, after)
}

// news returns the findings that are False and were not so before, or had another reason or
// cause. A change in the number of affected pods is not news. After a restart of the manager
// the cause of a stored problem is unknown, and only the status and the reason count.
func news(before v1alpha1.PodProbeMarkerStatus, causes map[string]string, findings []finding) []finding {
	var fresh []finding
	for _, f := range findings {
		if f.Status != metav1.ConditionFalse {
			continue
		}
		old := meta.FindStatusCondition(before.Conditions, f.Type)
		cause := causes[f.Type]
		if old == nil || old.Status != metav1.ConditionFalse || old.Reason != f.Reason || cause != "" && cause != f.cause {
			fresh = append(fresh, f)
		}
	}
	return fresh
}

// checks remembers the last check of each marker.
type checks struct {
	mu sync.Mutex
	by map[types.NamespacedName]check
}

type check struct {
	uid        types.UID
	generation int64
	at         time.Time
	// causes are those of the last findings that are in the status, by condition type.
	causes map[string]string
	// dropped are the conditions last written to an API server whose CRD does not have them.
	dropped []metav1.Condition
}

func newChecks() *checks {
	return &checks{by: make(map[types.NamespacedName]check)}
}

// wait returns how long the next check of the marker has to wait. If it returns zero, it
// remembers that the check takes place now.
func (c *checks) wait(key types.NamespacedName, uid types.UID, generation int64, now time.Time) time.Duration {
	var wait time.Duration
	c.update(key, func(last *check) {
		if last.uid != uid {
			*last = check{uid: uid}
		}
		if last.generation == generation {
			wait = max(0, last.at.Add(interval).Sub(now))
		}
		if wait == 0 {
			last.generation, last.at = generation, now
		}
	})
	return wait
}

// last returns the last check of the marker.
func (c *checks) last(key types.NamespacedName) check {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[key]
}

// reported remembers the causes of the findings that are in the marker's status.
func (c *checks) reported(key types.NamespacedName, findings []finding) {
	causes := make(map[string]string, len(findings))
	for _, f := range findings {
		causes[f.Type] = f.cause
	}
	c.update(key, func(last *check) { last.causes = causes })
}

// dropped remembers the conditions that were written but not stored.
func (c *checks) dropped(key types.NamespacedName, conditions []metav1.Condition) {
	c.update(key, func(last *check) { last.dropped = conditions })
}

// retry permits the next check at once, because the write of the last one failed.
func (c *checks) retry(key types.NamespacedName) {
	c.update(key, func(last *check) { last.at = time.Time{} })
}

func (c *checks) update(key types.NamespacedName, change func(*check)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.by[key]
	change(&last)
	c.by[key] = last
}

func (c *checks) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, key)
}
