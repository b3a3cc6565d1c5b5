// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// checkMembers returns the findings about the pods of sets, and about pods without a controller that
// CloneSets select.
func checkMembers(c Cluster, sets []*set) []Finding {
	members, orphans := map[types.UID][]*corev1.Pod{}, map[string][]*corev1.Pod{}
	for _, pod := range c.Pods {
		controller := metav1.GetControllerOfNoCopy(pod)
		switch {
		case !planning.Active(pod):
		case controller == nil:
			orphans[pod.Namespace] = append(orphans[pod.Namespace], pod)
		default:
			members[controller.UID] = append(members[controller.UID], pod)
		}
	}
	var found []Finding
	for _, s := range sets {
		pods := members[s.object.GetUID()]
		found = append(found, s.withoutKey(pods)...)
		found = append(found, s.preparingDelete(pods)...)
		found = append(found, s.orphans(orphans[s.object.GetNamespace()])...)
	}
	return found
}

func (s *set) podFinding(pods []string, path, openKruise, seamark, action string) []Finding {
	if len(pods) == 0 {
		return nil
	}
	slices.Sort(pods)
	f := s.finding(Changes, path, openKruise, seamark, action)
	f.Pods = text.List(pods, text.MaxNames)
	return []Finding{f}
}

// withoutKey reports pods without any label of orderPriority.
func (s *set) withoutKey(pods []*corev1.Pod) []Finding {
	if s.priority == nil || len(s.priority.OrderPriority) == 0 {
		return nil
	}
	var names []string
	for _, pod := range pods {
		if !slices.ContainsFunc(s.priority.OrderPriority, func(t pub.UpdatePriorityOrderTerm) bool {
			_, has := pod.Labels[t.OrderedKey]
			return has
		}) {
			names = append(names, pod.Name)
		}
	}
	return s.podFinding(names, s.strategy+".orderPriority", "updates pods without any of these labels first",
		"updates them last, and waits a short time for a marker that is about to set a label",
		"check that the order is what you want")
}

// preparingDelete reports pods in the state PreparingDelete that return to Normal.
func (s *set) preparingDelete(pods []*corev1.Pod) []Finding {
	if s.daemon != nil {
		return nil // It depends on the nodes.
	}
	var candidates []string
	staying := int32(0)
	for _, pod := range pods {
		_, labeled := pod.Labels[pub.SpecifiedDeleteKey]
		named := labeled || slices.Contains(s.podsToDelete, pod.Name)
		preparing := pod.Labels[pub.LifecycleStateKey] == string(pub.LifecycleStatePreparingDelete)
		switch {
		case preparing && !named && !s.surplus(pod):
			candidates = append(candidates, pod.Name)
		case !preparing && !named:
			staying++
		}
	}
	openKruise := "leaves a pod in PreparingDelete when its ordinal is needed again"
	if s.clone() {
		// OpenKruise returns them too, unless a hook makes pods not ready.
		if staying >= s.replicas || !s.marksNotReady() {
			return nil
		}
		openKruise = "leaves pods in PreparingDelete when replicas rises, because of markPodNotReady"
	}
	return s.podFinding(candidates, "spec.replicas", openKruise,
		"returns the pods that the set needs again to the state Normal",
		"delete the pods that must not stay, or give them the label "+pub.SpecifiedDeleteKey)
}

// surplus reports whether the pod of a StatefulSet is in PreparingDelete because it has an old revision,
// or because its ordinal is too high, as far as this does not depend on reserved ordinals.
func (s *set) surplus(pod *corev1.Pod) bool {
	if s.clone() {
		return false
	}
	if pod.Labels[appsv1.ControllerRevisionHashLabelKey] != s.updateRevision {
		return true
	}
	ordinal, err := strconv.ParseInt(pod.Name[strings.LastIndexByte(pod.Name, '-')+1:], 10, 32)
	return err != nil || !s.reserves && ordinal >= int64(s.start)+int64(s.replicas)
}

func (s *set) marksNotReady() bool {
	return s.hooks != nil && (s.hooks.PreDelete != nil && s.hooks.PreDelete.MarkPodNotReady ||
		s.hooks.InPlaceUpdate != nil && s.hooks.InPlaceUpdate.MarkPodNotReady)
}

// orphans reports pods without a controller that a CloneSet selects.
func (s *set) orphans(pods []*corev1.Pod) []Finding {
	if !s.clone() {
		return nil
	}
	const ignores = "ignores pods without a controller"
	var own, others []string
	for _, pod := range pods {
		if !s.selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		id := pod.Labels[v1alpha1.CloneSetInstanceID]
		if id != "" && pod.Name == s.object.GetName()+"-"+id {
			own = append(own, pod.Name)
		} else {
			others = append(others, pod.Name)
		}
	}
	return append(
		s.podFinding(own, "spec.selector", ignores,
			"adopts those that were pods of the set, and deletes pods that exceed replicas",
			"delete these pods, or change their labels, if the set must not have them"),
		s.podFinding(others, "spec.selector", ignores,
			"ignores them too, and names them in the condition PodsNotAdopted",
			"change their labels, or the selector")...)
}
