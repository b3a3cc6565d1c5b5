// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
)

func withClaims(set *v1alpha1.CloneSet) {
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}}
}

// TestChangedClaimsRecreatePods updates a set in place twice, with the gate: only the second change is
// one of the claims, too.
func TestChangedClaimsRecreatePods(t *testing.T) {
	w := newWorldWithoutProgram(t)
	w.startWith(func(o *workloads.Options) { o.RecreateForClaims = true })
	set := w.cloneSet("web", 2, withClaims, func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
	})
	w.settled(set, 2, "image:1")
	before, err := w.pods(t.Context(), "web")
	w.must(err)
	const update = `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`
	w.patch(set, update, "image:2")
	w.settled(set, 2, "image:2")
	inPlace, err := w.pods(t.Context(), "web")
	w.must(err)
	set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	set.Spec.Template.Spec.Containers[0].Image = "image:3"
	w.must(w.client.Update(t.Context(), set))
	w.settled(set, 2, "image:3")
	recreated, err := w.pods(t.Context(), "web")
	w.must(err)
	for name := range before {
		if inPlace[name] == nil || recreated[name] != nil {
			t.Errorf("pod %s: in place %t, exists after the change of the claims %t, want only the first",
				name, inPlace[name] != nil, recreated[name] != nil)
		}
	}
	for name := range recreated {
		var claim corev1.PersistentVolumeClaim
		w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "data-" + name}, &claim))
		if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.String() != "2Gi" {
			t.Errorf("claim %s requests %s, want 2Gi", claim.Name, size.String())
		}
	}
}

func TestClaimsLiveAsLongAsTheirPods(t *testing.T) {
	w := newWorld(t)
	set := w.cloneSet("web", 2, withClaims)
	w.settled(set, 2, "image:1")
	pods, err := w.pods(t.Context(), "web")
	w.must(err)
	killed, other := slices.Sorted(maps.Keys(pods))[0], slices.Sorted(maps.Keys(pods))[1]

	// Somebody else deletes the pod: the new pod has its name and its claim.
	w.must(w.client.Delete(t.Context(), pods[killed]))
	w.await("the pod is back", set, func(now map[string]*corev1.Pod) string {
		if now[killed] == nil || now[killed].UID == pods[killed].UID || !isReady(now[killed]) {
			return "the pod is not back"
		}
		return ""
	})
	// The set deletes the pod: the claim becomes the pod's.
	w.patch(set, `{"spec":{"replicas":1,"scaleStrategy":{"podsToDelete":[%q]}}}`, other)
	w.awaitGone(set, other, 1)
	for name, want := range map[string]string{killed: "CloneSet", other: "Pod"} {
		var claim corev1.PersistentVolumeClaim
		w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "data-" + name}, &claim))
		if len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].Kind != want {
			t.Errorf("owners of claim %s: %+v, want one %s", claim.Name, claim.OwnerReferences, want)
		}
	}
	w.await("the name without a pod is reported", set, func(map[string]*corev1.Pod) string {
		for _, c := range set.Status.Conditions {
			if c.Type == "PodsToDeleteNotFound" && c.Status == corev1.ConditionTrue && strings.Contains(c.Message, other) {
				return ""
			}
		}
		return fmt.Sprintf("conditions %+v", set.Status.Conditions)
	})
}
