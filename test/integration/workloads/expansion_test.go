// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/await"
)

// storageClass creates a class. The test provisions and expands its volumes.
func (w *world) storageClass(name string, expands bool) string {
	w.Helper()
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name}, Provisioner: "example.com/none", AllowVolumeExpansion: &expands,
	}
	w.Create(class)
	w.Cleanup(func() { w.Must(client.IgnoreNotFound(w.Client.Delete(context.Background(), class))) })
	return class.Name
}

// withData adds claims of 1Gi of the class.
func withData(class string) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}}
	}
}

// provision gives the claim a volume of the size.
func (w *world) provision(name, size string) {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: w.Meta(name)}
	w.Must(w.Client.Status().Patch(w.Context(), claim, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"status":{"phase":"Bound","capacity":{"storage":%q}}}`, size))))
}

// expandTo changes the size of the template and the image.
func (w *world) expandTo(set *v1beta1.StatefulSet, size string) {
	w.Helper()
	w.Patch(set, `{"spec": {
		"volumeClaimUpdateStrategy": {"type": "OnPodRollingUpdate"},
		"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
			"storageClassName": %q, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": %q}}}}],
		"template": {"spec": {"containers": [{"name": "main", "image": "image:2"}]}}}}`,
		*set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName, size)
}

// sizes returns the size that each claim requests, and the image of its pod.
func (w *world) sizes(set *v1beta1.StatefulSet) map[string]string {
	w.Helper()
	var claims corev1.PersistentVolumeClaimList
	w.List(&claims)
	pods, found := w.stored(set.Name), map[string]string{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if pod := pods[claim.Name[len("data-"):]]; pod != nil {
			found[claim.Name] = claim.Spec.Resources.Requests.Storage().String() + " " + pod.Spec.Containers[0].Image
		}
	}
	return found
}

// has waits until the claims have the sizes, and their pods the images.
func (w *world) has(set *v1beta1.StatefulSet, want map[string]string) {
	w.Helper()
	w.Until(fmt.Sprint("claims and images are ", want), func() error {
		diff := cmp.Diff(want, w.sizes(set))
		return await.ErrorIf(diff != "", "%s", diff)
	})
}

// TestClaimsAreExpandedWithTheirPods expands the claims of one pod after the other, each before the update
// of its pod.
func TestClaimsAreExpandedWithTheirPods(t *testing.T) {
	w := newWorld(t)
	set := w.statefulSet("db", 2, parallel, withData(w.storageClass("fast", true)))
	w.settled(set, 2, "image:1")
	w.provision("data-db-0", "1Gi")
	w.provision("data-db-1", "1Gi")
	w.expandTo(set, "2Gi")
	for _, step := range []struct {
		want    map[string]string
		expands string
	}{
		{map[string]string{"data-db-0": "1Gi image:1", "data-db-1": "2Gi image:1"}, "data-db-1"},
		{map[string]string{"data-db-0": "2Gi image:1", "data-db-1": "2Gi image:2"}, "data-db-0"},
	} {
		w.has(set, step.want)
		w.provision(step.expands, "2Gi")
	}
	w.settled(set, 2, "image:2")
	w.Shows(set, "the status counts both claims", func() error {
		diff := cmp.Diff([]v1beta1.VolumeClaimStatus{{VolumeClaimName: "data", CompatibleReplicas: 2, CompatibleReadyReplicas: 2}}, set.Status.VolumeClaims)
		return await.ErrorIf(diff != "", "%s", diff)
	})
}

// TestClaimsThatCannotBeExpanded checks that the error of the API server is reported, that the pods stay as
// they are, and that the set scales nevertheless.
func TestClaimsThatCannotBeExpanded(t *testing.T) {
	w := newWorld(t)
	set := w.statefulSet("db", 2, parallel, withData(w.storageClass("fixed", false)))
	w.settled(set, 2, "image:1")
	w.provision("data-db-0", "1Gi")
	w.provision("data-db-1", "1Gi")
	w.expandTo(set, "2Gi")
	w.Shows(set, "the set reports the refused expansion", func() error {
		found := slices.ContainsFunc(set.Status.Conditions, func(c appsv1.StatefulSetCondition) bool {
			return c.Type == v1beta1.FailedUpdatePod && c.Status == corev1.ConditionTrue && c.Reason == "WriteFailed"
		})
		return await.ErrorIf(!found, "conditions %v", set.Status.Conditions)
	})
	w.Patch(set, `{"spec":{"replicas":3}}`)
	w.has(set, map[string]string{"data-db-0": "1Gi image:1", "data-db-1": "1Gi image:1", "data-db-2": "2Gi image:2"})
}
