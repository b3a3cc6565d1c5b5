// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/bench/nodeload"
)

// nodeName is the name of the measured agent's node.
const nodeName = "node-1"

// planOf returns the plan of a node whose pods have the given probes.
func planOf(pods int, ports nodeload.Ready, probes ...planned) v1alpha1.NodePodProbeSpec {
	var spec v1alpha1.NodePodProbeSpec
	if len(probes) == 0 {
		return spec
	}
	for n := range pods {
		pod := v1alpha1.PodProbe{
			Namespace: nodeload.Namespace, Name: nodeload.PodName(n), UID: nodeload.PodUID(n), IP: nodeload.PodIP(n),
		}
		for _, p := range probes {
			pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{
				Name: "game-server#" + string(p.handler), ContainerName: nodeload.Container,
				Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
					ProbeHandler: handlerOf(p.handler, ports), PeriodSeconds: p.period,
					TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
				}},
			})
		}
		spec.PodProbes = append(spec.PodProbes, pod)
	}
	return spec
}

func handlerOf(handler probe.Handler, ports nodeload.Ready) corev1.ProbeHandler {
	switch handler {
	case probe.HandlerExec:
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{nodeload.Command}}}
	case probe.HandlerTCP:
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(ports.TCP)}}
	default:
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: nodeload.Path, Port: intstr.FromInt(ports.HTTP), Scheme: corev1.URISchemeHTTP,
		}}
	}
}

// createPlan creates the namespace of the pods, the Node and its empty plan.
func createPlan(ctx context.Context, c client.Client) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: nodeload.Namespace}}
	if err := c.Create(ctx, namespace); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	if err := c.Create(ctx, node); err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	plan := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{
		Name: nodeName,
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		},
	}}
	if err := c.Create(ctx, plan); err != nil {
		return fmt.Errorf("create plan: %w", err)
	}
	return nil
}

// writePlan replaces the plan.
func writePlan(ctx context.Context, c client.Client, spec v1alpha1.NodePodProbeSpec) error {
	plan := &v1alpha1.NodePodProbe{}
	if err := c.Get(ctx, client.ObjectKey{Name: nodeName}, plan); err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	before := plan.DeepCopy()
	plan.Spec = spec
	if err := c.Patch(ctx, plan, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}
