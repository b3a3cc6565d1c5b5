// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
)

// largestRecord is the size of a record of claims in bytes, at most. The annotations of an object have at most 256 KiB.
const largestRecord = 64 << 10

// RecordClaims records the templates of the claims of a set in a revision that becomes its update revision. What the
// revision has recorded before, and the set does not have any more, is kept: its pods may still use these claims.
func RecordClaims(rev *appsv1.ControllerRevision, templates []corev1.PersistentVolumeClaim) error {
	templates = Claims(rev, templates)
	if len(templates) == 0 {
		return nil
	}
	text, err := json.Marshal(templates)
	if err != nil {
		return fmt.Errorf("encode spec.volumeClaimTemplates: %w", err)
	}
	if len(text) <= largestRecord {
		metav1.SetMetaDataAnnotation(&rev.ObjectMeta, pub.RevisionClaimTemplatesKey, string(text))
	}
	return nil
}

// Claims returns the templates of the claims of pods of a revision that is not the update revision: those of the set, which
// are the first ones, and those that the revision has recorded and that were removed from the set.
func Claims(rev *appsv1.ControllerRevision, templates []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaim {
	text := rev.Annotations[pub.RevisionClaimTemplatesKey]
	if text == "" {
		return templates
	}
	var recorded []corev1.PersistentVolumeClaim
	if json.Unmarshal([]byte(text), &recorded) != nil {
		return templates // Another program has changed it.
	}
	recorded = slices.DeleteFunc(recorded, func(r corev1.PersistentVolumeClaim) bool {
		return r.Name == "" || slices.ContainsFunc(templates, func(t corev1.PersistentVolumeClaim) bool { return t.Name == r.Name })
	})
	return slices.Concat(templates, recorded)
}

// AllClaims returns the templates of the set, and those that any of the revisions has recorded and that were removed from it.
func AllClaims(revisions []*appsv1.ControllerRevision, templates []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaim {
	last := ""
	for _, rev := range revisions {
		if text := rev.Annotations[pub.RevisionClaimTemplatesKey]; text != last { // Most revisions have the same.
			last, templates = text, Claims(rev, templates)
		}
	}
	return templates
}
