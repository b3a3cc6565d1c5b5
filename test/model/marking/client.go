// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/model/apiserver"
)

// metadataClient is the metadata client of a manager.
type metadataClient struct{ manager *manager }

// Resource returns the client of a resource.
func (c metadataClient) Resource(resource schema.GroupVersionResource) metadata.Getter {
	for k := range kindCount {
		if k.String() == resource.Resource {
			return getter{metadataOf: metadataOf{manager: c.manager, kind: k}}
		}
	}
	panic("unexpected resource " + resource.String())
}

type getter struct{ metadataOf }

// Namespace returns the client of a namespace.
func (g getter) Namespace(namespace string) metadata.ResourceInterface {
	g.namespace = namespace
	return g.metadataOf
}

// metadataOf has the calls that the manager makes.
type metadataOf struct {
	metadata.ResourceInterface
	manager   *manager
	kind      kind
	namespace string
}

// Get reads the metadata of an object.
func (m metadataOf) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	stored, err := m.manager.world.server.Get(m.kind, types.NamespacedName{Namespace: m.namespace, Name: name})
	return partial(stored), err
}

// Patch patches an object.
func (m metadataOf) Patch(_ context.Context, name string, kind types.PatchType, body []byte, options metav1.PatchOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	s, by, key := m.manager.world.server, m.manager.name, types.NamespacedName{Namespace: m.namespace, Name: name}
	stored, err := m.manager.call("patch", m.kind, key, func() (client.Object, error) { //nolint:contextcheck // the run has one context
		switch kind {
		case types.ApplyPatchType:
			return s.applyMarks(by, key, body, len(options.DryRun) > 0)
		case types.StrategicMergePatchType:
			return s.removeMarks(by, key, body)
		default:
			return s.mergePatch(by, m.kind, key, body)
		}
	})
	return partial(stored), err
}

// DeleteCollection deletes the slices of a node.
func (m metadataOf) DeleteCollection(_ context.Context, _ metav1.DeleteOptions, options metav1.ListOptions) error {
	node := strings.TrimPrefix(options.FieldSelector, "nodeName=")
	_, err := m.manager.call("deletecollection", m.kind, types.NamespacedName{Name: node}, func() (client.Object, error) { //nolint:contextcheck // the run has one context
		for _, o := range m.manager.world.server.List(m.kind) {
			if nodeOf(o) == node {
				m.manager.world.server.Remove(m.manager.name, m.kind, client.ObjectKeyFromObject(o))
			}
		}
		return nil, nil //nolint:nilnil // there is no object
	})
	return err
}

func nodeOf(o client.Object) string {
	switch o := o.(type) {
	case *seamarkv1alpha1.ProbePlan:
		return o.NodeName
	case *seamarkv1alpha1.ProbeReport:
		return o.NodeName
	default:
		return ""
	}
}

func partial(o client.Object) *metav1.PartialObjectMetadata {
	if o == nil {
		return &metav1.PartialObjectMetadata{}
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
	}}
}

