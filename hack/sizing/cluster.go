// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
)

const (
	namespace = "default"
	// patience is the timeout of each stage.
	patience = 10 * time.Minute
	// page is the number of objects per list request.
	page = 500
)

// cluster acts as the users and the agents.
type cluster struct {
	size
	client client.Client
	// rounds counts the reports that each agent has written.
	rounds int
}

func (c *cluster) node(i int) string { return fmt.Sprintf("node-%05d", i) }

// fill creates the nodes, pods and markers.
func (c *cluster) fill(ctx context.Context) error {
	err := each(ctx, c.nodes, c.clients, func(ctx context.Context, i int) error {
		return c.create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.node(i)}})
	})
	if err != nil {
		return err
	}
	err = each(ctx, c.pods, c.clients, func(ctx context.Context, i int) error {
		pod := c.pod(i)
		if err := c.create(ctx, pod); err != nil {
			return err
		}
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255),
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
			},
		}
		if err := c.client.Status().Update(ctx, pod); err != nil {
			return fmt.Errorf("set pod %s to running: %w", pod.Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return each(ctx, c.markers, c.clients, func(ctx context.Context, i int) error {
		probe := builders.Probe("state").Container("main").
			Label(v1alpha1.ProbeSucceeded, "example.com/state", "up").Label(v1alpha1.ProbeFailed, "example.com/state", "down").
			Condition("example.com/state")
		return c.create(ctx, builders.Marker(namespace, fmt.Sprintf("marker-%03d", i)).Selector("group", strconv.Itoa(i)).Probe(probe).Build())
	})
}

func (c *cluster) create(ctx context.Context, o client.Object) error {
	if err := c.client.Create(ctx, o); err != nil {
		return fmt.Errorf("create %s: %w", o.GetName(), err)
	}
	return nil
}

// pod returns a pod of typical size: two containers with environment and mounts.
func (c *cluster) pod(i int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("workload-%d-5d8f7c9b6d-%05d", i%c.markers, i),
			Labels: map[string]string{
				"group": strconv.Itoa(i % c.markers), "app.kubernetes.io/name": "workload", "app.kubernetes.io/instance": "production",
				"app.kubernetes.io/version": "1.2.3", "pod-template-hash": "5d8f7c9b6d",
			},
			Annotations: map[string]string{"checksum/config": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
		},
		Spec: corev1.PodSpec{NodeName: c.node(i % c.nodes)},
	}
	for name, port := range map[string]int32{"main": 8080, "sidecar": 9090} {
		container := corev1.Container{
			Name: name, Image: "registry.example.com/team/" + name + ":1.2.3",
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port}},
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

// planned waits until the plans contain all pods.
func (c *cluster) planned(ctx context.Context) error {
	return c.until(ctx, func(ctx context.Context) (bool, error) {
		planned := 0
		err := c.plans(ctx, func(plan *v1alpha1.NodePodProbe) error {
			planned += len(plan.Spec.PodProbes)
			return nil
		})
		return planned == c.pods, err
	})
}

// reportAll reports a different state for all probes of every agent, and waits until every pod
// has the mark.
func (c *cluster) reportAll(ctx context.Context) error {
	c.rounds++
	state, label := v1alpha1.ProbeSucceeded, "up"
	if c.rounds%2 == 0 {
		state, label = v1alpha1.ProbeFailed, "down"
	}
	err := each(ctx, c.nodes, c.clients, func(ctx context.Context, i int) error {
		plan := &v1alpha1.NodePodProbe{}
		if err := c.client.Get(ctx, client.ObjectKey{Name: c.node(i)}, plan); err != nil {
			return fmt.Errorf("read plan of %s: %w", c.node(i), err)
		}
		report(plan, state)
		if err := c.client.Status().Update(ctx, plan); err != nil {
			return fmt.Errorf("report for %s: %w", c.node(i), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.until(ctx, func(ctx context.Context) (bool, error) {
		marked := &metav1.PartialObjectMetadataList{}
		marked.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		err := c.client.List(ctx, marked, client.MatchingLabels{"example.com/state": label})
		return len(marked.Items) == c.pods, err
	})
}

// report writes the state of every planned probe to the status.
func report(plan *v1alpha1.NodePodProbe, state v1alpha1.ProbeState) {
	now := metav1.Now()
	plan.Status = v1alpha1.NodePodProbeStatus{ObservedGeneration: plan.Generation}
	for _, pod := range plan.Spec.PodProbes {
		status := v1alpha1.PodProbeStatus{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID}
		for _, probe := range pod.Probes {
			status.ProbeStates = append(status.ProbeStates, v1alpha1.ContainerProbeState{
				Name: probe.Name, State: state, LastProbeTime: now, LastTransitionTime: now, Message: "as it was asked",
			})
		}
		plan.Status.PodProbeStatuses = append(plan.Status.PodProbeStatuses, status)
	}
}

func (c *cluster) plans(ctx context.Context, do func(*v1alpha1.NodePodProbe) error) error {
	for token := ""; ; {
		list := &v1alpha1.NodePodProbeList{}
		if err := c.client.List(ctx, list, client.Limit(page), client.Continue(token)); err != nil {
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

// until polls once per second, which is a negligible load on the API server.
func (c *cluster) until(ctx context.Context, done wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, done); err != nil {
		return fmt.Errorf("wait for the condition: %w", err)
	}
	return nil
}
