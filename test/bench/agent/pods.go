// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/bench/nodeload"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const (
	// podImage is preloaded on every local cluster.
	podImage = "docker.io/library/busybox:1.35"
	podPort  = 8080
	// agentPort is the port of the agent's metrics in the chart.
	agentPort = 18357
)

// attach finds the installed agent of the node.
func (b *clusterBench) attach(ctx context.Context) error {
	pods := &corev1.PodList{}
	err := b.client.List(ctx, pods, client.InNamespace(env.SystemNamespace), client.MatchingFields{"spec.nodeName": b.node},
		client.MatchingLabels{"app.kubernetes.io/component": "agent"})
	if err != nil {
		return fmt.Errorf("list the agents of %s: %w", b.node, err)
	}
	if len(pods.Items) != 1 {
		return fmt.Errorf("%w: %d agents on %s, want 1: run `make install`", harness.ErrSkipped, len(pods.Items), b.node)
	}
	pod := &pods.Items[0]
	if b.pid, err = processOf(pod.UID, "seamark-agent"); err != nil {
		return err
	}
	b.agent = harness.Attach("seamark-agent", b.pid, fmt.Sprintf("%s:%d", pod.Status.HostIP, agentPort))
	planned, err := b.agent.Total(ctx, "seamark_agent_planned_probes")
	b.before = int(planned)
	return err
}

// processOf returns the process of a program in a pod.
func processOf(pod types.UID, program string) (int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	for _, path := range paths {
		name, err := os.ReadFile(path) //nolint:gosec // it is a path of /proc
		if err != nil || strings.TrimSpace(string(name)) != program {
			continue
		}
		folder := filepath.Dir(path)
		groups, err := os.ReadFile(filepath.Join(folder, "cgroup")) //nolint:gosec // it is a path of /proc
		if err != nil || !strings.Contains(string(groups), string(pod)) {
			continue
		}
		var pid int
		if _, err := fmt.Sscan(filepath.Base(folder), &pid); err == nil {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no process %s of pod %s on this machine", program, pod)
}

// createPods creates a namespace with running pods. It is deleted when the measure ends.
func (b *clusterBench) createPods(ctx context.Context, n int) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if err := b.client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	b.namespace = namespace.Name
	b.OnEnd(func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return errors.Join(b.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(b.namespace), client.GracePeriodSeconds(0)),
			b.client.Delete(ctx, namespace))
	})
	err := harness.Until(ctx, "the namespace has its service account", time.Second, func(ctx context.Context) (bool, error) {
		err := b.client.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	for i := 0; i < n && err == nil; i++ {
		err = b.client.Create(ctx, b.pod(i))
	}
	if err != nil {
		return fmt.Errorf("create pods: %w", err)
	}
	return harness.Until(ctx, fmt.Sprintf("%d pods run", n), time.Second, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		err := b.client.List(ctx, pods, client.InNamespace(b.namespace))
		b.pods = pods.Items
		for i := range b.pods {
			if b.pods[i].Status.Phase != corev1.PodRunning {
				return false, err
			}
		}
		return err == nil, err
	})
}

// pod returns a pod with an HTTP server.
func (b *clusterBench) pod(i int) *corev1.Pod {
	const server = "cd /tmp && echo ok >index.html && exec httpd -f -p 8080"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: nodeload.PodName(i), Labels: map[string]string{"app": "bench"}},
		Spec: corev1.PodSpec{
			NodeName: b.node, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: nodeload.Container, Image: podImage, ImagePullPolicy: corev1.PullNever, Command: []string{"sh", "-c", server},
			}},
		},
	}
}

// markerOf returns a marker with the probes, which sets a condition for each.
func markerOf(namespace string, planned ...planned) *v1alpha1.PodProbeMarker {
	marker := &v1alpha1.PodProbeMarker{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "bench-"},
		Spec:       v1alpha1.PodProbeMarkerSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "bench"}}},
	}
	for _, p := range planned {
		ports := nodeload.Ready{HTTP: podPort, TCP: podPort}
		marker.Spec.Probes = append(marker.Spec.Probes, v1alpha1.PodContainerProbe{
			Name: string(p.handler), ContainerName: nodeload.Container, PodConditionType: "bench.seamark.dev/" + string(p.handler),
			Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
				ProbeHandler: handlerOf(p.handler, ports), PeriodSeconds: p.period, TimeoutSeconds: timeoutOf(p.handler),
			}},
		})
	}
	return marker
}

// timeoutOf returns the timeout of probes on a machine that also runs the pods: a command takes
// long to start.
func timeoutOf(handler probe.Handler) int32 {
	const exec, other = 5, 1
	if handler == probe.HandlerExec {
		return exec
	}
	return other
}
