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
	queue         chan *corev1.Pod

	mu sync.Mutex
	// ready is what was last written, by the pod.
	ready map[types.UID]bool
	err   error
}

// startKubelets starts kubelets that end with the run.
func startKubelets(b *harness.Bench, s *harness.Server) *kubelets {
	b.Helper()
	ctx := b.Context()
	k := &kubelets{client: s.Client, queue: make(chan *corev1.Pod, 1<<16), ready: map[types.UID]bool{}}
	wait := fixture.Follow(b, s, &corev1.PodList{}, k.see, client.InNamespace(fixture.Namespace))
	var workers sync.WaitGroup
	for range harness.Clients {
		workers.Go(func() { k.work(ctx) })
	}
	b.Cleanup(func() {
		workers.Wait()
		if err := wait(); err != nil {
			b.Error(err)
		}
	})
	return k
}

// see enqueues a pod whose readiness changes. The queue is larger than the number of pods.
func (k *kubelets) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if event.Type == watch.Deleted {
		delete(k.ready, pod.UID)
		return
	}
	written, seen := k.ready[pod.UID]
	if pod.DeletionTimestamp != nil || seen && written == gatesTrue(pod) {
		return
	}
	k.ready[pod.UID] = gatesTrue(pod)
	k.queue <- pod
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
		select {
		case <-ctx.Done():
			return
		case pod := <-k.queue:
			if err := k.run(ctx, pod); err != nil && ctx.Err() == nil {
				k.mu.Lock()
				k.err = err
				k.mu.Unlock()
			}
		}
	}
}

// pods returns the number of pods.
func (k *kubelets) pods() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ready)
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
func (k *kubelets) run(ctx context.Context, pod *corev1.Pod) error {
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
