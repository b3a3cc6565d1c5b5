// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// claimRecheck is when the claims of a pod are created again that waits for the end of one.
const claimRecheck = time.Second

// claims creates the claims of new pods and decides who owns the others. A claim belongs to the set,
// so that a new pod can use it when its pod has been deleted by somebody else. Before the set deletes
// a pod, its claims become the pod's, and Kubernetes deletes them with the pod. With disablePVCReuse,
// a claim becomes the pod's as soon as the pod exists. The set itself never deletes a claim: a cache
// that does not contain the pod of a claim yet would cost the data of the pod.
func (p *planner) claims(creates []*corev1.Pod) {
	if len(p.Set.Spec.VolumeClaimTemplates)+len(p.Claims) == 0 {
		return
	}
	existing := make(map[string]*corev1.PersistentVolumeClaim, len(p.Claims))
	for _, claim := range p.Claims {
		existing[claim.Name] = claim
	}
	wanted := make(map[string]bool)
	for _, pod := range creates {
		wanted[pod.Labels[v1alpha1.CloneSetInstanceID]] = true
		p.createClaims(pod, existing)
	}
	// A claim may be deleted before its pod uses it, or the cache had one that does not exist any more
	// when the pod was created: the pod would wait for it forever.
	for _, m := range p.members {
		if m.pod.Status.Phase == corev1.PodPending && !m.leaving() {
			p.createClaims(m.pod, existing)
		}
	}
	if len(p.Claims) == 0 {
		return
	}
	leaving := p.claimOwners()
	for _, claim := range p.Claims {
		id := claim.Labels[v1alpha1.CloneSetInstanceID]
		if claim.DeletionTimestamp != nil || id == "" || wanted[id] {
			continue
		}
		p.assign(claim, leaving[id])
	}
}

// createClaims creates the missing claims that the pod uses. The end of a claim does not cause a step.
func (p *planner) createClaims(pod *corev1.Pod, existing map[string]*corev1.PersistentVolumeClaim) {
	id := pod.Labels[v1alpha1.CloneSetInstanceID]
	for i := range p.Set.Spec.VolumeClaimTemplates {
		template := &p.Set.Spec.VolumeClaimTemplates[i]
		name := p.claimName(template, id)
		switch claim := existing[name]; {
		case claim == nil && uses(pod, name):
			p.out.CreateClaims = append(p.out.CreateClaims, p.newClaim(template, id))
		case claim != nil && claim.DeletionTimestamp != nil:
			p.after(claimRecheck)
		}
	}
}

// uses reports whether a volume of the pod is the claim.
func uses(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

// tenant is who uses a claim.
type tenant struct {
	pod *corev1.Pod
	// leaves reports whether the claim is to be deleted with the pod.
	leaves bool
}

// claimOwners returns the pods by their instance IDs.
func (p *planner) claimOwners() map[string]tenant {
	tenants := make(map[string]tenant, len(p.Pods))
	for _, pod := range p.Pods {
		if id := pod.Labels[v1alpha1.CloneSetInstanceID]; id != "" {
			tenants[id] = tenant{pod: pod, leaves: p.Set.Spec.ScaleStrategy.DisablePVCReuse && p.mine(pod)}
		}
	}
	for _, m := range p.members {
		if id := m.pod.Labels[v1alpha1.CloneSetInstanceID]; id != "" && m.deleted {
			tenants[id] = tenant{pod: m.pod, leaves: true}
		}
	}
	return tenants
}

// assign gives the claim to the set or to its pod.
func (p *planner) assign(claim *corev1.PersistentVolumeClaim, t tenant) {
	switch {
	case t.pod == nil:
	case !t.leaves && workload.Active(t.pod) && p.mine(t.pod) && p.lost(claim, t.pod):
		changed := claim.DeepCopy()
		changed.OwnerReferences = append(changed.OwnerReferences, *metav1.NewControllerRef(p.Set, Kind()))
		p.out.UpdateClaims = append(p.out.UpdateClaims, changed)
	case t.leaves && (p.owned(claim) || p.lost(claim, t.pod)):
		changed := claim.DeepCopy()
		p.disown(changed)
		changed.OwnerReferences = append(changed.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "Pod", Name: t.pod.Name, UID: t.pod.UID,
		})
		p.out.UpdateClaims = append(p.out.UpdateClaims, changed)
	case !t.leaves && workload.Active(t.pod) && ownedBy(claim, t.pod) && p.mine(t.pod):
		// The deletion of the pod was decided and not executed, and is not wanted any more.
		changed := claim.DeepCopy()
		changed.OwnerReferences = slices.DeleteFunc(changed.OwnerReferences,
			func(ref metav1.OwnerReference) bool { return ref.UID == t.pod.UID })
		changed.OwnerReferences = append(changed.OwnerReferences, *metav1.NewControllerRef(p.Set, Kind()))
		p.out.UpdateClaims = append(p.out.UpdateClaims, changed)
	}
}

