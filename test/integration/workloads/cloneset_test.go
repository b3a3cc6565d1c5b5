// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
)

// await waits until the pods of the set are as wanted. The function returns what is missing.
func (w *world) await(what string, set *v1alpha1.CloneSet, missing func(pods map[string]*corev1.Pod) string) {
	w.Helper()
	w.Shows(set, what, func() error {
		if set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("status of generation %d, want %d", set.Status.ObservedGeneration, set.Generation)
		}
		if gap := missing(w.stored(set.Name)); gap != "" {
			return errors.New(gap)
		}
		return nil
	})
}

// Pods keep their UIDs, and their containers change in the order of their launch priorities.
func TestInPlaceUpdateKeepsPods(t *testing.T) {
	w := newWorld(t)
	set := w.cloneSet("web", 4, func(set *v1alpha1.CloneSet) {
		set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers, corev1.Container{
			Name: "side", Image: "side:1", Env: []corev1.EnvVar{{Name: pub.ContainerLaunchPriorityEnv, Value: "1"}},
		})
		set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
		set.Spec.UpdateStrategy.Partition = &intstr.IntOrString{IntVal: 1}
	})
	w.settled(set, 4, "image:1")
	before := w.stored("web")
	updated := func(want int) func(map[string]*corev1.Pod) string {
		return func(pods map[string]*corev1.Pod) string {
			n := 0
			for name, pod := range pods {
				if before[name] == nil || before[name].UID != pod.UID {
					return fmt.Sprintf("pod %s is new", name)
				}
				if pod.Spec.Containers[0].Image == "image:2" && pod.Spec.Containers[1].Image == "side:2" && planning.Ready(pod) &&
					pod.Labels[pub.LifecycleStateKey] == string(pub.LifecycleStateNormal) {
					if got := batches(pod); got != "[side] [main]" {
						return fmt.Sprintf("containers of pod %s change in the batches %s", name, got)
					}
					n++
				}
			}
			if n != want || int(set.Status.UpdatedReadyReplicas) != want {
				return fmt.Sprintf("%d pods are updated, %d by the status", n, set.Status.UpdatedReadyReplicas)
			}
			return ""
		}
	}
	w.Patch(set, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:2"},`+
		`{"name":"side","image":"side:2","env":[{"name":"KRUISE_CONTAINER_PRIORITY","value":"1"}]}]}}}}`)
	w.await("three pods are updated in place", set, updated(3))
	w.Patch(set, `{"spec":{"updateStrategy":{"partition":0}}}`)
	w.await("all pods are updated in place", set, updated(4))
}

// batches returns the names of the containers that were updated together.
func batches(pod *corev1.Pod) string {
	var state pub.InPlaceUpdateState
	if err := json.Unmarshal([]byte(pod.Annotations[pub.InPlaceUpdateStateKey]), &state); err != nil {
		return err.Error()
	}
	var names []string
	for _, batch := range state.ContainerBatchesRecord {
		names = append(names, fmt.Sprint(batch.Containers))
	}
	return strings.Join(names, " ")
}

// TestOlderVersionOfStatefulSets writes a set in v1alpha1, and gives its pods and revisions the owner
// references that earlier releases of OpenKruise wrote.
func TestOlderVersionOfStatefulSets(t *testing.T) {
	w := newWorldWithoutProgram(t, servers.Parallel(t))
	stop := w.start()
	set := w.statefulSet("db", 3, parallel)
	w.settled(set, 3, "image:1")
	stop()
	before := w.stored("db")
	var revisions appsv1.ControllerRevisionList
	w.List(&revisions)
	owned := []client.Object{&revisions.Items[0]}
	for _, pod := range before {
		owned = append(owned, pod)
	}
	for _, object := range owned {
		w.Must(w.Client.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op": "replace", "path": "/metadata/ownerReferences/0/apiVersion", "value": "apps.kruise.io/v1alpha1"}]`))))
	}

	w.start()
	older := &unstructured.Unstructured{}
	older.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("StatefulSet"))
	older.SetNamespace(w.Namespace)
	older.SetName("db")
	w.Patch(older, `{"spec":{"replicas":4}}`)
	w.settled(set, 4, "image:1")
	after := w.stored("db")
	for name, pod := range before {
		if after[name] == nil || after[name].UID != pod.UID {
			t.Errorf("pod %s is another one, want that with the owner reference of v1alpha1", name)
		}
	}
	w.Patch(older, `{"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"main","image":"image:2"}]}}}}`)
	w.settled(set, 2, "image:2")
	w.Get(older)
	if updated, _, _ := unstructured.NestedInt64(older.Object, "status", "updatedAvailableReplicas"); updated != 2 {
		t.Errorf("the status of v1alpha1 has %d updated pods that are available, want 2", updated)
	}
}

