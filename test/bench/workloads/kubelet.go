// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// kubelets run the containers of all pods at once: a pod becomes ready with one write of its status. Before, as
// the scheduler does, they bind a pod that is bound to no node yet to the only one that it permits.
// Pods have no termination grace period, so the API server removes them without a kubelet.
type kubelets struct {
	client client.Client
	// writes is the number of status writes, and binds that of bindings.
	writes, binds atomic.Int64
	// queue gives a pod to one worker at a time: the last status written is that of the last state of the pod.
	queue workqueue.TypedInterface[types.UID]

	mu   sync.Mutex
	last map[types.UID]*corev1.Pod
	err  error
}

// startKubelets starts kubelets that end with the run.
func startKubelets(b *harness.Bench, s *harness.Server) *kubelets {
	b.Helper()
	ctx := b.Context()
	k := &kubelets{client: s.Client, queue: workqueue.NewTyped[types.UID](), last: map[types.UID]*corev1.Pod{}}
	wait := fixture.Follow(b, s, &corev1.PodList{}, k.see, client.InNamespace(fixture.Namespace))
	var workers sync.WaitGroup
	for range harness.Clients {
		workers.Go(func() { k.work(ctx) })
	}
	context.AfterFunc(ctx, k.queue.ShutDown)
	b.Cleanup(func() {
		workers.Wait()
		if err := wait(); err != nil {
			b.Error(err)
		}
	})
	return k
}

// see enqueues a pod that is new or whose readiness changes.
func (k *kubelets) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if event.Type == watch.Deleted {
		delete(k.last, pod.UID)
		return
	}
	last, seen := k.last[pod.UID]
	k.last[pod.UID] = pod
	if pod.DeletionTimestamp == nil && (!seen || gatesTrue(last) != gatesTrue(pod)) {
		k.queue.Add(pod.UID)
	}
}

func gatesTrue(pod *corev1.Pod) bool {
	gates := map[corev1.PodConditionType]bool{}
	for _, c := range pod.Status.Conditions {
		gates[c.Type] = c.Status == corev1.ConditionTrue
	}
	for _, g := range pod.Spec.ReadinessGates {
		if !gates[g.ConditionType] {
			return false
		}
	}
	return true
}

func (k *kubelets) work(ctx context.Context) {
	for {
		uid, stopped := k.queue.Get()
		if stopped {
			return
		}
		if err := k.run(ctx, uid); err != nil && ctx.Err() == nil {
			k.mu.Lock()
			k.err = err
			k.mu.Unlock()
		}
		k.queue.Done(uid)
	}
}

// pods returns the number of pods.
func (k *kubelets) pods() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.last)
}

// bind binds the pod to the node that it permits.
func (k *kubelets) bind(ctx context.Context, pod *corev1.Pod) error {
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodefit.Target(pod)}}
	err := k.client.SubResource("binding").Create(ctx, &corev1.Pod{ObjectMeta: pod.ObjectMeta}, binding)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // The pod was deleted.
	}
	if err != nil {
		return fmt.Errorf("bind pod %s: %w", pod.Name, err)
	}
	k.binds.Add(1)
	return nil
}

// run writes that the containers of a pod run.
func (k *kubelets) run(ctx context.Context, uid types.UID) error {
	k.mu.Lock()
	pod, exists := k.last[uid]
	k.mu.Unlock()
	if !exists {
		return nil // The pod was deleted.
	}
	if pod.Spec.NodeName == "" {
		if err := k.bind(ctx, pod); err != nil {
			return err
		}
	}
	status := fixture.Running("10.0.0.1")
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == corev1.PodReady && !gatesTrue(pod) {
			c.Status = corev1.ConditionFalse
		}
	}
	for i, c := range pod.Spec.Containers {
		running := &status.ContainerStatuses[i]
		running.Image, running.ImageID = c.Image, "sha256:"+c.Image
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	target.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err = k.client.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, body))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // The pod was deleted.
	}
	if err != nil {
		return fmt.Errorf("write status of pod %s: %w", pod.Name, err)
	}
	k.writes.Add(1)
	return nil
}

// failure returns the last error of a write.
func (k *kubelets) failure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}
