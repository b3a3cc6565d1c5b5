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
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
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
		images = append(
			images, corev1.ContainerImage{
				Names: []string{fmt.Sprintf("registry.example.com/others/image-%d:v1", i), fmt.Sprintf("registry.example.com/others/image@sha256:%064d", i)},
			},
		)
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

// The rows of the measure of BroadcastJobs.
const (
	rowBroadcastTime   = "a job on 1,000 nodes at once: until each has a pod"
	rowBroadcastWrites = "writes per node, one of the kubelet included"
	rowBroadcastServer = "API server's processor time per node"
	rowBroadcastEnd    = "until the job is complete"
	rowBroadcastSteps  = "a job on 1,000 nodes, in steps of 50: until it is complete"
	rowBroadcastMost   = "most pods that have not ended at any event"
	rowBroadcastIdle   = "writes of a restart with jobs that have ended"
)

const (
	broadcastNamespace = "broadcasts"
	stepSize           = 50
)

// broadcasts counts the pods of jobs, whose kubelets end pods at once.
type broadcasts struct {
	*jobs
	// created are the pods that were created, with active the number of those that have not ended, and most its highest value.
	created, active, most int
	ended                 map[types.UID]bool
}

// measureBroadcastJobs runs jobs on nodes without kubelets, after a client that only creates as many pods.
func measureBroadcastJobs(b *harness.Bench) harness.Output {
	m := &broadcasts{jobs: newJobs(b, broadcastNamespace), ended: map[types.UID]bool{}}
	nodes := harness.Pick(b, 1000, 20)
	m.follow(broadcastNamespace, m.see, func(*corev1.Pod) []corev1.PodStatus { return []corev1.PodStatus{{Phase: corev1.PodSucceeded}} })
	m.joinNodes(nodes, nil)
	m.run("warm", nodes, m.bare)
	floor := m.run("bare", nodes, m.bare)
	ours := m.server.BroadcastJobs()
	b.Idle(harness.Pick(b, 3*time.Second, time.Second))
	atOnce := m.run("at-once", nodes, m.job(nil))
	steps := m.run("steps", nodes, m.job(new(intstr.FromInt32(harness.Pick[int32](b, stepSize, 5)))))
	restarted := m.restart(ours, harness.Pick(b, 10*time.Second, 4*time.Second))
	perNode := func(value float64) float64 { return value / float64(nodes) }
	return harness.Output{
		Results: []harness.Result{
			{Name: rowBroadcastTime, Value: atOnce.created.Seconds(), Unit: "s", Floor: floor.created.Seconds(), FloorName: bareClient},
			{Name: rowBroadcastWrites, Value: perNode(float64(total(atOnce.counters))), Floor: perNode(float64(total(floor.counters))), FloorName: bareClient},
			{
				Name: rowBroadcastServer, Value: perNode(atOnce.counters.CPU.Seconds() * 1000), Unit: "ms",
				Floor: perNode(floor.counters.CPU.Seconds() * 1000), FloorName: bareClient,
			},
			{Name: rowBroadcastEnd, Value: atOnce.complete.Seconds(), Unit: "s", Floor: floor.complete.Seconds(), FloorName: bareClient},
			{Name: rowBroadcastSteps, Value: steps.complete.Seconds(), Unit: "s"},
			{Name: rowBroadcastMost, Value: float64(steps.most), Budget: harness.AtMost(stepSize)},
			{Name: rowBroadcastIdle, Value: float64(restarted), Budget: harness.AtMost(0)},
		},
		Notes: []string{
			"The nodes have no kubelets: the benchmark reports once for each pod that it has succeeded, as soon as it sees the pod.",
			fmt.Sprintf("The bare client creates the same pods with %d requests at a time, and is complete when all have succeeded.", harness.Clients),
		},
	}
}

const bareClient = "bare client"

// broadcast is what a job took: until all pods were created, and until it was complete.
type broadcast struct {
	created, complete time.Duration
	counters          harness.Counters
	most              int
}

// run starts pods on all nodes, and waits until they have succeeded and the function that start returns says that this is
// known.
func (m *broadcasts) run(name string, nodes int, start func(name string, nodes int) (complete func(context.Context) (bool, error))) (took broadcast) {
	m.Helper()
	m.mu.Lock()
	m.created, m.active, m.most = 0, 0, 0
	m.mu.Unlock()
	took.counters = m.server.Counted(func() {
		from := time.Now()
		complete := start(name, nodes)
		const poll = 20 * time.Millisecond
		m.Until("each node has a pod", poll, func(context.Context) (bool, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.created == nodes, nil
		})
		took.created = time.Since(from)
		m.Until("the pods have succeeded", poll, func(ctx context.Context) (bool, error) {
			m.mu.Lock()
			active := m.active
			m.mu.Unlock()
			if active > 0 {
				return false, nil
			}
			return complete(ctx)
		})
		took.complete = time.Since(from)
		m.Idle(harness.Pick(m.Bench, 2*time.Second, 500*time.Millisecond)) // The status follows.
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	took.most = m.most
	return took
}

func newBroadcastJob(name string, parallelism *intstr.IntOrString) *v1alpha1.BroadcastJob {
	return &v1alpha1.BroadcastJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: broadcastNamespace, Name: name},
		Spec: v1alpha1.BroadcastJobSpec{Parallelism: parallelism, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
		}}},
	}
}

// bare creates the pods of a job that does not exist.
func (m *broadcasts) bare(name string, nodes int) func(context.Context) (bool, error) {
	m.Helper()
	job := newBroadcastJob(name, nil)
	job.UID = types.UID(name)
	m.Each(nodes, harness.Clients, func(ctx context.Context, i int) error {
		return m.server.Client.Create(ctx, broadcastjob.Pod(job, nodeName(i)))
	})
	return func(context.Context) (bool, error) { return true, nil }
}

// job returns a function that creates a job.
func (m *broadcasts) job(parallelism *intstr.IntOrString) func(string, int) func(context.Context) (bool, error) {
	return func(name string, nodes int) func(context.Context) (bool, error) {
		m.Helper()
		job := newBroadcastJob(name, parallelism)
		m.Must(m.server.Client.Create(m.Context(), job))
		return func(ctx context.Context) (bool, error) {
			err := m.server.Client.Get(ctx, client.ObjectKeyFromObject(job), job)
			return job.Status.Phase == v1alpha1.BroadcastJobCompleted && int(job.Status.Succeeded) == nodes, err
		}
	}
}

// see counts the pods.
func (m *broadcasts) see(kind watch.EventType, pod *corev1.Pod) {
	switch {
	case kind == watch.Added:
		m.created++
		m.active++
		m.most = max(m.most, m.active)
	case planning.Finished(pod) && !m.ended[pod.UID]:
		m.ended[pod.UID] = true
		m.active--
	}
}
