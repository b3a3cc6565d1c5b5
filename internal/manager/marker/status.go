// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/keyed"
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

// check is what is remembered of the last check of a marker.
type check struct {
	uid        types.UID
	generation int64
	at         time.Time
	// causes are those of the last findings that are in the status, by condition type.
	causes map[string]string
	// dropped are the conditions last written to an API server whose CRD does not have them.
	dropped []metav1.Condition
}

// checks holds the last check of each marker.
type checks struct {
	keyed.Store[types.NamespacedName, check]
}

// wait returns how long the next check of the marker has to wait. If it returns zero, it
// remembers that the check takes place now.
func (c *checks) wait(key types.NamespacedName, uid types.UID, generation int64, now time.Time) time.Duration {
	var wait time.Duration
	c.change(key, func(last *check) {
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

// reported remembers the causes of the findings that are in the marker's status.
func (c *checks) reported(key types.NamespacedName, findings []finding) {
	causes := make(map[string]string, len(findings))
	for _, f := range findings {
		causes[f.Type] = f.cause
	}
	c.change(key, func(last *check) { last.causes = causes })
}

// retry permits the next check at once, because this one could not be completed.
func (c *checks) retry(key types.NamespacedName) {
	c.change(key, func(last *check) { last.at = time.Time{} })
}

func (c *checks) change(key types.NamespacedName, change func(*check)) {
	c.Update(key, func(last *check) bool {
		change(last)
		return true
	})
}
