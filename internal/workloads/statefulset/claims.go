// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// retain reads persistentVolumeClaimRetentionPolicy.
func (p *planner) retain(policy *appsv1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy) {
	if policy != nil {
		p.deleteWithSet = policy.WhenDeleted == appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType
		p.deleteWhenScaled = policy.WhenScaled == appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType
	}
}

// createClaims adds the missing claims of the pod of the revision with the name. It reports whether the pod may be
// created: not while one of its claims is being deleted, and not while one is owned by an earlier pod
// of the same name, because it is about to be deleted then.
func (p *planner) createClaims(pod string, rev *appsv1.ControllerRevision) bool {
	templates := p.ClaimTemplates(rev)
	for i := range templates {
		claim := p.claims[step.ClaimName(&templates[i], pod)]
		if claim == nil {
			continue
		}
		if claim.DeletionTimestamp != nil || p.deleteWhenScaled && ownedByPod(claim, pod) {
			p.After(step.ClaimRecheck)
			return false
		}
	}
	for i := range templates {
		template := &templates[i]
		if p.claims[step.ClaimName(template, pod)] == nil {
			p.out.CreateClaims = append(p.out.CreateClaims, p.newClaim(template, pod))
		}
	}
	return true
}

func (p *planner) newClaim(template *corev1.PersistentVolumeClaim, pod string) *corev1.PersistentVolumeClaim {
	claim := p.NewClaim(template, pod)
	if p.deleteWithSet {
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p.set, Kind())}
	}
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
		claim := p.claims[step.ClaimName(&p.set.Spec.VolumeClaimTemplates[i], pod.Name)]
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
	case excess && p.deleteWhenScaled:
		wanted["Pod"] = metav1.NewControllerRef(pod, podKind())
	case p.deleteWithSet:
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

// growth is what must happen to the claims of a pod that follow changes of their templates.
type growth struct {
	// refused is why a claim cannot follow its template, empty if all can.
	refused string
	// smaller are the templates of the claims that request less than the template.
	smaller []*corev1.PersistentVolumeClaim
	// expanding reports whether a volume is being expanded.
	expanding bool
}

// growth returns what must happen to the claims of the pod, which may be nil. A claim that is not bound
// cannot be expanded yet, and one that is being deleted is created again with the template.
func (p *planner) growth(pod *corev1.Pod) (g growth) {
	if pod == nil || !p.strategy.claimsFollow {
		return g
	}
	for i := range p.set.Spec.VolumeClaimTemplates {
		template := &p.set.Spec.VolumeClaimTemplates[i]
		claim := p.claims[step.ClaimName(template, pod.Name)]
		if claim == nil || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		g.expanding = g.expanding || expanding(claim)
		switch why := incompatible(claim, template); {
		case g.refused != "":
		case why != "":
			g.refused = fmt.Sprintf("Claim %s of pod %s cannot follow its template: %s. "+
				"Delete the claim and the pod to create them again, or restore the template.", claim.Name, pod.Name, why)
		case smaller(claim, template):
			g.smaller = append(g.smaller, template)
		}
	}
	return g
}

// expandClaims lets the claims of a pod grow to the sizes of their templates before the pod is updated.
// It reports whether they have these sizes, and refuses claims that cannot get them.
func (p *planner) expandClaims(pod *corev1.Pod) bool {
	g := p.growth(pod)
	for _, template := range g.smaller {
		claim := p.claims[step.ClaimName(template, pod.Name)].DeepCopy()
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *template.Spec.Resources.Requests.Storage()}
		p.out.ExpandClaims = append(p.out.ExpandClaims, claim)
	}
	if g.refused != "" {
		p.refuse(claimIncompatible, g.refused)
		return false
	}
	p.expanding[pod.UID] = g.expanding || len(g.smaller) > 0
	return !p.expanding[pod.UID]
}

// claimsFit reports whether no claim of the pod must follow its template.
func (p *planner) claimsFit(pod *corev1.Pod) bool {
	g := p.growth(pod)
	return g.refused == "" && len(g.smaller) == 0
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
			claim := p.claims[step.ClaimName(template, pod.Name)]
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
