// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

const (
	resource = "nodepodprobes"

	// fieldManager is the owner of the status in the object's managedFields.
	fieldManager = "seamark-agent"
)

// nodeClient watches the NodePodProbe of a node and writes its status.
type nodeClient struct {
	rest rest.Interface
	node string
}

func newNodeClient(config *rest.Config, node string) (*nodeClient, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register NodePodProbe types: %w", err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = new(v1alpha1.GroupVersion())
	config.APIPath = "/apis"
	config.ContentType = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS = -1
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	return &nodeClient{rest: client, node: node}, nil
}

// reflector returns a reflector that keeps the node's object in store. Its back-off is
// short, so that the agent reconnects soon after an outage of the API server: it has only
// one watch.
func (c *nodeClient) reflector(store cache.ReflectorStore, log logr.Logger) *cache.Reflector {
	source := cache.NewFilteredListWatchFromClient(c.rest, resource, metav1.NamespaceNone, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, c.node).String()
	})
	return cache.NewReflectorWithOptions(source, &v1alpha1.NodePodProbe{}, store, cache.ReflectorOptions{
		Logger:  &log,
		Name:    resource,
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 16, Cap: 5 * time.Second},
	})
}

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patchOf returns the JSON patch that replaces the status. The patch fails if the object
// was recreated and has a different UID, because its plan may be different.
func patchOf(uid types.UID, status v1alpha1.NodePodProbeStatus) ([]byte, error) {
	patch, err := json.Marshal([]operation{
		{Op: "test", Path: "/metadata/uid", Value: uid},
		{Op: "add", Path: "/status", Value: status},
	})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return patch, nil
}

// WriteStatus replaces the object's status and returns the new resourceVersion.
func (c *nodeClient) WriteStatus(ctx context.Context, patch []byte) (string, error) {
	var written metav1.PartialObjectMetadata
	raw, err := c.rest.Patch(types.JSONPatchType).Resource(resource).Name(c.node).SubResource("status").
		VersionedParams(&metav1.PatchOptions{FieldManager: fieldManager}, metav1.ParameterCodec).
		Body(patch).Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(raw, &written)
	}
	if err != nil {
		return "", fmt.Errorf("patch status of NodePodProbe %s: %w", c.node, err)
	}
	return written.ResourceVersion, nil
}
