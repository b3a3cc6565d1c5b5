// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/pub"
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
		if r, ok := rangeOf(entry.StrVal); ok && r.first <= r.last {
			reserved = append(reserved, r)
		}
	}
	slices.SortFunc(reserved, func(a, b interval) int { return a.first - b.first })
	return reserved
}

// rangeOf returns the range of a text such as "3-5" or "3". It reports false if the text is neither.
func rangeOf(text string) (interval, bool) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, errFirst := strconv.ParseInt(strings.TrimSpace(first), 10, 32)
	to, errLast := strconv.ParseInt(strings.TrimSpace(last), 10, 32)
	return interval{int(from), int(to)}, errFirst == nil && errLast == nil
}

// reversedRange returns an error if an entry is a range whose end is below its start. The schema refuses
// such a range, but not that of a set that was stored with another schema: pods must not be deleted because
// of it.
func reversedRange(entries []intstr.IntOrString) error {
	for i, entry := range entries {
		if r, ok := rangeOf(entry.StrVal); entry.Type == intstr.String && ok && r.last < r.first {
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

func podName(set string, ordinal int) string { return set + "-" + strconv.Itoa(ordinal) }

// replicasOf returns the desired number of pods.
func replicasOf(set *appsv1beta1.StatefulSet) int {
	return min(int(ptr.Deref(set.Spec.Replicas, 1)), mostReplicas)
}

// podKind returns the kind of the owner of claims that are deleted with their pod.
func podKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Pod") }

// newPod returns the pod of a replica, complete, of the revision.
func (p *planner) newPod(r *replica, rev *appsv1.ControllerRevision) *corev1.Pod {
	labels := identity(r)
	labels[appsv1.ControllerRevisionHashLabelKey] = rev.Name
	pod := p.NewPod(rev, r.name, labels)
	pod.GenerateName, pod.Spec.Hostname, pod.Spec.Subdomain = p.set.Name+"-", r.name, p.set.Spec.ServiceName
	return pod
}

// identity returns the labels that identify a replica.
func identity(r *replica) map[string]string {
	return map[string]string{
		appsv1.StatefulSetPodNameLabel: r.name,
		appsv1.PodIndexLabel:           strconv.Itoa(r.ordinal),
	}
}

// identify restores the labels of a replica that another client changed. A pod without the index is of
// a controller that does not write it, and stays as it is.
func (p *planner) identify(r *replica) {
	if r.pod.Labels[appsv1.StatefulSetPodNameLabel] != r.name {
		setLabel(p.patch(r.pod, "RestoreIdentity"), appsv1.StatefulSetPodNameLabel, r.name)
	}
	if index := r.pod.Labels[appsv1.PodIndexLabel]; index != "" && index != r.name[len(p.set.Name)+1:] {
		setLabel(p.patch(r.pod, "RestoreIdentity"), appsv1.PodIndexLabel, strconv.Itoa(r.ordinal))
	}
}

// specifiedDelete reports whether the deletion of the pod is requested by its label.
func specifiedDelete(pod *corev1.Pod) bool {
	_, specified := pod.Labels[pub.SpecifiedDeleteKey]
	return specified
}
