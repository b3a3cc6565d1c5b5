// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/builders"
)

const (
	namespace = "default"
	// clients is the number of concurrent requests that act as users, kubelets and agents.
	clients = 16
	// page is the number of objects per list request.
	page = 500
)

// cluster is a server with nodes and pods that nothing runs.
type cluster struct {
	*harness.Server
	run         *harness.Run
	nodes, pods int
	// group returns the value of the label by which markers select a pod.
	group func(pod int) string
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// newCluster starts a server with nodes and running pods, spread over the nodes.
func newCluster(ctx context.Context, r *harness.Run, nodes, pods int, group func(pod int) string) (*cluster, error) {
	s, err := r.Server(ctx)
	if err != nil {
		return nil, err
	}
	c := &cluster{Server: s, run: r, nodes: nodes, pods: pods, group: group}
	err = harness.Each(ctx, nodes, clients, func(ctx context.Context, i int) error {
		return c.create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}})
	})
	if err != nil {
		return nil, err
	}
	err = harness.Each(ctx, pods, clients, func(ctx context.Context, i int) error {
		pod := c.pod(i, nodeName(i%nodes))
		if err := c.create(ctx, pod); err != nil {
			return err
		}
		return c.setStatus(ctx, pod, running(i))
	})
	r.Log("%d nodes and %d pods are created", nodes, pods)
	return c, err
}

func (c *cluster) create(ctx context.Context, o client.Object) error {
	if err := c.Client.Create(ctx, o); err != nil {
		return fmt.Errorf("create %s: %w", o.GetName(), err)
	}
	return nil
}

func (c *cluster) setStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	pod.Status = status
	if err := c.Client.Status().Update(ctx, pod); err != nil {
		return fmt.Errorf("write status of pod %s: %w", pod.Name, err)
	}
	return nil
}

// pod returns a pod of typical size: two containers with environment and mounts.
func (c *cluster) pod(i int, node string) *corev1.Pod {
	group := c.group(i)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("workload-%s-5d8f7c9b6d-%05d", group, i),
			Labels: map[string]string{
				"group": group, "app.kubernetes.io/name": "workload", "app.kubernetes.io/instance": "production",
				"app.kubernetes.io/version": "1.2.3", "pod-template-hash": "5d8f7c9b6d",
			},
			Annotations: map[string]string{"checksum/config": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
		},
		Spec: corev1.PodSpec{NodeName: node},
	}
	for _, name := range []string{"main", "sidecar"} {
		container := corev1.Container{
			Name: name, Image: "registry.example.com/team/" + name + ":1.2.3",
			Ports: []corev1.ContainerPort{{Name: "http-" + name, ContainerPort: 8080}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
			}},
		}
		for n := range 12 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%02d", n), Value: "a value of some length, such as a URL"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	return pod
}

// starting returns the first status that a kubelet writes, before the containers run.
func starting() corev1.PodStatus {
	now := metav1.Now()
	status := corev1.PodStatus{Phase: corev1.PodPending, HostIP: "192.0.2.1", StartTime: &now}
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, name := range []string{"main", "sidecar"} {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Image: "registry.example.com/team/" + name + ":1.2.3",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		})
	}
	return status
}

// running returns the status of a pod whose containers run.
func running(i int) corev1.PodStatus {
	status := starting()
	status.Phase, status.PodIP = corev1.PodRunning, fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	for _, c := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: *status.StartTime})
	}
	for j := range status.ContainerStatuses {
		c := &status.ContainerStatuses[j]
		c.ContainerID, c.Ready = fmt.Sprintf("containerd://%064x", 2*i+j), true
		c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *status.StartTime}}
	}
	return status
}

// marker returns a marker of the pods of the group, which sets the label and a condition.
func marker(name, group, label string) *v1alpha1.PodProbeMarker {
	probe := builders.Probe("state").Container("main").
		Label(v1alpha1.ProbeSucceeded, label, "up").Label(v1alpha1.ProbeFailed, label, "down").
		Condition(label)
	return builders.Marker(namespace, name).Selector("group", group).Probe(probe).Build()
}

// planned returns how many pods and probes the plans contain.
func (c *cluster) planned(ctx context.Context) (pods, probes int, err error) {
	err = c.eachPlan(ctx, func(plan *v1alpha1.NodePodProbe) error {
		pods += len(plan.Spec.PodProbes)
		for _, pod := range plan.Spec.PodProbes {
			probes += len(pod.Probes)
		}
		return nil
	})
	return pods, probes, err
}

func (c *cluster) eachPlan(ctx context.Context, do func(*v1alpha1.NodePodProbe) error) error {
	for token := ""; ; {
		list := &v1alpha1.NodePodProbeList{}
		if err := c.Client.List(ctx, list, client.Limit(page), client.Continue(token)); err != nil {
			return fmt.Errorf("list plans: %w", err)
		}
		for i := range list.Items {
			if err := do(&list.Items[i]); err != nil {
				return err
			}
		}
		if token = list.Continue; token == "" {
			return nil
		}
	}
}

// everyNodeHasAPlan waits until the manager has created the NodePodProbes.
func (c *cluster) everyNodeHasAPlan(ctx context.Context) error {
	return harness.Until(ctx, "every node has a NodePodProbe", 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("NodePodProbeList"))
		err := c.Client.List(ctx, list)
		return len(list.Items) == c.nodes, err
	})
}
