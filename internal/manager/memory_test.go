// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/uuid"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestMemoryOfPods fills the store of the manager's cache with the pods of many workloads and
// measures the live memory per pod, including keys and indexes.
func TestMemoryOfPods(t *testing.T) {
	// With these numbers, the hash tables of the store are three quarters full, as they are on
	// average.
	const pods, perWorkload = 24_000, 50
	for name, tc := range map[string]struct {
		pod  func(workload, replica int) *corev1.Pod
		most uint64
	}{
		"not selected":          {unselectedPod, 1_600},
		"marked, 10 containers": {markedPod, 3_072},
	} {
		t.Run(name, func(t *testing.T) {
			indexers := gather.PodIndexers()
			indexers[toolscache.NamespaceIndex] = toolscache.MetaNamespaceIndexFunc
			store := toolscache.NewIndexer(toolscache.DeletionHandlingMetaNamespaceKeyFunc, indexers)
			trim := podview.Transform(podview.NewPodTrimmer(podview.Options{Defaults: plan.KubernetesDefaults()}).Trim)
			before := liveMemory()
			for i := range pods {
				trimmed, err := trim(received(t, tc.pod(i/perWorkload, i%perWorkload)))
				expect.NoError(t, err)
				expect.NoError(t, store.Add(trimmed))
			}
			perPod := (liveMemory() - before) / pods
			t.Logf("%d bytes per pod", perPod)
			if perPod > tc.most {
				t.Errorf("%d bytes per pod, want at most %d", perPod, tc.most)
			}
			runtime.KeepAlive(store)
			runtime.KeepAlive(trim)
		})
	}
}

// TestMemoryOfReports measures the live memory per reported pod with two probes, as TestMemoryOfPods
// does per pod.
func TestMemoryOfReports(t *testing.T) {
	const slices, perSlice, perNode, most = 3_000, 8, 4, 768
	store := toolscache.NewIndexer(toolscache.DeletionHandlingMetaNamespaceKeyFunc, gather.SliceIndexers())
	trim := podview.Transform(podview.TrimReport)
	before := liveMemory()
	for i := range slices {
		wire, err := json.Marshal(fullReport(fmt.Sprintf("worker-%d", i/perNode), i%perNode, perSlice))
		expect.NoError(t, err)
		decoded := &seamarkv1alpha1.ProbeReport{}
		expect.NoError(t, json.Unmarshal(wire, decoded))
		trimmed, err := trim(decoded)
		expect.NoError(t, err)
		expect.NoError(t, store.Add(trimmed))
	}
	perPod := (liveMemory() - before) / (slices * perSlice)
	t.Logf("%d bytes per pod", perPod)
	if perPod > most {
		t.Errorf("%d bytes per pod, want at most %d", perPod, most)
	}
	runtime.KeepAlive(store)
}