// lost reports whether the claim has no owner, but is that of the pod: the set was deleted without its
// pods and claims, and created again.
func (p *planner) lost(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	id := pod.Labels[v1alpha1.CloneSetInstanceID]
	return len(claim.OwnerReferences) == 0 && slices.ContainsFunc(p.Set.Spec.VolumeClaimTemplates,
		func(template corev1.PersistentVolumeClaim) bool { return claim.Name == p.claimName(&template, id) })
}

// reserving returns the pods that have ended or are being deleted by somebody else and whose names new
// pods wait for: their replacements use their claims.
func (p *planner) reserving() []*corev1.Pod {
	if p.Set.Spec.ScaleStrategy.DisablePVCReuse || len(p.Set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	leaving := make(map[string]*corev1.Pod)
	for _, pod := range p.Pods {
		if workload.Terminating(pod) && p.mine(pod) || p.finished(pod) {
			leaving[pod.Labels[v1alpha1.CloneSetInstanceID]] = pod
		}
	}
	var pods []*corev1.Pod
	for _, claim := range p.Claims {
		id := claim.Labels[v1alpha1.CloneSetInstanceID]
		if id != "" && leaving[id] != nil && claim.DeletionTimestamp == nil && p.owned(claim) {
			pods = append(pods, leaving[id])
			delete(leaving, id)
		}
	}
	return pods
}

// owned reports whether the set owns the claim.
func (p *planner) owned(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(claim.OwnerReferences,
		func(ref metav1.OwnerReference) bool { return ref.UID == p.Set.UID })
}

func (p *planner) disown(claim *corev1.PersistentVolumeClaim) {
	claim.OwnerReferences = slices.DeleteFunc(claim.OwnerReferences,
		func(ref metav1.OwnerReference) bool { return ref.UID == p.Set.UID })
}

func ownedBy(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.OwnerReferences,
		func(ref metav1.OwnerReference) bool { return ref.UID == pod.UID })
}

// mine reports whether the set controls the pod.
func (p *planner) mine(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(pod)
	return controller != nil && controller.UID == p.Set.UID
}

// newClaim returns the claim of the template for the pod with the instance ID.
func (p *planner) newClaim(template *corev1.PersistentVolumeClaim, id string) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	claim.Namespace, claim.Name = p.Set.Namespace, p.claimName(template, id)
	claim.Labels = union(claim.Labels, p.Set.Spec.Selector.MatchLabels,
		map[string]string{v1alpha1.CloneSetInstanceID: id})
	claim.OwnerReferences = append(claim.OwnerReferences, *metav1.NewControllerRef(p.Set, Kind()))
	return claim
}

func (p *planner) claimName(template *corev1.PersistentVolumeClaim, id string) string {
	return template.Name + "-" + p.Set.Name + "-" + id
}

// mount adds the volumes of the pod's claims. They replace volumes of the template with the same name.
func (p *planner) mount(pod *corev1.Pod, id string) {
	for i := range p.Set.Spec.VolumeClaimTemplates {
		template := &p.Set.Spec.VolumeClaimTemplates[i]
		volume := corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.claimName(template, id)},
		}}
		same := func(v corev1.Volume) bool { return v.Name == template.Name }
		if at := slices.IndexFunc(pod.Spec.Volumes, same); at >= 0 {
			pod.Spec.Volumes[at] = volume
		} else {
			pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
		}
	}
}
