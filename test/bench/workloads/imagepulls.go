// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
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

// pulls counts the pods of jobs, whose kubelets pull images at once.
type pulls struct {
	*jobs
	// exist are the pods that exist, and most is the highest number of them.
	exist map[types.UID]bool
	most  int
	// created is the number of all pods.
	created int
}

// measureImagePulls runs jobs on nodes without kubelets.
func measureImagePulls(b *harness.Bench) harness.Output {
	p := &pulls{jobs: newJobs(b, pullNamespace), exist: map[types.UID]bool{}}
	nodes := harness.Pick(b, 1000, 20)
	p.follow(pullNamespace, p.see, pullsItsImage)
	ours := p.server.ImagePulls()
	p.Idle(2 * time.Second)
	p.joinNodes(nodes, images())
	p.Idle(3 * time.Second)
	var took time.Duration
	counted := p.server.Counted(func() { took = p.run("absent", "registry.example.com/games/server:v2") })
	writes := total(counted) - 1 // That of the job itself.
	most, created := p.most, p.created
	p.run("present", presentImage)
	present := p.created - created
	restarted := p.restart(ours, harness.Pick(b, 10*time.Second, 4*time.Second))
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

// see counts the pods.
func (p *pulls) see(kind watch.EventType, pod *corev1.Pod) {
	switch kind {
	case watch.Added:
		p.exist[pod.UID] = true
		p.created++
		p.most = max(p.most, len(p.exist))
	case watch.Deleted:
		delete(p.exist, pod.UID)
	}
}

// pullsItsImage returns the statuses of a pod that pulls its image, and whose image is pulled.
func pullsItsImage(pod *corev1.Pod) []corev1.PodStatus {
	var statuses []corev1.PodStatus
	for _, reason := range []string{"ContainerCreating", "RunContainerError"} {
		status := pod.Status.DeepCopy()
		status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		}}
		statuses = append(statuses, *status)
	}
	return statuses
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
		return len(p.exist) == 0, nil
	})
	return took
}
