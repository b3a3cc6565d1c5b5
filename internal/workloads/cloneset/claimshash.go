// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/dump"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// recordClaims records the templates of claims in the update revision if it is new or becomes the update
// revision again. OpenKruise does the same, whether or not its gate is on.
func (p *planner) recordClaims() error {
	rev := p.revisions.Update
	if slices.ContainsFunc(p.Revisions, func(old *appsv1.ControllerRevision) bool {
		return old.Name == rev.Name && old.Revision == rev.Revision
	}) {
		return nil
	}
	hash, err := claimsHash(p.Set.Spec.VolumeClaimTemplates)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&rev.ObjectMeta, v1alpha1.CloneSetClaimTemplatesHashKey, hash)
	return nil
}

// newClaims reports whether the pods of the revision have other claims than those of the update
// revision. Revisions without a record have the same: it is not known what they have.
func (p *planner) newClaims(rev *appsv1.ControllerRevision) bool {
	before, recorded := rev.Annotations[v1alpha1.CloneSetClaimTemplatesHashKey]
	after, known := p.revisions.Update.Annotations[v1alpha1.CloneSetClaimTemplatesHashKey]
	return recorded && known && before != after
}

// claimsHash returns the hash of the templates, empty if there are none. It is the one that OpenKruise
// computes from templates with the defaults of its webhook: an update after a take-over, or after a
// return, compares hashes of both.
func claimsHash(templates []corev1.PersistentVolumeClaim) (string, error) {
	if len(templates) == 0 {
		return "", nil
	}
	claims := make([]hashedClaim, len(templates))
	for i := range templates {
		claims[i].Metadata.Name, claims[i].Spec = templates[i].Name, *templates[i].Spec.DeepCopy()
		if claims[i].Spec.VolumeMode == nil {
			claims[i].Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
		}
	}
	return hashClaims(claims)
}

// hashedClaim is the part of a template that the hash depends on, as the JSON form that a claim has with
// the Kubernetes libraries of OpenKruise.
type hashedClaim struct {
	Metadata struct {
		Name              string       `json:"name"`
		CreationTimestamp *metav1.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec   corev1.PersistentVolumeClaimSpec `json:"spec"`
	Status struct{}                         `json:"status"`
}

func hashClaims(claims []hashedClaim) (string, error) {
	slices.SortStableFunc(claims, func(a, b hashedClaim) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	text, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("encode spec.volumeClaimTemplates: %w", err)
	}
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, dump.ForHash(text))
	return strconv.FormatUint(uint64(h.Sum32()), 10), nil
}
