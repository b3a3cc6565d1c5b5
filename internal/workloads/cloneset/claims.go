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
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// claims creates the claims of new pods and decides who owns the others. A claim belongs to the set,
// so that a new pod can use it when its pod has been deleted by somebody else. Before the set deletes
// a pod, its claims become the pod's, and Kubernetes deletes them with the pod. With disablePVCReuse,
// a claim becomes the pod's as soon as the pod exists. The set itself never deletes a claim: a cache
// that does not contain the pod of a claim yet would cost the data of the pod.
func (p *planner) claims() {
	if len(revision.AllClaims(p.History.All, p.Set.Spec.VolumeClaimTemplates))+len(p.Claims) == 0 {
		return
	}
	existing := make(map[string]*corev1.PersistentVolumeClaim, len(p.Claims))
	for _, claim := range p.Claims {
		existing[claim.Name] = claim
	}
	wanted := make(map[string]bool)
	for _, pod := range p.out.Creates {
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

// createClaims creates the missing claims that the pod uses.
func (p *planner) createClaims(pod *corev1.Pod, existing map[string]*corev1.PersistentVolumeClaim) {
	id := pod.Labels[v1alpha1.CloneSetInstanceID]
	templates := p.ClaimTemplates(revision.Of(pod, p.History.All))
	for i := range templates {
		template := &templates[i]
		name := step.ClaimName(template, p.Set.Name+"-"+id)
		switch claim := existing[name]; {
		case claim == nil && uses(pod, name):
			p.out.CreateClaims = append(p.out.CreateClaims, p.newClaim(template, id))
		case claim != nil && claim.DeletionTimestamp != nil:
			p.After(step.ClaimRecheck)
		}
	}
}

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
	if t.pod == nil {
		return
	}
	set := *metav1.NewControllerRef(p.Set, Kind())
	pod := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: t.pod.Name, UID: t.pod.UID}
	lost := p.lost(claim, t.pod)
	switch {
	case t.leaves && (lost || p.owns(claim)):
		p.give(claim, set, pod)
	case !t.leaves && planning.Active(t.pod) && p.mine(t.pod) && (lost || owner.Named(claim, &pod).Owns(claim)):
		// The pod owns it if its deletion was decided and not executed, and is not wanted any more.
		p.give(claim, pod, set)
	}
}

func (p *planner) give(claim *corev1.PersistentVolumeClaim, from, to metav1.OwnerReference) {
	changed := claim.DeepCopy()
	changed.OwnerReferences = owner.Add(slices.DeleteFunc(changed.OwnerReferences,
		func(ref metav1.OwnerReference) bool { return ref.UID == from.UID }), to)
	p.out.UpdateClaims = append(p.out.UpdateClaims, changed)
}

// lost reports whether the claim has no owner, but is that of the pod: the set was deleted without its
// pods and claims, and created again.
func (p *planner) lost(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	id := pod.Labels[v1alpha1.CloneSetInstanceID]
	return len(claim.OwnerReferences) == 0 && slices.ContainsFunc(p.Set.Spec.VolumeClaimTemplates,
		func(template corev1.PersistentVolumeClaim) bool {
			return claim.Name == step.ClaimName(&template, p.Set.Name+"-"+id)
		})
}

// reserving returns the pods that have ended or are being deleted by somebody else and whose names new
// pods wait for: their replacements use their claims.
func (p *planner) reserving() []*corev1.Pod {
	if p.Set.Spec.ScaleStrategy.DisablePVCReuse || len(p.Set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	leaving := make(map[string]*corev1.Pod)
	for _, pod := range p.Pods {
		if planning.Terminating(pod) && p.mine(pod) || p.finished(pod) {
			leaving[pod.Labels[v1alpha1.CloneSetInstanceID]] = pod
		}
	}
	var pods []*corev1.Pod
	for _, claim := range p.Claims {
		id := claim.Labels[v1alpha1.CloneSetInstanceID]
		if id != "" && leaving[id] != nil && claim.DeletionTimestamp == nil && p.owns(claim) {
			pods = append(pods, leaving[id])
			delete(leaving, id)
		}
	}
	return pods
}

// owns reports whether the set owns the claim.
func (p *planner) owns(claim *corev1.PersistentVolumeClaim) bool {
	return owner.Of(Kind(), p.Set).Owns(claim)
}

// mine reports whether the set controls the pod.
func (p *planner) mine(pod *corev1.Pod) bool { return owner.Of(Kind(), p.Set).Controls(pod) }

// newClaim returns the claim of the template for the pod with the instance ID.
func (p *planner) newClaim(template *corev1.PersistentVolumeClaim, id string) *corev1.PersistentVolumeClaim {
	claim := p.NewClaim(template, p.Set.Name+"-"+id)
	claim.Labels[v1alpha1.CloneSetInstanceID] = id
	claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p.Set, Kind())}
	return claim
}

// recordClaims records the templates of claims in the update revision if it is new or becomes the update
// revision again. OpenKruise does the same, whether or not its gate is on.
func (p *planner) recordClaims() error {
	if !p.Begins() {
		return nil
	}
	hash, err := claimsHash(p.Set.Spec.VolumeClaimTemplates)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&p.History.Update.ObjectMeta, v1alpha1.CloneSetClaimTemplatesHashKey, hash)
	return nil
}

// newClaims reports whether the pods of the revision have other claims than those of the update
// revision. Revisions without a record have the same: it is not known what they have.
func (p *planner) newClaims(rev *appsv1.ControllerRevision) bool {
	before, recorded := rev.Annotations[v1alpha1.CloneSetClaimTemplatesHashKey]
	after, known := p.History.Update.Annotations[v1alpha1.CloneSetClaimTemplatesHashKey]
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
