// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// PlanTrimmer trims the NodePodProbes of a cache. It keeps all of spec and status, because a plan
// is compared with the compiled one field by field, but pods with equal probes, which are those of
// a workload, share them. They must not be modified. It is safe for concurrent use.
type PlanTrimmer struct {
	probes *pool[[]v1alpha1.ContainerProbe]
}

// NewPlanTrimmer returns a trimmer.
func NewPlanTrimmer() *PlanTrimmer {
	return &PlanTrimmer{probes: newPool[[]v1alpha1.ContainerProbe]()}
}

// Trim returns a NodePodProbe without the metadata that is not read. Its creation is the last change
// of the plan: see Edited.
func (t *PlanTrimmer) Trim(npp *v1alpha1.NodePodProbe) *v1alpha1.NodePodProbe {
	trimmed := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{
			Name:              npp.Name,
			UID:               npp.UID,
			ResourceVersion:   npp.ResourceVersion,
			Generation:        npp.Generation,
			Annotations:       npp.Annotations,
			CreationTimestamp: metav1.NewTime(Edited(npp)),
			DeletionTimestamp: npp.DeletionTimestamp,
			OwnerReferences:   npp.OwnerReferences,
		},
		Status: npp.Status,
	}
	if npp.Spec.PodProbes == nil {
		return trimmed
	}
	trimmed.Spec.PodProbes = make([]v1alpha1.PodProbe, len(npp.Spec.PodProbes))
	for i := range npp.Spec.PodProbes {
		pod := &npp.Spec.PodProbes[i]
		name, uid := pack(pod.Name, pod.UID)
		trimmed.Spec.PodProbes[i] = v1alpha1.PodProbe{
			Name: name, Namespace: intern(pod.Namespace), UID: uid, RuntimeUID: pod.RuntimeUID, IP: pod.IP,
			Probes: t.shared(pod.Probes),
		}
	}
	return trimmed
}

// shared returns the shared copy of equal probes.
func (t *PlanTrimmer) shared(probes []v1alpha1.ContainerProbe) []v1alpha1.ContainerProbe {
	if len(probes) == 0 {
		return probes
	}
	text, err := json.Marshal(probes)
	if err != nil {
		// The types of a plan always encode.
		return probes
	}
	return t.probes.share(text, probes)
}
