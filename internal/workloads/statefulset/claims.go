// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"iter"
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

// expandClaims lets the claims of a pod grow to the sizes of their templates before the pod is updated.
// It reports whether they have these sizes, and refuses claims that cannot get them.
func (p *planner) expandClaims(pod *corev1.Pod) bool {
	expanded := true
	for template, claim := range p.following(pod) {
		switch why := incompatible(claim, template); {
		case why != "":
			p.refuse(claimIncompatible, fmt.Sprintf("Claim %s of pod %s cannot follow its template: %s. "+
				"Delete the claim and the pod to create them again, or restore the template.", claim.Name, pod.Name, why))
			return false
		case smaller(claim, template):
			claim = claim.DeepCopy()
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *template.Spec.Resources.Requests.Storage()}
			p.out.ExpandClaims = append(p.out.ExpandClaims, claim)
			expanded = false
		case expanding(claim):
			expanded = false
		}
	}
	p.expanding[pod.UID] = !expanded
	return expanded
}

// claimsFit reports whether no claim of the pod must follow its template.
func (p *planner) claimsFit(pod *corev1.Pod) bool {
	for template, claim := range p.following(pod) {
		if incompatible(claim, template) != "" || smaller(claim, template) {
			return false
		}
	}
	return true
}

// claimsExpand reports whether a volume of the pod is being expanded.
func (p *planner) claimsExpand(pod *corev1.Pod) bool {
	for _, claim := range p.following(pod) {
		if expanding(claim) {
			return true
		}
	}
	return false
}

// following returns the templates and claims of the pod that follow changes of the templates. A claim that
// is not bound cannot be expanded yet, and one that is being deleted is created again with the template.
func (p *planner) following(pod *corev1.Pod) iter.Seq2[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaim] {
	return func(yield func(template, claim *corev1.PersistentVolumeClaim) bool) {
		if pod == nil || !p.strategy.claimsFollow {
			return
		}
		for i := range p.set.Spec.VolumeClaimTemplates {
			template := &p.set.Spec.VolumeClaimTemplates[i]
			claim := p.claims[claimName(template.Name, pod.Name)]
			if claim == nil || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound {
				continue
			}
			if !yield(template, claim) {
				return
			}
		}
	}
}

// incompatible returns why the claim cannot follow the template, even with another size. A claim or template
// without a class has the default class.
func incompatible(claim, template *corev1.PersistentVolumeClaim) string {
	if have, want := claim.Spec.StorageClassName, template.Spec.StorageClassName; have != nil && want != nil && *have != *want {
		return fmt.Sprintf("spec.storageClassName is %q in the claim and %q in the template", *have, *want)
	}
	if have, want := claim.Spec.AccessModes, template.Spec.AccessModes; !slices.Equal(have, want) {
		return fmt.Sprintf("spec.accessModes are %v in the claim and %v in the template", have, want)
	}
	return ""
}

// expanding reports whether the volume is smaller than requested, and is expanded without the help of the
// kubelet: a file system may have to wait until a pod is started.
func expanding(claim *corev1.PersistentVolumeClaim) bool {
	return !expanded(claim) && !slices.ContainsFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue
	})
}

// expanded reports whether the volume has the size that is requested.
func expanded(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Capacity.Storage().Cmp(*claim.Spec.Resources.Requests.Storage()) >= 0
}

// smaller reports whether the claim requests less than the template. A claim is never shrunk.
func smaller(claim, template *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.Resources.Requests.Storage().Cmp(*template.Spec.Resources.Requests.Storage()) < 0
}

// claimStatus returns how many pods have claims that are compatible with the templates.
func (p *planner) claimStatus() []appsv1beta1.VolumeClaimStatus {
	var all []appsv1beta1.VolumeClaimStatus
	for i := range p.set.Spec.VolumeClaimTemplates {
		template := &p.set.Spec.VolumeClaimTemplates[i]
		status := appsv1beta1.VolumeClaimStatus{VolumeClaimName: template.Name}
		for pod := range p.members() {
			claim := p.claims[claimName(template.Name, pod.Name)]
			if claim == nil || claim.DeletionTimestamp != nil || incompatible(claim, template) != "" ||
				smaller(claim, template) {
				continue
			}
			status.CompatibleReplicas++
			if expanded(claim) {
				status.CompatibleReadyReplicas++
			}
		}
		all = append(all, status)
	}
	return all
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