// fullReport returns a ProbeReport as an API server serves it.
func fullReport(node string, number, pods int) *seamarkv1alpha1.ProbeReport {
	at := metav1.NewTime(time.Unix(1_750_000_000, 0))
	report := &seamarkv1alpha1.ProbeReport{NodeName: node, ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s.%d", node, number), UID: uuid.NewUUID(), ResourceVersion: fmt.Sprint(123_456_789 + number), CreationTimestamp: at,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: uuid.NewUUID()}},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "seamark-agent", Operation: metav1.ManagedFieldsOperationUpdate, Time: &at, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:ownerReferences":{}},"f:nodeName":{},"f:pods":{}}`),
		}},
	}}
	for i := range pods {
		pod := seamarkv1alpha1.PodReport{Namespace: "games", Name: fmt.Sprintf("gameserver-%d-%d", number, i), UID: string(uuid.NewUUID())}
		for _, probe := range []string{"game#idle", "game#healthy"} {
			pod.Probes = append(pod.Probes, v1alpha1.ContainerProbeState{
				Name: probe, State: v1alpha1.ProbeSucceeded, LastProbeTime: at, LastTransitionTime: at,
				Plan: "a1b2c3d4", ContainerID: "0123456789abc", Message: fmt.Sprintf("%d of 16 players are connected", i),
			})
		}
		report.Pods = append(report.Pods, pod)
	}
	return report
}

// liveMemory returns the size of all reachable objects in bytes.
func liveMemory() uint64 {
	// The second collection frees what the first one queues, such as interned strings.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// received returns the pod as an informer receives it, with memory of its own.
func received(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	wire, err := pod.Marshal()
	expect.NoError(t, err)
	decoded := &corev1.Pod{}
	expect.NoError(t, decoded.Unmarshal(wire))
	return decoded
}

// unselectedPod returns a pod of a Deployment, as an API server serves it.
func unselectedPod(workload, replica int) *corev1.Pod {
	name := fmt.Sprintf("backend-%d", workload%100)
	now := metav1.NewTime(time.Unix(1_750_000_000, 0))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%d", workload/16), Name: fmt.Sprintf("%s-7d4f9c8b6f-%05d", name, replica),
			GenerateName: name + "-7d4f9c8b6f-", UID: uuid.NewUUID(), CreationTimestamp: now,
			ResourceVersion: fmt.Sprint(123_456_789 + workload*100 + replica),
			Labels: map[string]string{
				"app.kubernetes.io/name": name, "app.kubernetes.io/instance": name, "pod-template-hash": "7d4f9c8b6f",
			},
			Annotations:     map[string]string{"prometheus.io/scrape": "true", "cni.projectcalico.org/podIP": fmt.Sprintf("10.1.2.%d/32", replica)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: "u"}},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
				FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{}}}`), Time: &now,
			}},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("worker-%d", (workload*7+replica)%480)},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.1.%d.%d", workload%250, replica), HostIP: "10.0.0.1",
		},
	}
	for i := range 3 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("container-%d", i), Image: "registry.example.com/backend:1.2.3",
			Ports: []corev1.ContainerPort{{Name: fmt.Sprintf("http-%d", i), ContainerPort: 8080}},
			Env:   []corev1.EnvVar{{Name: "A", Value: "b"}},
		})
	}
	for _, kind := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	return pod
}

// markedPod returns a pod with ten containers and a sidecar, and with a label and two conditions
// that Seamark has set.
func markedPod(workload, replica int) *corev1.Pod {
	pod := unselectedPod(workload, replica)
	for i := range 7 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("more-%d", i), Image: "i"})
	}
	pod.Spec.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	maps.Copy(pod.Labels, map[string]string{"example.com/idle": fmt.Sprint(replica%2 == 0)})
	now := metav1.NewTime(time.Unix(1_750_000_000+int64(replica), 0))
	for _, kind := range []corev1.PodConditionType{"example.com/idle", "example.com/healthy"} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
			Message: fmt.Sprintf("%d of 16 players are connected", replica),
		})
	}
	pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: "seamark", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", APIVersion: "v1", FieldsType: "FieldsV1", Time: &now,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:example.com/idle":{}}},"f:status":{"f:conditions":{` +
			`"k:{\"type\":\"example.com/healthy\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:message":{},"f:status":{},"f:type":{}},` +
			`"k:{\"type\":\"example.com/idle\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:message":{},"f:status":{},"f:type":{}}}}}`),
	})
	return pod
}

func TestEndedPodsAreNotCached(t *testing.T) {
	found := false
	for object, options := range Caches(Options{}).ByObject {
		if _, isPod := object.(*corev1.Pod); !isPod {
			continue
		}
		found = true
		for phase, want := range map[corev1.PodPhase]bool{
			"": true, corev1.PodPending: true, corev1.PodRunning: true, corev1.PodUnknown: true,
			corev1.PodSucceeded: false, corev1.PodFailed: false,
		} {
			expect.Equal(t, fmt.Sprintf("a pod in phase %q is cached", phase), want, options.Field.Matches(fields.Set{"status.phase": string(phase)}))
		}
	}
	if !found {
		t.Error("the cache has no options for pods")
	}
}
