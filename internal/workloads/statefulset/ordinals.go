// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
)

// mostReplicas is the number of replicas that are considered, which is more than a cluster can run: the
// memory that a step needs depends on it.
const mostReplicas = appsv1beta1.MaxReplicas

// interval is a range of ordinals, both ends included.
type interval struct{ first, last int }

// Ordinals returns the ordinals of the replicas, ascending: the first free ones from
// spec.ordinals.start on. There are fewer than replicas if the reserved ones leave too few up to the
// highest ordinal.
func Ordinals(set *appsv1beta1.StatefulSet) []int {
	next := 0
	if set.Spec.Ordinals != nil {
		next = int(set.Spec.Ordinals.Start)
	}
	reserved := reservedOf(set.Spec.ReserveOrdinals)
	ordinals := make([]int, 0, replicasOf(set))
	for len(ordinals) < replicasOf(set) && next <= math.MaxInt32 {
		for len(reserved) > 0 && reserved[0].last < next {
			reserved = reserved[1:]
		}
		if len(reserved) > 0 && reserved[0].first <= next {
			next = reserved[0].last + 1
			continue
		}
		ordinals = append(ordinals, next)
		next++
	}
	return ordinals
}

// reservedOf returns the reserved ordinals, sorted by their first ordinal. Entries that the schema
// does not permit are ignored.
func reservedOf(entries []intstr.IntOrString) []interval {
	reserved := make([]interval, 0, len(entries))
	for _, entry := range entries {
		if entry.Type == intstr.Int {
			reserved = append(reserved, interval{int(entry.IntVal), int(entry.IntVal)})
			continue
		}
		first, last, isRange := strings.Cut(entry.StrVal, "-")
		if !isRange {
			last = first
		}
		from, errFirst := strconv.ParseInt(strings.TrimSpace(first), 10, 32)
		to, errLast := strconv.ParseInt(strings.TrimSpace(last), 10, 32)
		if errFirst == nil && errLast == nil && from <= to {
			reserved = append(reserved, interval{int(from), int(to)})
		}
	}
	slices.SortFunc(reserved, func(a, b interval) int { return a.first - b.first })
	return reserved
}

// reversedRange returns an error if an entry is a range whose end is below its start. The schema refuses
// such a range, but not that of a set that was stored with another schema: pods must not be deleted because
// of it.
func reversedRange(entries []intstr.IntOrString) error {
	for i, entry := range entries {
		first, last, _ := strings.Cut(entry.StrVal, "-")
		from, errFirst := strconv.Atoi(first)
		to, errLast := strconv.Atoi(last)
		if entry.Type == intstr.String && errFirst == nil && errLast == nil && to < from {
			return field.Invalid(field.NewPath("spec", "reserveOrdinals").Index(i), entry.StrVal,
				"must be a number or a range whose end is not below its start")
		}
	}
	return nil
}

// ordinalOf returns the ordinal in the name of a pod of the set. It reports false if the name is not
// one that the set gives to a pod.
func ordinalOf(set, pod string) (int, bool) {
	digits, found := strings.CutPrefix(pod, set+"-")
	if !found {
		return 0, false
	}
	ordinal, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || ordinal < 0 || strconv.FormatInt(ordinal, 10) != digits {
		return 0, false
	}
	return int(ordinal), true
}

// podName returns the name of the pod with the ordinal.
func podName(set string, ordinal int) string { return set + "-" + strconv.Itoa(ordinal) }

// replicasOf returns the desired number of pods.
func replicasOf(set *appsv1beta1.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return min(int(*set.Spec.Replicas), mostReplicas)
}
