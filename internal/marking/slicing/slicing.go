// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slicing divides the plan of a node into ProbePlans of a few pods each, and puts it together
// again, so that what a changed pod costs does not depend on the number of pods on its node. It is
// pure.
package slicing

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

const (
	// MaxPods is the maximum number of pods that Place puts into one slice.
	MaxPods = 8
	// MaxRemoved is the maximum number of pods that a NodePodProbe removes from the ProbePlans of its node.
	MaxRemoved = 8
)

// Slice is a part of a node's plan that must be written.
type Slice struct {
	// Number is the number in the name of the ProbePlan: see seamarkv1alpha1.SliceName.
	Number int
	// Stored is the ProbePlan to replace, or nil if there is none.
	Stored *seamarkv1alpha1.ProbePlan
	// Pods are all pods of the slice, which may be none.
	Pods []v1alpha1.PodProbe
}

// Place divides the plan of a node into slices, and returns those that differ from the stored
// ProbePlans of the node, by number. A pod stays in its slice, and a new pod takes the first free
// place, so that a pod that comes or goes changes one slice. A slice is kept without pods. One that
// has another owner than the Node with the UID is returned too. A pod that two stored slices have
// stays in the first one.
func Place(pods []v1alpha1.PodProbe, stored []*seamarkv1alpha1.ProbePlan, node types.UID) []Slice {
	sliceOf := make(map[int]*Slice, len(stored))
	numberOf := make(map[string]int, len(pods))
	for _, known := range byNumber(stored) {
		sliceOf[known.number] = &Slice{Number: known.number, Stored: known.plan}
		for i := range known.plan.Pods {
			if _, twice := numberOf[known.plan.Pods[i].UID]; !twice {
				numberOf[known.plan.Pods[i].UID] = known.number
			}
		}
	}
	var added []*v1alpha1.PodProbe
	for i := range pods {
		if number, found := numberOf[pods[i].UID]; found {
			sliceOf[number].Pods = append(sliceOf[number].Pods, pods[i])
		} else {
			added = append(added, &pods[i])
		}
	}
	for number := 0; len(added) > 0; number++ {
		slice := sliceOf[number]
		if slice == nil {
			slice = &Slice{Number: number}
			sliceOf[number] = slice
		}
		room := min(len(added), max(0, MaxPods-len(slice.Pods)))
		for _, pod := range added[:room] {
			slice.Pods = append(slice.Pods, *pod)
		}
		added = added[room:]
	}
	var changed []Slice
	for _, number := range slices.Sorted(maps.Keys(sliceOf)) {
		slice := sliceOf[number]
		slices.SortFunc(slice.Pods, ByName)
		if slice.Stored == nil || !ownedBy(slice.Stored, node) || !equality.Semantic.DeepEqual(slice.Stored.Pods, slice.Pods) {
			changed = append(changed, *slice)
		}
	}
	return changed
}

// Defer returns the slices that must be written now. The others differ from what is stored only by pods that
// are gone, at most MaxRemoved together: not planned, and never again. Each is written when another pod
// takes a place in it. Until then, the NodePodProbe removes what Removed returns.
func Defer(changed []Slice, node types.UID, gone func(uid string) bool) []Slice {
	room := MaxRemoved
	return slices.DeleteFunc(changed, func(slice Slice) bool {
		if slice.Stored == nil || !ownedBy(slice.Stored, node) {
			return false
		}
		left := slices.DeleteFunc(slices.Clone(slice.Stored.Pods), func(pod v1alpha1.PodProbe) bool { return gone(pod.UID) })
		removed := len(slice.Stored.Pods) - len(left)
		if removed > room || !equality.Semantic.DeepEqual(left, slice.Pods) {
			return false
		}
		room -= removed
		return true
	})
}

// Removed returns the UIDs of the pods of the stored ProbePlans that are gone: the first MaxRemoved, in the
// order of the slices.
func Removed(stored []*seamarkv1alpha1.ProbePlan, gone func(uid string) bool) []string {
	var removed []string
	for _, known := range byNumber(stored) {
		for i := range known.plan.Pods {
			uid := known.plan.Pods[i].UID
			if gone(uid) && len(removed) < MaxRemoved && !slices.Contains(removed, uid) {
				removed = append(removed, uid)
			}
		}
	}
	return removed
}