// TestPodOfAnOldRevisionIsRecreated deletes a pod that the partition keeps at the old revision. The update has removed the
// template of its claim, and a finalizer of the hook preDelete keeps the pod until the program of the hook acts.
func TestPodOfAnOldRevisionIsRecreated(t *testing.T) {
	const finalizer = "example.com/drain"
	w := newWorld(t)
	set := w.statefulSet("db", 1, withData(w.storageClass("fast", true)), func(set *v1beta1.StatefulSet) {
		set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{FinalizersHandler: []string{finalizer}}}
		set.Spec.Template.Finalizers = []string{finalizer}
		set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	})
	w.settled(set, 1, "image:1")
	w.Patch(set, `{"spec": {"volumeClaimTemplates": [], "updateStrategy": {"rollingUpdate": {"partition": 1}},
		"template": {"spec": {"containers": [{"name": "main", "image": "image:2"}]}}}}`)
	var deleted types.UID
	w.Shows(set, "the update begins", func() error {
		if pod := w.stored("db")["db-0"]; pod != nil {
			deleted = pod.UID
		}
		return await.ErrorIf(set.Status.UpdateRevision == set.Status.CurrentRevision || deleted == "", "no update revision")
	})
	pod := &corev1.Pod{ObjectMeta: w.Meta("db-0")}
	w.Delete(pod)
	w.Until("the pod is prepared for its deletion", func() error {
		pod := w.stored("db")["db-0"]
		return await.ErrorIf(pod == nil || pod.Labels[pub.LifecycleStateKey] != string(pub.LifecycleStatePreparingDelete), "pod %+v", pod)
	})
	w.Patch(pod, `{"metadata": {"finalizers": null}}`)
	w.Until("the pod is created again with its claim", func() error {
		pod := w.stored("db")["db-0"]
		return await.ErrorIf(pod == nil || pod.UID == deleted || pod.Spec.Containers[0].Image != "image:1" ||
			len(pod.Spec.Volumes) == 0 || pod.Spec.Volumes[0].PersistentVolumeClaim == nil, "pod %+v", pod)
	})
	w.Patch(pod, `{"metadata": {"finalizers": null}}`)
}

// The API server refuses to resize these pods, because their node does not report resources. With
// InPlaceIfPossible, they are recreated. With InPlaceOnly, the set reports it.
func TestResizeThatTheAPIServerRefuses(t *testing.T) {
	create := func(w *world, kind v1alpha1.CloneSetUpdateStrategyType) (*v1alpha1.CloneSet, map[types.UID]bool) {
		set := w.cloneSet("web", 2, func(set *v1alpha1.CloneSet) {
			set.Spec.UpdateStrategy.Type = kind
			set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		})
		w.settled(set, 2, "image:1")
		pods := w.stored("web")
		before := map[types.UID]bool{}
		for _, pod := range pods {
			before[pod.UID] = true
		}
		w.Patch(set, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:1","resources":{"requests":{"cpu":"2"}}}]}}}}`)
		return set, before
	}
	t.Run("InPlaceIfPossible", func(t *testing.T) {
		w := newWorld(t)
		set, before := create(w, v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType)
		w.settled(set, 2, "image:1")
		pods := w.stored("web")
		for name, pod := range pods {
			if cpu := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "2" || before[pod.UID] {
				t.Errorf("pod %s has cpu %s, is the old one: %t", name, cpu, before[pod.UID])
			}
		}
	})
	t.Run("InPlaceOnly", func(t *testing.T) {
		w := newWorld(t)
		set, before := create(w, v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType)
		w.Shows(set, "the condition FailedUpdate", func() error {
			found := slices.ContainsFunc(set.Status.Conditions, func(c v1alpha1.CloneSetCondition) bool {
				return c.Type == v1alpha1.CloneSetConditionFailedUpdate && strings.Contains(c.Message, "resize")
			})
			return await.ErrorIf(!found, "conditions %v", set.Status.Conditions)
		})
		pods := w.stored("web")
		for name, pod := range pods {
			if !before[pod.UID] {
				t.Errorf("pod %s is recreated", name)
			}
		}
	})
}

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
