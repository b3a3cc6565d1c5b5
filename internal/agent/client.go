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

	// fieldManager owns the status in the object's managedFields.
	fieldManager = "seamark-agent"
)

// nodeClient reads and reports the one NodePodProbe of a node. That is all it can do.
type nodeClient struct {
	rest rest.Interface
	node string
}

func newNodeClient(config *rest.Config, node string) (*nodeClient, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the NodePodProbe types: %w", err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = new(v1alpha1.GroupVersion())
	config.APIPath = "/apis"
	config.ContentType = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS = -1
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return &nodeClient{rest: client, node: node}, nil
}

// reflector returns what keeps store up to the node's object. It is back soon after the
// API server is: there is one such watch a node and nothing else.
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

// patchOf returns the JSON patch that replaces the status of the object with that UID,
// and of no other: an object made anew under the same name has another plan.
func patchOf(uid types.UID, status v1alpha1.NodePodProbeStatus) ([]byte, error) {
	patch, err := json.Marshal([]operation{
		{Op: "test", Path: "/metadata/uid", Value: uid},
		{Op: "add", Path: "/status", Value: status},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	return patch, nil
}

// WriteStatus replaces the object's status. It returns the resourceVersion that the
// object has then.
func (c *nodeClient) WriteStatus(ctx context.Context, patch []byte) (string, error) {
	var written metav1.PartialObjectMetadata
	raw, err := c.rest.Patch(types.JSONPatchType).Resource(resource).Name(c.node).SubResource("status").
		VersionedParams(&metav1.PatchOptions{FieldManager: fieldManager}, metav1.ParameterCodec).
		Body(patch).Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(raw, &written)
	}
	if err != nil {
		return "", fmt.Errorf("patch the status of NodePodProbe %s: %w", c.node, err)
	}
	return written.ResourceVersion, nil
}
