// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

const (
	// pageSize is the number of objects in one answer to a list.
	pageSize = 500
	// maxSingleNodes is the number of nodes up to which their plans and reports are read one node
	// at a time. Those of more nodes are listed with all others of the cluster.
	maxSingleNodes = 32
	// maxRequests is the number of requests at the same time.
	maxRequests = 8
)

// Query selects what Read reads.
type Query struct {
	// Namespace is the namespace of the pods and markers, or empty for all namespaces.
	Namespace string
	// Names are the names of pods in the namespace. If it is empty, all pods are read.
	Names []string
	// Selector selects pods by their labels. Nil selects all.
	Selector labels.Selector
	// Node is the node of the pods, or empty for all nodes.
	Node string
	// Whole reads all fields of the pods, plans and reports. Otherwise, pods, plans and reports
	// have only what rows and marks are computed from: see podview.PodTrimmer. Without it, 10,000
	// pods take several times the memory.
	Whole bool
	// Controllers keeps the kind, the name and the UID of the controller of each pod.
	Controllers bool
	// Statuses keeps the conditions of each pod and the statuses of its containers.
	Statuses bool
	// Guards reads the PodDisruptionBudgets of the namespace that are guards, and Budgets all of them.
	Guards, Budgets bool
}

// Snapshot is what Read has read.
type Snapshot struct {
	// Input has the objects, for package probestatus.
	probestatus.Input
	// Absent are the names of the query that no pod has.
	Absent []string
	// Missing are the resources that could not be read, each once, ordered by name.
	Missing []permission.Missing
}

