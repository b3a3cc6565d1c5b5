// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// jobs is an API server with a namespace in which objects create Jobs or pods.
type jobs struct {
	*harness.Bench
	server *harness.Server
	// mu guards what the watch of the namespace counts.
	mu sync.Mutex
	// pods are those that kubelets have not seen. They do not block the watch.
	pods chan *corev1.Pod
}

func newJobs(b *harness.Bench, namespace string) *jobs {
	b.Helper()
	j := &jobs{Bench: b, server: b.Server(), pods: make(chan *corev1.Pod, 10_000)}
	b.Must(j.server.Client.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	return j
}

// follow passes the events of the pods of the namespace to see, which holds the lock, and the new pods to kubelets, which
// write each of the statuses that report returns.
func (j *jobs) follow(namespace string, see func(kind watch.EventType, pod *corev1.Pod), report func(*corev1.Pod) []corev1.PodStatus) {
	j.Helper()
	for range harness.Clients {
		go j.kubelets(report)
	}
	fixture.Follow(j.Bench, j.server, &corev1.PodList{}, func(event watch.Event) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		see(event.Type, pod)
		if event.Type == watch.Added {
			j.pods <- pod
		}
	}, client.InNamespace(namespace))
}

func (j *jobs) kubelets(report func(*corev1.Pod) []corev1.PodStatus) {
	for {
		select {
		case <-j.Context().Done():
			return
		case pod := <-j.pods:
			pod = pod.DeepCopy()
			for _, pod.Status = range report(pod) {
				if err := j.server.Client.Status().Update(j.Context(), pod); err != nil && j.Context().Err() == nil {
					j.Error(err)
				}
			}
		}
	}
}

// restart returns the number of writes of a restart of the controllers.
func (j *jobs) restart(controllers *harness.Program, idle time.Duration) int {
	j.Helper()
	return total(j.server.Counted(func() {
		controllers.Restart()
		j.Idle(idle)
	}))
}

// total returns the number of writes.
func total(counted harness.Counters) int {
	sum := 0
	for _, written := range writesOf(counted.Requests) {
		sum += written
	}
	return sum
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// joinNodes creates ready nodes that have images.
func (j *jobs) joinNodes(nodes int, images []corev1.ContainerImage) {
	j.Helper()
	j.Each(nodes, harness.Clients, func(ctx context.Context, i int) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{"pool": "game"}}}
		if err := j.server.Client.Create(ctx, node); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
		node.Status.Images = images
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		return j.server.Client.Status().Update(ctx, node)
	})
}
