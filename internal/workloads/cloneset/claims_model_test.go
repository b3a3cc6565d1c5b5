// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/model"
)

// FuzzModelOfClaims is FuzzModel for sets with claims whose templates change.
func FuzzModelOfClaims(f *testing.F) {
	model.Fuzz(f, 40, func(seed uint64) model.Config {
		config := modelConfig(seed)
		newSet := config.New
		config.Planner = modelPlanner(seed%4 > 1, seed%2 == 0)
		config.New = func(r *rand.Rand) model.Object {
			set := asSet(newSet(r))
			set.Spec.VolumeClaimTemplates = claimTemplates(r)
			set.Spec.ScaleStrategy.DisablePVCReuse = seed%3 == 0
			return set
		}
		config.Users = append(config.Users, model.Edit("claims", 2, func(w *model.World, set *v1alpha1.CloneSet) string {
			set.Spec.VolumeClaimTemplates = claimTemplates(w.Rand)
			return fmt.Sprintf("%d templates", len(set.Spec.VolumeClaimTemplates))
		}))
		return config
	})
}

// claimTemplates returns none, one or two templates.
func claimTemplates(r *rand.Rand) []corev1.PersistentVolumeClaim {
	templates := make([]corev1.PersistentVolumeClaim, r.IntN(3))
	for i := range templates {
		templates[i].Name = []string{"data", "logs"}[i]
		templates[i].Spec.Resources.Requests = corev1.ResourceList{
			corev1.ResourceStorage: resource.MustParse(model.OneOf(r, "1Gi", "2Gi")),
		}
	}
	return templates
}

// gatheredClaims returns the claims that the controller passes to Plan.
func gatheredClaims(view *model.State) []*corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(slices.Clone(view.Claims), func(claim *corev1.PersistentVolumeClaim) bool {
		return !seen(claim, asSet(view.Set))
	})
}

// seen reports whether the set owns the claim, or has a template of such claims.
func seen(claim *corev1.PersistentVolumeClaim, set *v1alpha1.CloneSet) bool {
	return owner.Of(Kind(), set).Owns(claim) ||
		slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(template corev1.PersistentVolumeClaim) bool {
			return strings.HasPrefix(claim.Name, template.Name+"-"+set.Name+"-")
		})
}

// claimsAtRest checks that each pod has its claims, and that a claim is deleted with the pod if the set
// does not reuse claims.
func claimsAtRest(s *model.State, set *v1alpha1.CloneSet) error {
	for _, pod := range s.Pods {
		if !metav1.IsControlledBy(pod, set) || !planning.Active(pod) {
			continue
		}
		for _, volume := range pod.Spec.Volumes {
			name := volume.PersistentVolumeClaim.ClaimName
			i := slices.IndexFunc(s.Claims, func(c *corev1.PersistentVolumeClaim) bool { return c.Name == name })
			if i < 0 || s.Claims[i].DeletionTimestamp != nil {
				return fmt.Errorf("pod %s has no claim %s", pod.Name, name)
			}
			// A set does not change the owners of claims whose template it has no longer.
			if seen(s.Claims[i], set) && set.Spec.ScaleStrategy.DisablePVCReuse != owner.Of(corev1.SchemeGroupVersion.WithKind("Pod"), pod).Owns(s.Claims[i]) {
				return fmt.Errorf("claim %s has the owners %v", name, s.Claims[i].OwnerReferences)
			}
		}
	}
	return nil
}
