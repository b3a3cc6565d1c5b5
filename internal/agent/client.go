// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/isolate"
)

const (
	// The resources that the agent accesses.
	plansResource      = "nodepodprobes"
	planSlicesResource = "probeplans"
	slicesResource     = "probereports"

	// nodeNameField is the field of slices that has the name of the node.
	nodeNameField = "nodeName"

	// fieldManager is the owner of what the agent writes, in managedFields.
	fieldManager = v1alpha1.AgentFieldManager

	// metadataOnly requests the metadata of an object as the answer to a write, so that the
	// API server does not send back what the agent has just sent.
	metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	// metadataListOnly requests the metadata of the objects of a list.
	metadataListOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// nodeClient watches the NodePodProbe of a node, reads its ProbePlans, and writes the status and the
// slices of the node's report.
type nodeClient struct {
	plans, slices rest.Interface
	node          string

	mu sync.Mutex
	// versions are the slices whose resourceVersion is known, by name.
	versions map[string]storedSlice
}

func newNodeClient(config *rest.Config, node string) (*nodeClient, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, seamarkv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.ContentType = runtime.ContentTypeJSON
	config.NegotiatedSerializer = isolate.Serializer(scheme)
	config.QPS = -1
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	c := &nodeClient{node: node, versions: map[string]storedSlice{}}
	for group, client := range map[schema.GroupVersion]*rest.Interface{
		v1alpha1.GroupVersion(): &c.plans, seamarkv1alpha1.GroupVersion(): &c.slices,
	} {
		of := rest.CopyConfig(config)
		of.GroupVersion = &group
		created, err := rest.RESTClientForConfigAndClient(of, connection)
		if err != nil {
			return nil, fmt.Errorf("create API client: %w", err)
		}
		*client = created
	}
	return c, nil
}

// newConnectBackoff returns the back-off of reads after an error. It is short, so that the
// agent continues soon after an outage of the API server: it has only one watch.
func newConnectBackoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 16, Cap: 5 * time.Second}
}

// reflector returns a reflector that keeps the node's NodePodProbe in the store. The API server has an
// index for watches of one name, so that a change costs the same however many agents watch.
func (c *nodeClient) reflector(store cache.ReflectorStore, log logr.Logger) *cache.Reflector {
	source := cache.NewFilteredListWatchFromClient(c.plans, plansResource, metav1.NamespaceNone, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, c.node).String()
	})
	backoff := newConnectBackoff()
	return cache.NewReflectorWithOptions(source, &v1alpha1.NodePodProbe{}, store, cache.ReflectorOptions{Logger: &log, Name: plansResource, Backoff: &backoff})
}

// ReadPlan returns the ProbePlan of the node with the number, in the version or a later one. With a
// version, the API server answers from its memory.
func (c *nodeClient) ReadPlan(ctx context.Context, number int, version string) (*seamarkv1alpha1.ProbePlan, error) {
	name, plan := seamarkv1alpha1.SliceName(c.node, number), &seamarkv1alpha1.ProbePlan{}
	err := c.slices.Get().Resource(planSlicesResource).Name(name).
		VersionedParams(&metav1.GetOptions{ResourceVersion: version}, metav1.ParameterCodec).Do(ctx).Into(plan)
	if err != nil {
		return nil, fmt.Errorf("read ProbePlan %s: %w", name, err)
	}
	if record := isolate.Of(plan); record != nil {
		return nil, fmt.Errorf("decode ProbePlan %s: %w", name, record)
	}
	return plan, nil
}

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// WriteStatus replaces the status of the node's object and returns the new resourceVersion. It
// fails if the object was recreated and has a different UID, because its plan may be different.
func (c *nodeClient) WriteStatus(ctx context.Context, uid types.UID, status v1alpha1.NodePodProbeStatus) (version string, err error) {
	patch, err := json.Marshal([]operation{
		{Op: "test", Path: "/metadata/uid", Value: uid},
		{Op: "add", Path: "/status", Value: status},
	})
	if err != nil {
		return "", fmt.Errorf("encode status: %w", err)
	}
	raw, err := c.plans.Patch(types.JSONPatchType).Resource(plansResource).Name(c.node).SubResource("status").
		VersionedParams(&metav1.PatchOptions{FieldManager: fieldManager}, metav1.ParameterCodec).
		SetHeader("Accept", metadataOnly).Body(patch).Do(ctx).Raw()
	var written metav1.PartialObjectMetadata
	if err == nil {
		err = json.Unmarshal(raw, &written)
	}
	if err != nil {
		return "", fmt.Errorf("patch status of NodePodProbe %s: %w", c.node, err)
	}
	return written.ResourceVersion, nil
}
