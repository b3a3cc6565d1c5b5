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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// The rows of the measure of ImagePullJobs.
const (
	rowPullWrites  = "a job on 1,000 nodes, 50 at a time: writes per node, two of the kubelet included"
	rowPullTime    = "until all nodes have the image"
	rowPullMost    = "most pods of the job at any event"
	rowPullPresent = "an image that 1,000 nodes have: pods"
	rowPullIdle    = "writes of a restart with jobs that do not end"
)

const (
	pullNamespace = "pulls"
	pullsAtOnce   = 50
	presentImage  = "registry.example.com/games/server:v1"
)

// pulls is an API server with nodes, whose kubelets pull images at once.
type pulls struct {
	*harness.Bench
	server *harness.Server

	mu sync.Mutex
	// pods are those that exist, and most is the highest number of them.
	pods map[types.UID]bool
	most int
	// created is the number of all pods.
	created int
	// jobs reports to kubelets, which do not block the watch.
	jobs chan *corev1.Pod
}

// measureImagePulls runs jobs on nodes without kubelets.
func measureImagePulls(b *harness.Bench) harness.Output {
	p := &pulls{Bench: b, server: b.Server(), pods: map[types.UID]bool{}, jobs: make(chan *corev1.Pod, 10_000)}
	b.Must(p.server.Client.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pullNamespace}}))
	nodes := harness.Pick(b, 1000, 20)
	for range harness.Clients {
		go p.kubelets()
	}
	fixture.Follow(b, p.server, &corev1.PodList{}, p.see, client.InNamespace(pullNamespace))
	ours := p.server.ImagePulls()
	p.Idle(2 * time.Second)
	joinNodes(b, p.server, nodes, images())
	p.Idle(3 * time.Second)
	var took time.Duration
	counted := p.server.Counted(func() { took = p.run("absent", "registry.example.com/games/server:v2") })
	writes := total(counted) - 1 // That of the job itself.
	most, created := p.most, p.created
	p.run("present", presentImage)
	present := p.created - created
	restarted := total(p.server.Counted(func() {
		ours.Restart()
		p.Idle(harness.Pick(b, 10*time.Second, 4*time.Second))
	}))
	return harness.Output{
		Results: []harness.Result{
			{Name: rowPullWrites, Value: float64(writes) / float64(nodes), Budget: harness.AtMost(6)},
			{Name: rowPullTime, Value: took.Seconds(), Unit: "s"},
			{Name: rowPullMost, Value: float64(most), Budget: harness.AtMost(pullsAtOnce)},
			{Name: rowPullPresent, Value: float64(present), Budget: harness.AtMost(0)},
			{Name: rowPullIdle, Value: float64(restarted), Budget: harness.AtMost(0)},
		},
		Notes: []string{"The nodes have no kubelets: the benchmark reports twice for each pod that the image is pulled, as soon as it sees the pod."},
	}
}

// images returns 50 images of a node, with presentImage.
func images() []corev1.ContainerImage {
	images := []corev1.ContainerImage{{Names: []string{presentImage}}}
	for i := range 49 {
		images = append(images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/others/image-%d:v1", i), fmt.Sprintf("registry.example.com/others/image@sha256:%064d", i)}})
	}
	return images
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// joinNodes creates ready nodes that have images.
func joinNodes(b *harness.Bench, server *harness.Server, nodes int, images []corev1.ContainerImage) {
	b.Helper()
	b.Each(nodes, harness.Clients, func(ctx context.Context, i int) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{"pool": "game"}}}
		if err := server.Client.Create(ctx, node); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
		node.Status.Images = images
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		return server.Client.Status().Update(ctx, node)
	})
}

// see counts the pods, and passes new ones to the kubelets.
func (p *pulls) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch event.Type {
	case watch.Added:
		p.pods[pod.UID] = true
		p.created++
		p.most = max(p.most, len(p.pods))
		p.jobs <- pod
	case watch.Deleted:
		delete(p.pods, pod.UID)
	}
}

// kubelets reports that pods pull their images, and that they are pulled.
func (p *pulls) kubelets() {
	for {
		select {
		case <-p.Context().Done():
			return
		case pod := <-p.jobs:
			pod = pod.DeepCopy()
			for _, status := range []corev1.ContainerStatus{
				{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
				{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError"}}},
			} {
				status.Name, status.Image = pod.Spec.Containers[0].Name, pod.Spec.Containers[0].Image
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
				if err := p.server.Client.Status().Update(p.Context(), pod); err != nil && p.Context().Err() == nil {
					p.Error(err)
				}
			}
		}
	}
}

// run creates a job that does not end, and returns how long it takes until all nodes have the image.
func (p *pulls) run(name, image string) time.Duration {
	p.Helper()
	job := &v1alpha1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: pullNamespace, Name: name}}
	job.Spec.Image, job.Spec.Parallelism = image, new(intstr.FromInt32(pullsAtOnce))
	job.Spec.CompletionPolicy.Type = v1alpha1.CompleteNever
	from := time.Now()
	p.Must(p.server.Client.Create(p.Context(), job))
	p.Until("all nodes have the image", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		err := p.server.Client.Get(ctx, client.ObjectKeyFromObject(job), job)
		return job.Status.Desired > 0 && job.Status.Succeeded == job.Status.Desired, err
	})
	took := time.Since(from)
	p.Until("all pods are gone", 50*time.Millisecond, func(context.Context) (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.pods) == 0, nil
	})
	return took
}