// mergePatch applies a merge patch to a marker or a NodePodProbe.
func (s *server) mergePatch(by string, k kind, key types.NamespacedName, body []byte) (client.Object, error) {
	var patch struct {
		Metadata struct {
			UID             types.UID          `json:"uid"`
			ResourceVersion string             `json:"resourceVersion"`
			Annotations     map[string]*string `json:"annotations"`
			Finalizers      *[]string          `json:"finalizers"`
		} `json:"metadata"`
		Spec   json.RawMessage `json:"spec"`
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.Update(by, k, key, preconditions{UID: patch.Metadata.UID, Version: patch.Metadata.ResourceVersion}, func(o client.Object) error {
		annotations := o.GetAnnotations()
		for name, value := range patch.Metadata.Annotations {
			if value == nil {
				delete(annotations, name)
				continue
			}
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[name] = *value
		}
		o.SetAnnotations(annotations)
		if patch.Metadata.Finalizers != nil {
			o.SetFinalizers(*patch.Metadata.Finalizers)
		}
		switch o := o.(type) {
		case *v1alpha1.NodePodProbe:
			if patch.Spec != nil {
				o.Spec = v1alpha1.NodePodProbeSpec{}
				return json.Unmarshal(patch.Spec, &o.Spec)
			}
		case *v1alpha1.PodProbeMarker:
			if patch.Status != nil {
				return mergeStatus(o, patch.Status)
			}
		}
		return nil
	})
}

// mergeStatus replaces those fields of the status that the patch has, of which null removes one.
func mergeStatus(marker *v1alpha1.PodProbeMarker, patch []byte) error {
	var wanted map[string]json.RawMessage
	if err := json.Unmarshal(patch, &wanted); err != nil {
		return fmt.Errorf("decode the status: %w", err)
	}
	merged := map[string]json.RawMessage{}
	before, err := json.Marshal(marker.Status)
	if err == nil {
		err = json.Unmarshal(before, &merged)
	}
	for name, value := range wanted {
		if merged[name] = value; string(value) == "null" {
			delete(merged, name)
		}
	}
	after, failed := json.Marshal(merged)
	if err != nil || failed != nil {
		return fmt.Errorf("merge the status: %w, %w", err, failed)
	}
	marker.Status = v1alpha1.PodProbeMarkerStatus{}
	return json.Unmarshal(after, &marker.Status)
}

// objectClient is the client of a manager for everything else. It reads from the API server.
type objectClient struct {
	client.Client
	manager *manager
}

// Create creates an object.
func (c objectClient) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	stored, err := c.manager.call("create", kindOf(o), client.ObjectKeyFromObject(o), func() (client.Object, error) { //nolint:contextcheck // the run has one context
		return c.manager.world.server.Create(c.manager.name, kindOf(o), o)
	})
	return answer(o, stored, err)
}

// Update replaces a ProbePlan.
func (c objectClient) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	key := client.ObjectKeyFromObject(o)
	stored, err := c.manager.call("update", kindOf(o), key, func() (client.Object, error) { //nolint:contextcheck // the run has one context
		return c.manager.world.server.Update(c.manager.name, kindOf(o), key, apiserver.Of(o), func(s client.Object) error {
			s.SetOwnerReferences(o.GetOwnerReferences())
			s.(*seamarkv1alpha1.ProbePlan).Pods = o.(*seamarkv1alpha1.ProbePlan).DeepCopy().Pods //nolint:forcetypeassert // of this kind
			return nil
		})
	})
	return answer(o, stored, err)
}

// Delete deletes an object.
func (c objectClient) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	all, key := (&client.DeleteOptions{}).ApplyOptions(options), client.ObjectKeyFromObject(o)
	_, err := c.manager.call("delete", kindOf(o), key, func() (client.Object, error) { //nolint:contextcheck // the run has one context
		return nil, c.manager.world.server.Delete(c.manager.name, kindOf(o), key, preconditions{UID: *all.Preconditions.UID})
	})
	return err
}

// Status returns the client of the status of markers.
func (c objectClient) Status() client.SubResourceWriter { return statusClient{manager: c.manager} }

type statusClient struct {
	client.SubResourceWriter
	manager *manager
}

// Patch patches the status of a marker.
func (c statusClient) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	body, err := patch.Data(o)
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	key := client.ObjectKeyFromObject(o)
	stored, err := c.manager.call("status", kindOf(o), key, func() (client.Object, error) { //nolint:contextcheck // the run has one context
		return c.manager.world.server.mergePatch(c.manager.name, kindOf(o), key, body)
	})
	return answer(o, stored, err)
}

// Get reads an object.
func (c objectClient) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	stored, err := c.manager.world.server.Get(kindOf(into), key)
	if node, isNode := stored.(*corev1.Node); isNode && err == nil {
		stored = partial(node)
	}
	return answer(into, stored, err)
}

// List reads the pods of a namespace.
func (c objectClient) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	which := (&client.ListOptions{}).ApplyOptions(options)
	list, ok := into.(*corev1.PodList)
	if !ok {
		return fmt.Errorf("unexpected list of %T", into)
	}
	for _, o := range c.manager.world.server.List(pods) {
		if o.GetNamespace() == which.Namespace && (which.LabelSelector == nil || which.LabelSelector.Matches(labels.Set(o.GetLabels()))) {
			list.Items = append(list.Items, *o.DeepCopyObject().(*corev1.Pod)) //nolint:forcetypeassert // all are
		}
	}
	return nil
}

// answer makes o the stored object.
func answer(o, stored client.Object, err error) error {
	if err == nil && stored != nil {
		reflect.ValueOf(o).Elem().Set(reflect.ValueOf(clone(stored)).Elem())
	}
	return err
}