// Read reads pods with the markers of their namespaces and the plans, reports and metadata of
// their nodes. A resource that the user may not read, or that is not installed, is no error: see
// Snapshot.Missing. The objects are not of one moment: a plan may be older than its pods.
func Read(ctx context.Context, reader client.Reader, query Query) (*Snapshot, error) {
	r := newReading(reader, query)
	// Who asks for all pods of the cluster needs the plans and reports of all nodes.
	all := query.Namespace == "" && query.Node == "" && query.Selector == nil
	group, groupContext := errgroup.WithContext(ctx)
	group.Go(func() error { return r.readPods(groupContext) })
	group.Go(func() error {
		return list(groupContext, r, &v1alpha1.PodProbeMarkerList{}, permission.Markers, query.Namespace, r.addMarker)
	})
	if query.Guards || query.Budgets {
		var which []client.ListOption
		if !query.Budgets {
			which = append(which, client.MatchingLabels(guard.Labels()))
		}
		group.Go(func() error {
			return list(groupContext, r, &policyv1.PodDisruptionBudgetList{}, permission.Budgets, query.Namespace, r.addBudget, which...)
		})
	}
	if all {
		r.listNodes(groupContext, group)
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if !all {
		if err := r.readNodesOfPods(ctx); err != nil {
			return nil, err
		}
	}
	r.snapshot.SetMissing(r.missing.found)
	r.snapshot.Assemble(r.slices)
	return &r.snapshot, nil
}

type reading struct {
	query   Query
	reader  client.Reader
	pods    *podview.PodTrimmer
	plans   *podview.PlanTrimmer
	missing missing
	// mu protects the snapshot, and the ProbePlans by node.
	mu       sync.Mutex
	snapshot Snapshot
	slices   map[string][]*seamarkv1alpha1.ProbePlan
}

// ViewOptions returns the settings of the manager that states are computed with.
func ViewOptions() podview.Options {
	// Which defaults the manager has does not matter for states. Providers probe pods on virtual
	// nodes only if the manager's serverless mode is on; otherwise no one does.
	return podview.Options{Defaults: plan.KubernetesDefaults(), Serverless: true}
}

// PodTrimmer returns what trims the pods of the query.
func (q Query) PodTrimmer() *podview.PodTrimmer {
	pods := podview.NewPodTrimmer(ViewOptions())
	if q.Controllers {
		pods = pods.WithControllers()
	}
	if q.Statuses {
		pods = pods.WithStatuses()
	}
	return pods
}

func newReading(reader client.Reader, query Query) *reading {
	input := probestatus.NewInput(ViewOptions())
	input.Statuses = query.Statuses
	return &reading{
		query: query, reader: reader, pods: query.PodTrimmer(), plans: podview.NewPlanTrimmer(), slices: map[string][]*seamarkv1alpha1.ProbePlan{},
		snapshot: Snapshot{Input: input},
	}
}

// Pages lists objects in pages of the type of the list, and calls take for each page. The caller adds to
// an error what was listed.
func Pages(ctx context.Context, reader client.Reader, list client.ObjectList, take func(client.ObjectList), which ...client.ListOption) error {
	for next := ""; ; {
		// Decoding into the list of another page would change the objects of that page.
		page, _ := list.DeepCopyObject().(client.ObjectList)
		options := slices.Concat(which, []client.ListOption{client.Limit(pageSize), client.Continue(next)})
		if err := reader.List(ctx, page, options...); err != nil {
			return err
		}
		take(page)
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// Each lists objects as Pages does, and calls take for each of them.
func Each[T runtime.Object](ctx context.Context, reader client.Reader, list client.ObjectList, take func(T), which ...client.ListOption) error {
	return Pages(ctx, reader, list, func(page client.ObjectList) {
		// It returns the errors of the function only.
		_ = meta.EachListItem(page, func(item runtime.Object) error {
			if object, is := item.(T); is {
				take(object)
			}
			return nil
		})
	}, which...)
}

// MetadataList returns an empty list of the metadata of objects of the kind.
func MetadataList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// Paged tells client-go that a list is not streamed: see cache.ToListWatcherWithWatchListSemantics.
type Paged struct{}

// IsWatchListSemanticsUnSupported implements an interface of client-go.
func (Paged) IsWatchListSemanticsUnSupported() bool { return true }

func (r *reading) readPods(ctx context.Context) error {
	if len(r.query.Names) > 0 {
		return r.getPods(ctx)
	}
	var which []client.ListOption
	if r.query.Selector != nil {
		if _, selectable := r.query.Selector.Requirements(); !selectable {
			return nil // In a request, a selector of nothing would select all pods.
		}
		which = append(which, client.MatchingLabelsSelector{Selector: r.query.Selector})
	}
	if r.query.Node != "" {
		which = append(which, client.MatchingFields{gather.NodeNameField: r.query.Node})
	}
	return list(ctx, r, &corev1.PodList{}, permission.Pods, r.query.Namespace, r.addPod, which...)
}

// getPods reads the pods of the query by name. It keeps the order of the names.
func (r *reading) getPods(ctx context.Context) error {
	for _, name := range r.query.Names {
		pod := &corev1.Pod{}
		err := r.reader.Get(ctx, types.NamespacedName{Namespace: r.query.Namespace, Name: name}, pod)
		if apierrors.IsNotFound(err) {
			r.snapshot.Absent = append(r.snapshot.Absent, name)
			continue
		}
		if err != nil {
			if err := r.missing.note(err, "get", permission.Pods, r.query.Namespace); err != nil {
				return err
			}
			continue
		}
		selected := (r.query.Selector == nil || r.query.Selector.Matches(labels.Set(pod.Labels))) &&
			(r.query.Node == "" || r.query.Node == pod.Spec.NodeName)
		if selected {
			r.addPod(pod)
		}
	}
	return nil
}

func (r *reading) addPod(pod *corev1.Pod) {
	if !r.query.Whole {
		pod = r.pods.Trim(pod)
	}
	r.snapshot.Pods = append(r.snapshot.Pods, pod)
}

func (r *reading) addMarker(marker *v1alpha1.PodProbeMarker) {
	r.snapshot.Markers = append(r.snapshot.Markers, marker)
}

func (r *reading) addBudget(budget *policyv1.PodDisruptionBudget) {
	r.snapshot.Budgets = append(r.snapshot.Budgets, budget)
}

// readNodesOfPods reads the plans, reports and metadata of the nodes that the pods run on.
func (r *reading) readNodesOfPods(ctx context.Context) error {
	nodes := map[string]bool{}
	for _, pod := range r.snapshot.Pods {
		if pod.Spec.NodeName != "" {
			nodes[pod.Spec.NodeName] = true
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxRequests)
	if len(nodes) > maxSingleNodes {
		r.listNodes(ctx, group)
		return group.Wait()
	}
	for node := range nodes {
		group.Go(func() error { return get(ctx, r, gather.NewNode(), node, permission.Nodes, r.addNode) })
		group.Go(func() error {
			if err := r.listPlanSlices(ctx, client.MatchingFields{gather.SliceNodeField: node}); err != nil {
				return err
			}
			return get(ctx, r, &v1alpha1.NodePodProbe{}, node, permission.Plans, r.addPlan)
		})
		group.Go(func() error { return r.listReports(ctx, client.MatchingFields{gather.SliceNodeField: node}) })
	}
	return group.Wait()
}

// listNodes starts to list the plans, reports and metadata of all nodes.
func (r *reading) listNodes(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error {
		return list(ctx, r, MetadataList(corev1.SchemeGroupVersion.WithKind("Node")), permission.Nodes, "", r.addNode)
	})
	group.Go(func() error {
		if err := r.listPlanSlices(ctx); err != nil {
			return err
		}
		return list(ctx, r, &v1alpha1.NodePodProbeList{}, permission.Plans, "", r.addPlan)
	})
	group.Go(func() error { return r.listReports(ctx) })
}

// listPlanSlices is called before the NodePodProbes are read: ProbePlans that are newer would seem not to run.
func (r *reading) listPlanSlices(ctx context.Context, which ...client.ListOption) error {
	return list(ctx, r, &seamarkv1alpha1.ProbePlanList{}, permission.PlanSlices, "", r.addPlanSlice, which...)
}

func (r *reading) listReports(ctx context.Context, which ...client.ListOption) error {
	return list(ctx, r, &seamarkv1alpha1.ProbeReportList{}, permission.Reports, "", r.addReport, which...)
}

// get reads the object of a node, and adds it to the snapshot if there is one.
func get[T client.Object](ctx context.Context, r *reading, object T, node string, resource permission.Resource, add func(T)) error {
	err := r.reader.Get(ctx, types.NamespacedName{Name: node}, object)
	if apierrors.IsNotFound(err) && !IsNotInstalled(err) {
		return nil
	}
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		add(object)
		return nil
	}
	return r.missing.note(err, "get", resource, "")
}

// list adds objects to the snapshot. Several lists are read at the same time.
func list[T runtime.Object](ctx context.Context, r *reading, empty client.ObjectList, resource permission.Resource, namespace string, add func(T),
	which ...client.ListOption,
) error {
	err := Each(ctx, r.reader, empty, func(object T) {
		r.mu.Lock()
		defer r.mu.Unlock()
		add(object)
	}, append(which, client.InNamespace(namespace))...)
	return r.missing.note(err, "list", resource, namespace)
}

func (r *reading) addNode(node *metav1.PartialObjectMetadata) {
	r.snapshot.Nodes[node.Name] = podview.TrimNode(node)
}

func (r *reading) addPlan(npp *v1alpha1.NodePodProbe) {
	if !r.query.Whole {
		npp = r.plans.Trim(npp)
	}
	r.snapshot.Plans[npp.Name] = npp
}

func (r *reading) addPlanSlice(slice *seamarkv1alpha1.ProbePlan) {
	if !r.query.Whole {
		slice = r.plans.TrimSlice(slice)
	}
	r.slices[slice.NodeName] = append(r.slices[slice.NodeName], slice)
}

func (r *reading) addReport(report *seamarkv1alpha1.ProbeReport) {
	if !r.query.Whole {
		report = podview.TrimReport(report)
	}
	r.snapshot.Reports[report.NodeName] = append(r.snapshot.Reports[report.NodeName], report)
}

// AbsentError returns an error that names the absent pods and the most similar names, or nil.
func (s *Snapshot) AbsentError(ctx context.Context, reader client.Reader, namespace string) error {
	if len(s.Absent) == 0 {
		return nil
	}
	names := Names(ctx, reader, kindOf(permission.Pods), namespace)
	return notFound("pod", s.Absent, names, fmt.Sprintf(" in namespace %s", namespace))
}
