// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/serverless"
)

// Place is where a pod runs.
type Place int

// The places of a pod.
const (
	// PlaceUnknown is no node, or one that the informers don't have.
	PlaceUnknown Place = iota
	// PlaceKubelet is a node with a kubelet.
	PlaceKubelet
	// PlaceVirtual is a node that no kubelet runs, whose provider probes the pod.
	PlaceVirtual
)

// NewNode returns an empty Node as the informers hold it: its metadata alone.
func NewNode() *metav1.PartialObjectMetadata {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return node
}

// PlaceOf returns where the pod runs.
func PlaceOf(ctx context.Context, cache client.Reader, pod *corev1.Pod) (Place, error) {
	if pod.Spec.NodeName == "" {
		return PlaceUnknown, nil
	}
	node := NewNode()
	err := cache.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, node)
	switch {
	case apierrors.IsNotFound(err):
		return PlaceUnknown, nil
	case err != nil:
		return PlaceUnknown, fmt.Errorf("reading node %s: %w", pod.Spec.NodeName, err)
	case serverless.IsVirtual(node.Labels):
		return PlaceVirtual, nil
	}
	return PlaceKubelet, nil
}

// IsVirtual is PlaceOf for what handles events and can't fail: it logs an error.
func IsVirtual(ctx context.Context, cache client.Reader, pod *corev1.Pod) bool {
	place, err := PlaceOf(ctx, cache, pod)
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding where a pod runs")
	}
	return place == PlaceVirtual
}

// Prober tells what is probed in a pod, and what came of it.
type Prober struct {
	// Cache reads markers, nodes and NodePodProbes. What it returns is not changed.
	Cache client.Reader
	// Compiler compiles markers.
	Compiler *plan.Compiler
	// Defaults are for the fields that a marker leaves unset.
	Defaults plan.Defaults
	// Serverless is whether providers probe the pods of virtual kubelets.
	Serverless bool
}

// Plan returns the probes that the markers ask for in the pod, those of its namespace: for
// the agent of its node, or for the provider of a virtual kubelet.
func (p Prober) Plan(ctx context.Context, pod *corev1.Pod, markers []*plan.Marker) (plan.PodPlan, Place, error) {
	if !p.Serverless {
		return plan.Pod(pod, markers, p.Defaults), PlaceUnknown, nil
	}
	place, err := PlaceOf(ctx, p.Cache, pod)
	switch {
	case err != nil:
		return plan.PodPlan{}, place, err
	case place != PlaceVirtual:
		return plan.Pod(pod, markers, p.Defaults), place, nil
	case !plan.Eligible(pod):
		return plan.PodPlan{}, place, nil
	}
	return serverless.Compile(pod, markers, p.Defaults), place, nil
}

// Probed returns the probes of Plan and what is said of them: by the agent of the pod's
// node, or by the provider of a virtual kubelet.
func (p Prober) Probed(ctx context.Context, pod *corev1.Pod, markers []*plan.Marker) ([]plan.PlannedProbe, mark.PodReport, error) {
	planned, place, err := p.Plan(ctx, pod, markers)
	if err != nil {
		return nil, mark.PodReport{}, err
	}
	if place != PlaceVirtual {
		report, err := Report(ctx, p.Cache, pod)
		return planned.Probes, report, err
	}
	return planned.Probes, mark.Provided(pod, planned.Probes), nil
}
