// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// set is what the checks of CloneSets, StatefulSets and DaemonSets have in common.
type set struct {
	object   *unstructured.Unstructured
	template *corev1.PodTemplateSpec
	selector labels.Selector
	replicas int32
	hooks    *pub.Lifecycle
	// inPlace reports whether pods are updated in place if possible.
	inPlace  bool
	priority *pub.UpdatePriorityStrategy
	// strategy is the path of the field with the priority.
	strategy string
	// held is whether a hook holds pods of a CloneSet that are to be deleted, and excludes whether these are no replicas.
	held, excludes bool
	// podsToDelete are those of a CloneSet.
	podsToDelete []string
	// scatters are the terms of the scatterStrategy of a CloneSet.
	scatters v1alpha1.UpdateScatterStrategy
	// start is the first ordinal of a StatefulSet, reserves whether it reserves ordinals, and rolling
	// whether it sets rollingUpdate although its type is OnDelete.
	start             int32
	reserves, rolling bool
	// several is whether a StatefulSet with OrderedReady sets maxUnavailable to another value than 1.
	several        bool
	updateRevision string
	// expands is whether the claims of a StatefulSet follow the size of their templates.
	expands bool
	// deletes is whether the claims of a StatefulSet are deleted when it is scaled or deleted.
	deletes bool
	// daemon is the spec of a DaemonSet, nil for other kinds.
	daemon *v1alpha1.DaemonSetSpec
}

// selectorOf returns a selector that matches nothing if the selector is not valid.
func selectorOf(selector *metav1.LabelSelector) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return parsed
}

// finding returns a finding about a field of the set.
func (s *set) finding(level Severity, path, openKruise, seamark, action string) Finding {
	return findingOf(level, s.object, path, openKruise, seamark, action)
}

// rule is a finding that counts if the rule applies.
type rule struct {
	applies bool
	finding Finding
}

// applying returns the findings of the rules that apply.
func applying(rules ...rule) []Finding {
	var found []Finding
	for _, r := range rules {
		if r.applies {
			found = append(found, r.finding)
		}
	}
	return found
}
