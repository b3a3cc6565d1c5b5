// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook annotates pods at creation, so that the provider of a virtual node knows
// from the start what to probe. It only saves time: the controller annotates the pods that
// the webhook misses, and the webhook never rejects a pod.
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
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
)

// Handler handles the API server's admission requests for new pods.
type Handler struct {
	// Reader reads markers.
	Reader gather.Reader
	// Nodes reads the virtual nodes, with their labels and taints. It does not change them.
	Nodes client.Reader
}

// Handle admits every pod. It annotates those that a marker selects and that may run on a
// virtual node. After an error it admits the pod unchanged, because a response with an error
// would reject the pod.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	changes, err := h.changes(ctx, request)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to annotate new pod, leaving it to the controller", "pod", request.Namespace+"/"+request.Name)
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
		return nil, fmt.Errorf("decode pod: %w", err)
	}
	pod.Namespace = request.Namespace
	annotations, err := h.annotations(ctx, pod)
	if err != nil || annotations == (serverless.Annotations{}) || annotations == serverless.AnnotationsOf(pod) {
		return nil, err
	}
	if size := sizeOf(pod.Annotations) + annotations.Size(); size > apivalidation.TotalAnnotationSizeLimitB {
		return nil, fmt.Errorf("size of annotations %d exceeds the limit of %d bytes", size, apivalidation.TotalAnnotationSizeLimitB)
	}
	return patch(pod, annotations), nil
}

// annotations reads the markers first, because most namespaces have none.
func (h *Handler) annotations(ctx context.Context, pod *corev1.Pod) (serverless.Annotations, error) {
	planned, err := h.Reader.ProviderPlan(ctx, pod)
	if err != nil || len(planned.Probes) == 0 {
		return serverless.Annotations{}, err
	}
	var virtual corev1.NodeList
	if err := h.Nodes.List(ctx, &virtual); err != nil {
		return serverless.Annotations{}, fmt.Errorf("list virtual nodes: %w", err)
	}
	if !serverless.MayRunOn(pod, virtual.Items) {
		return serverless.Annotations{}, nil
	}
	return serverless.Encode(planned.Probes)
}

func sizeOf(annotations map[string]string) int {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}

// patch changes only the annotations, so that unknown fields of later Kubernetes versions
// are preserved.
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
