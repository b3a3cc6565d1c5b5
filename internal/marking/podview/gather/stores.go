// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
)

// Store is an informer of the client's cache.
type Store interface {
	// GetIndexer returns the objects.
	GetIndexer() toolscache.Indexer
	// HasSynced reports whether all objects have been received once.
	HasSynced() bool
}

// Stores are the informers that a Reader lists from, because a list by the client copies the
// objects: a marker of 1,000 pods would take a megabyte each time that it is checked. A Reader
// lists with the client what has no store or is not synced yet.
type Stores struct {
	// Pods must be indexed by PodNodeIndex.
	Pods Store
	// Markers are the PodProbeMarkers. They must be indexed by MarkerLabelIndex.
	Markers Store
	// Plans are the ProbePlans, and Slices the ProbeReports. They must be indexed by SliceNodeIndex, and Plans also by
	// PlannedIndex.
	Plans, Slices Store
	// NodePodProbes must be indexed by PlannedIndex.
	NodePodProbes Store
}

// PodNodeIndex is the name of the index of pods by node, which also serves lists by NodeNameField
// with the client.
const PodNodeIndex = "field:" + NodeNameField

// SliceNodeIndex is the name of the index of ProbePlans and ProbeReports by node, which also serves lists by
// SliceNodeField with the client.
const SliceNodeIndex = "field:" + SliceNodeField

// NodeKey returns the value of a node in PodNodeIndex and SliceNodeIndex.
func NodeKey(node string) string { return "__all_namespaces/" + node }

// LivePods returns the field selector of the cached pods, which omits those that have ended: a pod
// that ends counts as deleted, and keeps its marks.
func LivePods() fields.Selector {
	return fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
}

// PodIndexers returns the index of pods by node that the cache's reader uses for lists by
// NodeNameField. The cache's own IndexField would also index the pods by namespace and node, which
// takes a fifth of the memory of a pod and is not used.
func PodIndexers() toolscache.Indexers {
	return toolscache.Indexers{PodNodeIndex: func(object any) ([]string, error) {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			return []string{NodeKey(pod.Spec.NodeName)}, nil
		}
		return nil, nil
	}}
}

// agentNodeIndex is the name of the index of the agents' pods by node.
const agentNodeIndex = "agents"

// AgentIndexers returns the index of the pods of agents, whose namespace is given, by node.
func AgentIndexers(namespace string) toolscache.Indexers {
	return toolscache.Indexers{agentNodeIndex: func(object any) ([]string, error) {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" && podview.IsAgent(pod, namespace) {
			return []string{pod.Spec.NodeName}, nil
		}
		return nil, nil
	}}
}

// Agents returns the pods of the agent on the node. They must not be modified. The pods need a store
// with AgentIndexers.
func (r Reader) Agents(node string) []*corev1.Pod {
	agents, err := list[*corev1.Pod](lookup{store: r.Stores.Pods, index: agentNodeIndex, value: node})
	if err != nil {
		return nil
	}
	return agents
}

// NodesOfPods returns the names of the nodes that pods are bound to. The pods need a store.
func (r Reader) NodesOfPods() []string {
	nodes := r.Stores.Pods.GetIndexer().ListIndexFuncValues(PodNodeIndex)
	for i := range nodes {
		nodes[i] = strings.TrimPrefix(nodes[i], NodeKey(""))
	}
	return nodes
}

// SliceIndexers returns the index of ProbePlans or ProbeReports by node. A pod is found among the few entries of
// its node: an index by pod takes as much memory as a tenth of the cached pods.
func SliceIndexers() toolscache.Indexers {
	return toolscache.Indexers{SliceNodeIndex: func(object any) ([]string, error) {
		switch slice := object.(type) {
		case *seamarkv1alpha1.ProbeReport:
			return []string{NodeKey(slice.NodeName)}, nil
		case *seamarkv1alpha1.ProbePlan:
			return []string{NodeKey(slice.NodeName)}, nil
		default:
			return nil, nil
		}
	}}
}

// PlannedIndex is the name of the index of NodePodProbes and ProbePlans by the markers whose probes they have.
const PlannedIndex = "planned"

// NodePodProbeIndexers returns the index of NodePodProbes by marker.
func NodePodProbeIndexers() toolscache.Indexers {
	return toolscache.Indexers{PlannedIndex: func(object any) ([]string, error) { return plannedKeys(object), nil }}
}

// PlanIndexers returns the indexes of ProbePlans by node and by marker.
func PlanIndexers() toolscache.Indexers {
	indexers := SliceIndexers()
	indexers[PlannedIndex] = NodePodProbeIndexers()[PlannedIndex]
	return indexers
}

// plannedKeys returns the values of a NodePodProbe or ProbePlan in PlannedIndex.
func plannedKeys(object any) []string {
	var pods []v1alpha1.PodProbe
	switch planned := object.(type) {
	case *v1alpha1.NodePodProbe:
		pods = planned.Spec.PodProbes
	case *seamarkv1alpha1.ProbePlan:
		pods = planned.Pods
	}
	namespaces := sets.New[string]()
	for i := range pods {
		namespaces.Insert(pods[i].Namespace)
	}
	var keys []string
	for namespace := range namespaces {
		for marker := range plan.Markers(pods, namespace) {
			keys = append(keys, types.NamespacedName{Namespace: namespace, Name: marker}.String())
		}
	}
	return keys
}

// lookup is a list from a store: the objects with a value in an index.
type lookup struct {
	store        Store
	index, value string
	selector     labels.Selector
}

// isReady reports whether the store can serve the list.
func (l lookup) isReady() bool { return l.store != nil && l.store.HasSynced() }

// list returns the objects in the store. They must not be modified.
func list[T client.Object](l lookup) ([]T, error) {
	found, err := l.store.GetIndexer().ByIndex(l.index, l.value)
	if err != nil {
		return nil, fmt.Errorf("look up %s in index %s: %w", l.value, l.index, err)
	}
	objects := make([]T, 0, len(found))
	for _, object := range found {
		typed, ok := object.(T)
		if ok && (l.selector == nil || l.selector.Matches(labels.Set(typed.GetLabels()))) {
			objects = append(objects, typed)
		}
	}
	return objects, nil
}
