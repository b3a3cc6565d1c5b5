// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podDeleter is a client that does not decode the response to the deletion of a pod. The client of
// controller-runtime decodes it and converts it to JSON and back, which takes twice as much processor
// time as the rest of the request, also if the object to delete is only metadata.
type podDeleter struct {
	client.Client
	pods metadata.Getter
}

func newPodDeleter(base client.Client, cfg *rest.Config, connection *http.Client) (client.Client, error) {
	direct, err := metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), connection)
	if err != nil {
		return nil, fmt.Errorf("create the client that deletes pods: %w", err)
	}
	return &podDeleter{Client: base, pods: direct.Resource(corev1.SchemeGroupVersion.WithResource("pods"))}, nil
}

// Delete implements client.Client.
func (c *podDeleter) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return c.Client.Delete(ctx, object, options...)
	}
	var all client.DeleteOptions
	all.ApplyOptions(options)
	return c.pods.Namespace(pod.Namespace).Delete(ctx, pod.Name, *all.AsDeleteOptions())
}
