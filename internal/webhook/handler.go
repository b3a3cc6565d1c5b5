// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook annotates pods as they are made, so that the provider of a virtual
// kubelet sees from the start what it is to probe. It only saves time: the controller
// makes good whatever it misses, and it never refuses a pod.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/serverless"
)

// Handler answers the API server's question what to change in a new pod.
type Handler struct {
	// Markers reads markers, Nodes the nodes that no kubelet runs, with their labels and
	// taints. What they return is not changed.
	Markers, Nodes client.Reader
	// Compiler compiles markers.
	Compiler *plan.Compiler
	// Defaults are for the fields that a marker leaves unset.
	Defaults plan.Defaults
}

// Handle lets every pod pass, and annotates those that a marker selects and that may run
// on a virtual kubelet. An error lets the pod pass as it is: an answer with an error would
// refuse it.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	changes, err := h.changes(ctx, request)
	if err != nil {
		log.FromContext(ctx).Error(err, "Leaving a new pod to the controller", "pod", request.Namespace+"/"+request.Name)
		return admission.Allowed("")
	}
	if len(changes) == 0 {
		return admission.Allowed("")
	}
	return admission.Patched("", changes...)
}

func (h *Handler) changes(ctx context.Context, request admission.Request) ([]jsonpatch.Operation, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(request.Object.Raw, pod); err != nil {
		return nil, fmt.Errorf("decoding the pod: %w", err)
	}
	pod.Namespace = request.Namespace
	annotations, err := h.annotations(ctx, pod)
	if err != nil || annotations == (serverless.Annotations{}) || annotations == serverless.Of(pod) {
		return nil, err
	}
	if size := sizeOf(pod.Annotations) + annotations.Size(); size > apivalidation.TotalAnnotationSizeLimitB {
		return nil, fmt.Errorf("the pod's annotations would have %d bytes, more than the %d that the API server takes",
			size, apivalidation.TotalAnnotationSizeLimitB)
	}
	return patch(pod, annotations), nil
}

// annotations asks first what costs least: most namespaces have no marker.
func (h *Handler) annotations(ctx context.Context, pod *corev1.Pod) (serverless.Annotations, error) {
	markers, err := controller.Markers(ctx, h.Markers, h.Compiler, pod.Namespace)
	if err != nil {
		return serverless.Annotations{}, err
	}
	probes := serverless.Compile(pod, markers, h.Defaults).Probes
	if len(probes) == 0 {
		return serverless.Annotations{}, nil
	}
	var virtual corev1.NodeList
	if err := h.Nodes.List(ctx, &virtual); err != nil {
		return serverless.Annotations{}, fmt.Errorf("listing the nodes that no kubelet runs: %w", err)
	}
	if !serverless.MayRunOn(pod, virtual.Items) {
		return serverless.Annotations{}, nil
	}
	return serverless.Encode(probes)
}

func sizeOf(annotations map[string]string) int {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}

// patch touches nothing but the annotations, so that fields of later versions of
// Kubernetes stay as they are.
func patch(pod *corev1.Pod, annotations serverless.Annotations) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	if pod.Annotations == nil {
		operations = append(operations, jsonpatch.NewOperation("add", "/metadata/annotations", map[string]string{}))
	}
	for _, annotation := range []struct{ key, value string }{
		{v1alpha1.PodProbeMarkerAnnotationKey, annotations.Probes},
		{v1alpha1.PodProbeMarkerListAnnotationKey, annotations.Markers},
	} {
		path := "/metadata/annotations/" + strings.ReplaceAll(annotation.key, "/", "~1")
		operations = append(operations, jsonpatch.NewOperation("add", path, annotation.value))
	}
	return operations
}
