// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fill fills an API server with pods that have probes, as Seamark's programs leave them: with
// plans, reports, marks and events. It runs no program.
package fill

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const (
	// ProbesPerPod is the number of probes of each pod.
	ProbesPerPod  = 2
	podsPerNode   = 100
	podsPerReport = 8
	// clients is the number of parallel requests.
	clients = 16
)

// Filler fills one namespace.
type Filler struct {
	// Config and Client have all rights and no rate limit.
	Config *rest.Config
	Client client.Client
	// Namespace exists, and has nothing else.
	Namespace string
	// Pods is the number of pods.
	Pods int
	// Pod returns a running pod with the label app=game and the container main.
	Pod func(namespace, name, node string) *corev1.Pod
}

// Fill creates the pods on their nodes. They have a marker with two probes, of which one succeeds
// and sets a condition, and one fails and sets a label.
func (f Filler) Fill(ctx context.Context) error {
	marker := builders.Marker(f.Namespace, "game").Unsaved().
		Probe(builders.Probe("idle").Condition("game.io/idle")).
		Probe(builders.Probe("map").Label(v1alpha1.ProbeFailed, "map", "loading")).Build()
	if err := f.Client.Create(ctx, marker); err != nil {
		return fmt.Errorf("create marker: %w", err)
	}
	compiled, err := plan.Compile(marker)
	if err != nil {
		return fmt.Errorf("compile marker: %w", err)
	}
	pods := make([]*corev1.Pod, f.Pods)
	err = each(ctx, f.Pods, func(ctx context.Context, i int) (err error) {
		pods[i], err = env.CreatePod(ctx, f.Client, f.Pod(f.Namespace, fmt.Sprintf("game-%d", i), f.node(i)))
		return err
	})
	if err != nil {
		return err
	}
	writer, err := metadata.NewForConfig(f.Config)
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	marks := apply.NewPods(writer)
	return each(ctx, (f.Pods+podsPerNode-1)/podsPerNode, func(ctx context.Context, n int) error {
		first := n * podsPerNode
		return f.fillNode(ctx, f.node(first), pods[first:min(first+podsPerNode, f.Pods)], []*plan.Marker{compiled}, marks)
	})
}

func each(ctx context.Context, n int, work func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := range n {
		group.Go(func() error { return work(ctx, i) })
	}
	return group.Wait() //nolint:wrapcheck // work has wrapped the error
}

func (f Filler) node(pod int) string { return fmt.Sprintf("%s-%d", f.Namespace, pod/podsPerNode) }

// fillNode creates what the manager and the agent write for the pods of a node.
func (f Filler) fillNode(ctx context.Context, node string, pods []*corev1.Pod, markers []*plan.Marker, marks *apply.Pods) error {
	if err := f.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}); err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	defaults := plan.KubernetesDefaults()
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: plan.Node(pods, markers, defaults)}
	if err := f.Client.Create(ctx, npp); err != nil {
		return fmt.Errorf("create plan: %w", err)
	}
	npp.Status = v1alpha1.NodePodProbeStatus{ObservedGeneration: npp.Generation, ProbeReports: true}
	if err := f.Client.Status().Update(ctx, npp); err != nil {
		return fmt.Errorf("update status of plan: %w", err)
	}
	var reports []*seamarkv1alpha1.ProbeReport
	for first := 0; first < len(pods); first += podsPerReport {
		report := reportOf(node, len(reports), pods[first:min(first+podsPerReport, len(pods))])
		if err := f.Client.Create(ctx, report); err != nil {
			return fmt.Errorf("create report: %w", err)
		}
		reports = append(reports, report)
	}
	for _, pod := range pods {
		v := podview.New(pod, markers, podview.KubeletNode, mark.NodeReport{Plan: npp, Slices: reports}, podview.Options{Defaults: defaults})
		if _, err := marks.Marks(ctx, pod, v.Desired(nil)); err != nil {
			return fmt.Errorf("mark pod %s: %w", pod.Name, err)
		}
		if err := f.Client.Create(ctx, eventOf(pod)); err != nil {
			return fmt.Errorf("create event: %w", err)
		}
	}
	return nil
}

func reportOf(node string, slice int, pods []*corev1.Pod) *seamarkv1alpha1.ProbeReport {
	report := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%d", node, slice)}, NodeName: node}
	now := metav1.Now().Rfc3339Copy()
	for _, pod := range pods {
		report.Pods = append(report.Pods, seamarkv1alpha1.PodReport{
			Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{
				{Name: "game#idle", State: v1alpha1.ProbeSucceeded, LastProbeTime: now, LastTransitionTime: now, Message: "no players"},
				{Name: "game#map", State: v1alpha1.ProbeFailed, LastProbeTime: now, LastTransitionTime: now, Message: "map is being loaded"},
			},
		})
	}
	return report
}

// eventOf returns the event of the failed probe.
func eventOf(pod *corev1.Pod) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + ".map"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Source:         corev1.EventSource{Component: v1alpha1.EventSourceComponent, Host: pod.Spec.NodeName},
		Type:           corev1.EventTypeWarning, Reason: v1alpha1.EventReasonProbeFailed, Message: "game#map: map is being loaded",
		Count: 1, FirstTimestamp: now, LastTimestamp: now,
	}
}
