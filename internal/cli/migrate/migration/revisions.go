// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
)

// Copies returns copies, for another namespace, of the revisions that OpenKruise has recorded of the SidecarSets in its own
// namespace, and the number of those that are there. existing are the revisions of the other namespace. The error names a
// revision of somebody else that has the name of a copy.
func Copies(
	sets []*v1alpha1.SidecarSet, from, to string, recorded, existing []*appsv1.ControllerRevision,
) (copies []*appsv1.ControllerRevision, present int, err error) {
	known := make(map[string]*appsv1.ControllerRevision, len(existing))
	for _, revision := range existing {
		if revision.Namespace == to {
			known[revision.Name] = revision
		}
	}
	for _, set := range sets {
		for _, revision := range history.Of(set, from, recorded) {
			same := known[revision.Name]
			switch {
			case same == nil:
				copies = append(copies, copyOf(revision, set, to))
			case !history.Key(set, to).Controls(same) || !history.Equal(same, revision):
				return nil, 0, fmt.Errorf("ControllerRevision %s/%s exists, and is not that of SidecarSet %s: delete it", to, revision.Name, set.Name)
			default:
				present++
			}
		}
	}
	return copies, present, nil
}

// IsCopy reports whether a revision has the set and the content of one that Copies returns.
func IsCopy(live, of *appsv1.ControllerRevision) bool {
	set, want := metav1.GetControllerOfNoCopy(live), metav1.GetControllerOfNoCopy(of)
	return set != nil && want != nil && set.UID == want.UID && history.Equal(live, of)
}

// copyOf returns a copy of a revision, which the set owns and nothing else.
func copyOf(revision *appsv1.ControllerRevision, set *v1alpha1.SidecarSet, namespace string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: revision.Name, Labels: maps.Clone(revision.Labels), Annotations: maps.Clone(revision.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, history.Kind())},
		},
		Data: revision.Data, Revision: revision.Revision,
	}
}
