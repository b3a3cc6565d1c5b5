// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gather reads what views are built from with a client: pods, their markers and nodes,
// and the reports about them.
package gather

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
)

// NodeNameField is the field by which the client's cache must index pods.
const NodeNameField = "spec.nodeName"

// SliceNodeField is the field by which the client's cache must index ProbePlans and ProbeReports. The
// API server can select by it too.
const SliceNodeField = "nodeName"

// NewNode returns an empty Node that has only metadata, as in the cache.
func NewNode() *metav1.PartialObjectMetadata {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return node
}

// Reader builds views from the objects that a client reads. It does not change them.
type Reader struct {
	// Client reads pods, markers, NodePodProbes, ProbePlans, ProbeReports and the metadata of nodes.
	Client client.Reader
	// Stores are the informers of the Client. They are optional.
	Stores Stores
	// Compiler compiles markers.
	Compiler *plan.Compiler
	// Outages returns since when the states of the pods of a node are not current. It is optional.
	Outages func(node string) staleness.Outage
	// Options are the settings that plans depend on.
	podview.Options
}

// Markers returns the markers of the namespace, except those that do not compile.
func (r Reader) Markers(ctx context.Context, namespace string) ([]*plan.Marker, error) {
	found, err := r.MarkerObjects(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return r.Compiler.All(found), nil
}

// MarkersOf returns the markers of the namespace that may select a pod with one of the sets of labels. In
// a namespace with many markers, they are found by an index. There may be others among them.
func (r Reader) MarkersOf(ctx context.Context, namespace string, of ...map[string]string) ([]*plan.Marker, error) {
	stored := lookup{store: r.Stores.Markers, index: MarkerLabelIndex}
	if !stored.isReady() {
		return r.Markers(ctx, namespace)
	}
	var all []*v1alpha1.PodProbeMarker
	for _, key := range labelKeys(namespace, of) {
		stored.value = key
		found, err := list[*v1alpha1.PodProbeMarker](stored)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return r.Compiler.All(all), nil
}

// MarkerObjects returns the markers of the namespace as they are stored. They must not be
// modified.
func (r Reader) MarkerObjects(ctx context.Context, namespace string) ([]*v1alpha1.PodProbeMarker, error) {
	stored := lookup{store: r.Stores.Markers, index: toolscache.NamespaceIndex, value: namespace}
	return read[*v1alpha1.PodProbeMarker](ctx, r, stored, &v1alpha1.PodProbeMarkerList{}, "markers of namespace "+namespace, client.InNamespace(namespace))
}

// Pod returns the view of the pod. The markers are those of its namespace.
func (r Reader) Pod(ctx context.Context, pod *corev1.Pod, markers []*plan.Marker) (podview.Pod, error) {
	kind, err := r.nodeKindForPlan(ctx, pod)
	if err != nil {
		return podview.Pod{}, err
	}
	var report mark.NodeReport
	if !r.Provided(kind) {
		report, err = r.NodeReport(ctx, pod.Spec.NodeName)
	} else if r.Outages != nil {
		report.Outage = r.Outages(pod.Spec.NodeName)
	}
	if err != nil {
		return podview.Pod{}, err
	}
	return podview.New(pod, markers, kind, report, r.Options), nil
}

// Plan returns the plan of the view, without reading the report.
func (r Reader) Plan(ctx context.Context, pod *corev1.Pod, markers []*plan.Marker) (plan.PodPlan, error) {
	kind, err := r.nodeKindForPlan(ctx, pod)
	if err != nil {
		return plan.PodPlan{}, err
	}
	return podview.Plan(pod, markers, kind, r.Options), nil
}

// ProviderPlan returns the probes that a provider would run in the pod, whether or not the
// pod runs on a virtual node.
func (r Reader) ProviderPlan(ctx context.Context, pod *corev1.Pod) (plan.PodPlan, error) {
	markers, err := r.Markers(ctx, pod.Namespace)
	if err != nil {
		return plan.PodPlan{}, err
	}
	return serverless.Compile(pod, markers, r.Defaults), nil
}

// nodeKindForPlan returns the kind of the node of the pod if the plan depends on it.
func (r Reader) nodeKindForPlan(ctx context.Context, pod *corev1.Pod) (podview.NodeKind, error) {
	if !r.Serverless {
		return podview.UnknownNode, nil
	}
	return r.NodeKind(ctx, pod)
}

// NodeKind returns the kind of node that the pod runs on.
func (r Reader) NodeKind(ctx context.Context, pod *corev1.Pod) (podview.NodeKind, error) {
	node, err := GetNode(ctx, r.Client, pod.Spec.NodeName)
	return podview.NodeKindOf(node), err
}

// GetNode returns the metadata of the node, or nil if there is no node with that name.
func GetNode(ctx context.Context, reader client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	node := NewNode()
	return get(ctx, reader, types.NamespacedName{Name: name}, "node", node)
}

// NodePodProbe returns the NodePodProbe of the node, or nil if there is none.
func (r Reader) NodePodProbe(ctx context.Context, node string) (*v1alpha1.NodePodProbe, error) {
	return get(ctx, r.Client, types.NamespacedName{Name: node}, "NodePodProbe", &v1alpha1.NodePodProbe{})
}

// Slices returns the ProbeReports of the node. A ProbeReport of another node that has an entry of
// one of its pods is not among them: an agent reports about the pods of its own node only.
func (r Reader) Slices(ctx context.Context, node string) ([]*seamarkv1alpha1.ProbeReport, error) {
	if node == "" {
		return nil, nil
	}
	stored := lookup{store: r.Stores.Slices, index: SliceNodeIndex, value: NodeKey(node)}
	return read[*seamarkv1alpha1.ProbeReport](
		ctx, r, stored, &seamarkv1alpha1.ProbeReportList{}, "ProbeReports of node "+node, client.MatchingFields{SliceNodeField: node})
}

// ProbePlans returns the ProbePlans of the node. They must not be modified.
func (r Reader) ProbePlans(ctx context.Context, node string) ([]*seamarkv1alpha1.ProbePlan, error) {
	stored := lookup{store: r.Stores.Plans, index: SliceNodeIndex, value: NodeKey(node)}
	return read[*seamarkv1alpha1.ProbePlan](
		ctx, r, stored, &seamarkv1alpha1.ProbePlanList{}, "ProbePlans of node "+node, client.MatchingFields{SliceNodeField: node})
}

// NodePlan returns the NodePodProbe of the node with the whole plan, as slicing.Assemble does, or nil if
// there is none.
func (r Reader) NodePlan(ctx context.Context, node string) (*v1alpha1.NodePodProbe, error) {
	npp, err := r.NodePodProbe(ctx, node)
	if err != nil || npp == nil || !slicing.IsSliced(npp) {
		return npp, err
	}
	stored, err := r.ProbePlans(ctx, node)
	return slicing.Assemble(npp, stored), err
}

// NodePlans returns all NodePodProbes with the whole plans.
func (r Reader) NodePlans(ctx context.Context) ([]*v1alpha1.NodePodProbe, error) {
	plans, err := read[*v1alpha1.NodePodProbe](ctx, r, lookup{}, &v1alpha1.NodePodProbeList{}, "NodePodProbes")
	if err != nil {
		return nil, err
	}
	for i, npp := range plans {
		if !slicing.IsSliced(npp) {
			continue
		}
		stored, err := r.ProbePlans(ctx, npp.Name)
		if err != nil {
			return nil, err
		}
		plans[i] = slicing.Assemble(npp, stored)
	}
	return plans, nil
}

// Report returns what is reported about the pods of the node.
func (r Reader) Report(ctx context.Context, node string) (mark.NodeReport, error) {
	npp, err := r.NodePodProbe(ctx, node)
	if err != nil {
		return mark.NodeReport{}, err
	}
	if mark.InStatus(npp) {
		return mark.NodeReport{Plan: npp}, nil
	}
	reports, err := r.Slices(ctx, node)
	return mark.NodeReport{Plan: npp, Slices: reports}, err
}

// NodeReport returns what is reported about the pods of the node, and since when it is not current.
func (r Reader) NodeReport(ctx context.Context, node string) (mark.NodeReport, error) {
	report, err := r.Report(ctx, node)
	if r.Outages != nil {
		report.Outage = r.Outages(node)
	}
	return report, err
}

// Planned returns the nodes whose stored plans have a probe of one of the markers, also if all of its pods are gone.
func (r Reader) Planned(ctx context.Context, markers ...*v1alpha1.PodProbeMarker) (sets.Set[string], error) {
	nodes, keys := sets.New[string](), sets.New[string]()
	for _, marker := range markers {
		keys.Insert(client.ObjectKeyFromObject(marker).String())
	}
	whole, err := planned[*v1alpha1.NodePodProbe](ctx, r, r.Stores.NodePodProbes, keys, &v1alpha1.NodePodProbeList{}, "NodePodProbes")
	if err != nil {
		return nil, err
	}
	for _, npp := range whole {
		nodes.Insert(npp.Name)
	}
	stored, err := planned[*seamarkv1alpha1.ProbePlan](ctx, r, r.Stores.Plans, keys, &seamarkv1alpha1.ProbePlanList{}, "ProbePlans")
	for _, slice := range stored {
		nodes.Insert(slice.NodeName)
	}
	return nodes, err
}

// planned returns the objects with one of the values in PlannedIndex. Some may be returned several times.
func planned[T client.Object](ctx context.Context, r Reader, store Store, keys sets.Set[string], empty client.ObjectList, names string) ([]T, error) {
	if !(lookup{store: store}).isReady() {
		objects, err := read[T](ctx, r, lookup{}, empty, names)
		return slices.DeleteFunc(objects, func(object T) bool { return !keys.HasAny(plannedKeys(object)...) }), err
	}
	var objects []T
	for key := range keys {
		some, err := list[T](lookup{store: store, index: PlannedIndex, value: key})
		if err != nil {
			return nil, err
		}
		objects = append(objects, some...)
	}
	return objects, nil
}

// CachedPod returns the pod, or nil if there is none.
func (r Reader) CachedPod(ctx context.Context, name types.NamespacedName) (*corev1.Pod, error) {
	return get(ctx, r.Client, name, "pod", &corev1.Pod{})
}

// LivePod returns the pod, or nil if there is none or it is ending.
func (r Reader) LivePod(ctx context.Context, name types.NamespacedName) (*corev1.Pod, error) {
	pod, err := get(ctx, r.Client, name, "pod", &corev1.Pod{})
	if err != nil || pod == nil || plan.Ending(pod) {
		return nil, err
	}
	return pod, nil
}

// get reads into the object and returns it, or nil if there is none or the name is empty.
func get[T client.Object](ctx context.Context, reader client.Reader, name types.NamespacedName, kind string, object T) (T, error) {
	var none T
	if name.Name == "" {
		return none, nil
	}
	if err := reader.Get(ctx, name, object); apierrors.IsNotFound(err) {
		return none, nil
	} else if err != nil {
		return none, fmt.Errorf("get %s %s: %w", kind, strings.TrimPrefix(name.String(), "/"), err)
	}
	return object, nil
}

// NodePods returns the pods that are bound to the node. They must not be modified.
func (r Reader) NodePods(ctx context.Context, node string) ([]*corev1.Pod, error) {
	stored := lookup{index: PodNodeIndex, value: NodeKey(node)}
	return r.pods(ctx, "node "+node, stored, client.MatchingFields{NodeNameField: node})
}

// NamespacePods returns the pods of the namespace. They must not be modified.
func (r Reader) NamespacePods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	stored := lookup{index: toolscache.NamespaceIndex, value: namespace}
	return r.pods(ctx, "namespace "+namespace, stored, client.InNamespace(namespace))
}

// SelectedPods returns the pods that match the marker's selector, in any state. It returns
// none if the selector is invalid, because the marker is then part of no plan. The pods must not
// be modified.
func (r Reader) SelectedPods(ctx context.Context, marker *v1alpha1.PodProbeMarker) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(marker.Spec.Selector)
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	stored := lookup{index: toolscache.NamespaceIndex, value: marker.Namespace, selector: selector}
	return r.pods(ctx, "marker "+client.ObjectKeyFromObject(marker).String(), stored,
		client.InNamespace(marker.Namespace), client.MatchingLabelsSelector{Selector: selector})
}

func (r Reader) pods(ctx context.Context, owner string, stored lookup, which ...client.ListOption) ([]*corev1.Pod, error) {
	stored.store = r.Stores.Pods
	return read[*corev1.Pod](ctx, r, stored, &corev1.PodList{}, "pods of "+owner, which...)
}

// read returns the objects that are looked up or, without a store that is ready, those that the client lists. The list is
// an empty one, and names says in an error which objects were listed. They must not be modified.
func read[T client.Object](ctx context.Context, r Reader, stored lookup, empty client.ObjectList, names string, which ...client.ListOption) ([]T, error) {
	if stored.isReady() {
		return list[T](stored)
	}
	if err := r.Client.List(ctx, empty, which...); err != nil {
		return nil, fmt.Errorf("list %s: %w", names, err)
	}
	objects := make([]T, 0, meta.LenList(empty))
	err := meta.EachListItem(empty, func(object runtime.Object) error {
		if typed, ok := object.(T); ok {
			objects = append(objects, typed)
		}
		return nil
	})
	return objects, err //nolint:wrapcheck // It cannot fail.
}