// ByName orders the pods of a plan by namespace, name and UID.
func ByName(a, b v1alpha1.PodProbe) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
}

func ownedBy(plan *seamarkv1alpha1.ProbePlan, node types.UID) bool {
	return len(plan.OwnerReferences) == 1 && plan.OwnerReferences[0].UID == node
}

// numbered is a ProbePlan with the number in its name.
type numbered struct {
	number int
	plan   *seamarkv1alpha1.ProbePlan
}

// byNumber returns the ProbePlans of a node in the order of their numbers. It omits those that are
// being deleted or whose name is not that of a slice.
func byNumber(stored []*seamarkv1alpha1.ProbePlan) []numbered {
	all := make([]numbered, 0, len(stored))
	for _, plan := range stored {
		number, valid := seamarkv1alpha1.SliceNumber(plan.NodeName, plan.Name)
		if valid && plan.DeletionTimestamp == nil {
			all = append(all, numbered{number, plan})
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return a.number - b.number })
	return all
}

// IsSliced reports whether the plan of the node with the NodePodProbe is in its ProbePlans. OpenKruise
// writes podProbes, and leaves the annotation after a return to it.
func IsSliced(npp *v1alpha1.NodePodProbe) bool {
	_, refers := npp.Annotations[v1alpha1.ProbePlansAnnotationKey]
	return refers && len(npp.Spec.PodProbes) == 0
}

// Generations returns the sum of the generations of the ProbePlans. It only grows as long as none
// is deleted.
func Generations(stored []*seamarkv1alpha1.ProbePlan) int64 {
	sum := int64(0)
	for _, plan := range stored {
		sum += plan.Generation
	}
	return sum
}

// References returns the resourceVersions of the ProbePlans by number. It omits those that are being
// deleted or whose name is not that of a slice.
func References(stored []*seamarkv1alpha1.ProbePlan) map[int]string {
	references := make(map[int]string, len(stored))
	for _, known := range byNumber(stored) {
		references[known.number] = known.plan.ResourceVersion
	}
	return references
}

// FormatReferences returns references as the value of the annotation seamark.dev/probe-plans: pairs
// of number and resourceVersion, such as "0:812,1:95".
func FormatReferences(references map[int]string) string {
	pairs := make([]string, 0, len(references))
	for _, number := range slices.Sorted(maps.Keys(references)) {
		pairs = append(pairs, strconv.Itoa(number)+":"+references[number])
	}
	return strings.Join(pairs, ",")
}

// ParseReferences returns the references that FormatReferences returned as the value. It returns false
// if the value is not valid.
func ParseReferences(value string) (references map[int]string, valid bool) {
	references = map[int]string{}
	if value == "" {
		return references, true
	}
	for pair := range strings.SplitSeq(value, ",") {
		digits, version, _ := strings.Cut(pair, ":")
		number, err := strconv.ParseUint(digits, 10, 31)
		if err != nil || version == "" {
			return nil, false
		}
		references[int(number)] = version
	}
	return references, true
}

// Assemble returns the NodePodProbe with the whole plan of its node in the spec, and with the
// generation of the whole plan, to which status.observedGeneration refers. It returns the NodePodProbe
// itself if the plan is not in ProbePlans. A pod that two ProbePlans have is that of the first one, and the
// plan does not have the removed pods.
func Assemble(npp *v1alpha1.NodePodProbe, stored []*seamarkv1alpha1.ProbePlan) *v1alpha1.NodePodProbe {
	if npp == nil || !IsSliced(npp) || len(stored) == 0 {
		return npp
	}
	whole := *npp
	whole.Generation += Generations(stored)
	known := make(map[string]bool)
	for _, uid := range npp.Spec.RemovedPods {
		known[uid] = true
	}
	whole.Spec.RemovedPods = nil
	for _, slice := range byNumber(stored) {
		for i := range slice.plan.Pods {
			if pod := &slice.plan.Pods[i]; !known[pod.UID] {
				known[pod.UID] = true
				whole.Spec.PodProbes = append(whole.Spec.PodProbes, *pod)
			}
		}
	}
	slices.SortFunc(whole.Spec.PodProbes, ByName)
	return &whole
}
