// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
)

// claimRecheck is when a pod is created again that waits for the end of a claim. The end of a claim does
// not cause a step.
const claimRecheck = time.Second

// retention is persistentVolumeClaimRetentionPolicy with its defaults.
type retention struct{ deleteWithSet, deleteWhenScaled bool }

func retentionOf(set *appsv1beta1.StatefulSet) retention {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil {
		return retention{}
	}
	return retention{
		deleteWithSet:    policy.WhenDeleted == appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType,
		deleteWhenScaled: policy.WhenScaled == appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
}

// claimName returns the name of the claim of a template and a pod.
func claimName(template, pod string) string { return template + "-" + pod }

// createClaims adds the missing claims of the pod with the name. It reports whether the pod may be
// created: not while one of its claims is being deleted, and not while one is owned by an earlier pod
// of the same name, because it is about to be deleted then.
func (p *planner) createClaims(pod string) bool {
	for i := range p.set.Spec.VolumeClaimTemplates {
		claim := p.claims[claimName(p.set.Spec.VolumeClaimTemplates[i].Name, pod)]
		if claim == nil {
			continue
		}
		if claim.DeletionTimestamp != nil || p.retention.deleteWhenScaled && ownedByPod(claim, pod) {
			p.requeue(claimRecheck)
			return false
		}
	}
	for i := range p.set.Spec.VolumeClaimTemplates {
		template := &p.set.Spec.VolumeClaimTemplates[i]
		if p.claims[claimName(template.Name, pod)] == nil {
			p.out.CreateClaims = append(p.out.CreateClaims, p.newClaim(template, pod))
		}
	}
	return true
}

// newClaim returns the claim of a template for the pod with the name.
func (p *planner) newClaim(template *corev1.PersistentVolumeClaim, pod string) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	claim.Name = claimName(template.Name, pod)
	claim.Namespace = p.set.Namespace
	if claim.Labels == nil {
		claim.Labels = make(map[string]string, len(p.set.Spec.Selector.MatchLabels))
	}
	for key, value := range p.set.Spec.Selector.MatchLabels {
		claim.Labels[key] = value
	}
	claim.OwnerReferences = nil
	if p.retention.deleteWithSet {
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p.set, Kind())}
	}
	claim.Status = corev1.PersistentVolumeClaimStatus{}
	return claim
}

// retainClaims updates the owners of the claims of a pod to the retention policy.
//
//   - A claim that is deleted with the set is owned by the set.
//   - A claim that is deleted when the set is scaled is owned by its pod once the pod is excess, so that
//     it is deleted after the pod.
//   - A claim that another controller owns, or an earlier set or pod of the same name, is not changed,
//     except that references to this set and pod are removed if another controller owns it too.
func (p *planner) retainClaims(pod *corev1.Pod, excess bool) {
	for i := range p.set.Spec.VolumeClaimTemplates {
		claim := p.claims[claimName(p.set.Spec.VolumeClaimTemplates[i].Name, pod.Name)]
		if claim == nil || p.stale(claim, pod) {
			continue
		}
		owners := p.owners(claim, pod, excess)
		if !equality.Semantic.DeepEqual(owners, claim.OwnerReferences) {
			claim = claim.DeepCopy()
			claim.OwnerReferences = owners
			p.out.UpdateClaims = append(p.out.UpdateClaims, claim)
		}
	}
}

// owners returns what the owner references of a claim should be, in the order that they have.
func (p *planner) owners(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod, excess bool) []metav1.OwnerReference {
	wanted := map[string]*metav1.OwnerReference{}
	switch {
	case p.foreignController(claim, pod):
	case excess && p.retention.deleteWhenScaled:
		wanted["Pod"] = metav1.NewControllerRef(pod, podKind())
	case p.retention.deleteWithSet:
		wanted["StatefulSet"] = metav1.NewControllerRef(p.set, Kind())
	}
	owners := make([]metav1.OwnerReference, 0, len(claim.OwnerReferences)+1)
	for _, owner := range claim.OwnerReferences {
		if !refersTo(&owner, p.set.Name, Kind()) && !refersTo(&owner, pod.Name, podKind()) {
			owners = append(owners, owner)
		} else if reference := wanted[owner.Kind]; reference != nil {
			reference.APIVersion = owner.APIVersion
			owners = append(owners, *reference)
			delete(wanted, owner.Kind)
		}
	}
	for _, kind := range []string{"Pod", "StatefulSet"} {
		if wanted[kind] != nil {
			owners = append(owners, *wanted[kind])
		}
	}
	return owners
}

// stale reports whether an earlier set or pod with the same name owns the claim.
func (p *planner) stale(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return refersTo(&owner, p.set.Name, Kind()) && owner.UID != p.set.UID ||
			refersTo(&owner, pod.Name, podKind()) && owner.UID != pod.UID
	})
}

// foreignController reports whether something else than the set and the pod controls the claim.
func (p *planner) foreignController(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	controller := metav1.GetControllerOf(claim)
	return controller != nil && !refersTo(controller, p.set.Name, Kind()) && !refersTo(controller, pod.Name, podKind())
}

// ownedByPod reports whether a pod with the name owns the claim.
func ownedByPod(claim *corev1.PersistentVolumeClaim, pod string) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return refersTo(&owner, pod, podKind())
	})
}

// refersTo reports whether the reference has the kind, in any version, and the name.
func refersTo(owner *metav1.OwnerReference, name string, kind schema.GroupVersionKind) bool {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && version.Group == kind.Group && owner.Kind == kind.Kind && owner.Name == name
}
