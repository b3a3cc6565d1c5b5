// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"bytes"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

const refusesWrites = "refuses every write of the set"

// CheckBack returns what changes for markers, CloneSets, StatefulSets and DaemonSets if OpenKruise takes over from
// Seamark: fields that its CRD of markers does not have, what its webhooks refuse although Seamark
// accepts it, and sets whose pods it would update. The order is that of Check. The error is about a
// template that cannot be encoded.
func CheckBack(c Cluster) ([]Finding, error) {
	revisions := make(map[types.NamespacedName]*appsv1.ControllerRevision, len(c.Revisions))
	for _, rev := range c.Revisions {
		revisions[types.NamespacedName{Namespace: rev.Namespace, Name: rev.Name}] = rev
	}
	found := checkManager(c.Manager)
	for _, s := range setsOf(c) {
		found = append(found, s.changesBack(c.Manager)...)
		found = append(found, s.prunedBack()...)
		if s.daemon != nil {
			found = append(found, s.daemonChangesBack()...)
		}
		unknown, err := s.unknownRevision(revisions[types.NamespacedName{Namespace: s.object.GetNamespace(), Name: s.updateRevision}])
		if err != nil {
			return nil, err
		}
		found = append(found, unknown...)
	}
	for _, object := range c.Markers {
		marker := &v1alpha1.PodProbeMarker{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, marker); err == nil {
			found = append(found, pruned(object, marker.Spec.Probes)...)
		}
	}
	sortFindings(found)
	return found, nil
}

// changesBack returns what OpenKruise's webhook refuses, and what its manager does with the set.
func (s *set) changesBack(m *Manager) []Finding {
	gated := slices.ContainsFunc(s.template.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == pub.InPlaceUpdateReady
	})
	return applying(
		rule{!s.clone() && s.daemon == nil && s.inPlace && !gated, s.finding(Blocks, "spec.template.spec.readinessGates",
			refusesWrites+": podUpdatePolicy requires the readiness gate "+string(pub.InPlaceUpdateReady),
			"adds the readiness gate to the pods",
			"set podUpdatePolicy to ReCreate, or add the readiness gate, which recreates the pods")},
		rule{s.rolling, s.finding(Blocks, "spec.updateStrategy.rollingUpdate",
			refusesWrites+": the type is OnDelete", "always stores the field, and ignores it except minReadySeconds",
			"remove the field after the CRDs of OpenKruise are installed")},
		rule{s.several, s.finding(Blocks, "spec.updateStrategy.rollingUpdate.maxUnavailable",
			refusesWrites+": podManagementPolicy is OrderedReady", "takes down so many pods together", "set it to 1")},
		rule{sets.New[v1alpha1.UpdateScatterTerm](s.scatters...).Len() < len(s.scatters), s.finding(Blocks, "spec.updateStrategy.scatterStrategy",
			refusesWrites+": a key and value are listed twice", "counts them once", "remove the second one")},
		rule{s.start != 0 && !m.has(GateStartOrdinal), s.finding(Blocks, "spec.ordinals.start",
			"ignores it while the gate "+GateStartOrdinal+" is off, its default: starts at 0, and deletes the pods with higher ordinals",
			fmt.Sprintf("starts at %d", s.start), "turn the gate on")},
		// OpenKruise's webhook of DaemonSets adds no defaults of pods.
		rule{s.inPlace && s.daemon == nil && !s.defaulted() && !m.has(GateNoDefaults), s.finding(Changes, "spec.template",
			"adds the defaults of pods at the first change of the template: the update is not in place, and InPlaceOnly refuses it",
			"compares templates after these defaults", "turn the gate "+GateNoDefaults+" on")},
	)
}

// defaulted reports whether OpenKruise's webhook has added the defaults of pods to the template.
func (s *set) defaulted() bool {
	return !slices.ContainsFunc(s.template.Spec.Containers, func(c corev1.Container) bool { return c.ImagePullPolicy == "" })
}

// unknownRevision reports a set whose update revision OpenKruise does not recognize: it compares bytes.
// A revision of another template is that of an update that has not begun yet, and is not reported.
func (s *set) unknownRevision(update *appsv1.ControllerRevision) ([]Finding, error) {
	if update == nil {
		return nil, nil
	}
	content, err := revision.Content(s.template)
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", s.object.GetKind(), s.object.GetNamespace(), s.object.GetName(), err)
	}
	if bytes.Equal(update.Data.Raw, content) || !revision.Equal(update, content) {
		return nil, nil
	}
	recorded, err := revision.Template(update)
	if err != nil {
		return nil, err
	}
	again, err := revision.Content(recorded)
	if err != nil {
		return nil, err
	}
	f := s.finding(Blocks, "status.updateRevision",
		"updates all pods: it finds no revision with this template, which sets other defaults of pods than the revision",
		"compares templates after these defaults",
		"write the template of the revision to the set (docs/migrate-from-openkruise.md#return)")
	if bytes.Equal(again, content) {
		f.OpenKruise = "updates all pods: it compares bytes, and the JSON of the revision differs from what it writes, " +
			"for example because creationTimestamp: null is missing"
		f.Seamark = "recognizes the revision"
		f.Action = "add an annotation to the template: the update to a new revision restarts no container if it is in place"
	}
	return []Finding{f}, nil
}
