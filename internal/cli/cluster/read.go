// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/states"
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
	// have only what rows and marks are computed from: see view.PodTrimmer. Without it, 10,000
	// pods take several times the memory.
	Whole bool
	// Controllers keeps the kind and the name of the controller of each pod.
	Controllers bool
}

// Snapshot is what Read has read.
type Snapshot struct {
	// Input has the objects, for package probestate.
	probestate.Input
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
	group.Go(func() error { return r.listMarkers(groupContext) })
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
	return &r.snapshot, nil
}

// reading is one call of Read.
type reading struct {
	query    Query
	reader   client.Reader
	pods     *view.PodTrimmer
	plans    *view.PlanTrimmer
	missing  missing
	snapshot Snapshot
}

// ViewOptions returns the settings of the manager that states are computed with.
func ViewOptions() view.Options {
	// Which defaults the manager has does not matter for states. Providers probe pods on virtual
	// nodes only if the manager's serverless mode is on; otherwise no one does.
	return view.Options{Defaults: plan.KubernetesDefaults(), Serverless: true}
}

func newReading(reader client.Reader, query Query) *reading {
	options := ViewOptions()
	pods := view.NewPodTrimmer(options)
	if query.Controllers {
		pods = pods.WithControllers()
	}
	return &reading{
		query: query, reader: reader, pods: pods, plans: view.NewPlanTrimmer(),
		snapshot: Snapshot{Input: probestate.Input{
			Options: options,
			Nodes:   map[string]*metav1.PartialObjectMetadata{},
			Plans:   map[string]*v1alpha1.NodePodProbe{},
			Reports: map[string][]*seamarkv1alpha1.ProbeReport{},
		}},
	}
}

// Each lists the objects in pages and calls take for each page. The caller adds to an error what was
// listed.
func Each[L client.ObjectList](ctx context.Context, reader client.Reader, newList func() L, take func(L), which ...client.ListOption) error {
	next := ""
	for {
		page := newList()
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

// Paged tells client-go that a list is not streamed: see cache.ToListWatcherWithWatchListSemantics.
type Paged struct{}

// IsWatchListSemanticsUnSupported implements an interface of client-go.
func (Paged) IsWatchListSemanticsUnSupported() bool { return true }

func (r *reading) readPods(ctx context.Context) error {
	if len(r.query.Names) > 0 {
		return r.getPods(ctx)
	}
	which := []client.ListOption{client.InNamespace(r.query.Namespace)}
	if r.query.Selector != nil {
		which = append(which, client.MatchingLabelsSelector{Selector: r.query.Selector})
	}
	if r.query.Node != "" {
		which = append(which, client.MatchingFields{gather.NodeNameField: r.query.Node})
	}
	err := Each(ctx, r.reader, func() *corev1.PodList { return &corev1.PodList{} }, func(page *corev1.PodList) {
		for i := range page.Items {
			r.addPod(&page.Items[i])
		}
	}, which...)
	return r.missing.note(err, "list", permission.Pods, r.query.Namespace)
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

func (r *reading) listMarkers(ctx context.Context) error {
	err := Each(ctx, r.reader, func() *v1alpha1.PodProbeMarkerList { return &v1alpha1.PodProbeMarkerList{} },
		func(page *v1alpha1.PodProbeMarkerList) {
			for i := range page.Items {
				r.snapshot.Markers = append(r.snapshot.Markers, &page.Items[i])
			}
		}, client.InNamespace(r.query.Namespace))
	return r.missing.note(err, "list", permission.Markers, r.query.Namespace)
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
	found := make(chan func(), 3*len(nodes))
	for node := range nodes {
		group.Go(func() error { return r.getNode(ctx, node, found) })
		group.Go(func() error { return r.getPlan(ctx, node, found) })
		group.Go(func() error { return r.listReports(ctx, found, client.MatchingFields{gather.SliceNodeField: node}) })
	}
	err := group.Wait()
	close(found)
	for add := range found {
		add()
	}
	return err
}

// getNode, getPlan and listReports send what adds the result to the snapshot, because several of
// them run at the same time.
func (r *reading) getNode(ctx context.Context, name string, found chan<- func()) error {
	node := gather.NewNode()
	err := r.reader.Get(ctx, types.NamespacedName{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		found <- func() { r.snapshot.Nodes[name] = node }
	}
	return r.missing.note(err, "get", permission.Nodes, "")
}

func (r *reading) getPlan(ctx context.Context, name string, found chan<- func()) error {
	npp := &v1alpha1.NodePodProbe{}
	err := r.reader.Get(ctx, types.NamespacedName{Name: name}, npp)
	if apierrors.IsNotFound(err) && !IsNotInstalled(err) {
		return nil
	}
	if err == nil {
		found <- func() { r.addPlan(npp) }
	}
	return r.missing.note(err, "get", permission.Plans, "")
}

func (r *reading) listReports(ctx context.Context, found chan<- func(), which ...client.ListOption) error {
	var reports []*seamarkv1alpha1.ProbeReport
	err := Each(ctx, r.reader, func() *seamarkv1alpha1.ProbeReportList { return &seamarkv1alpha1.ProbeReportList{} },
		func(page *seamarkv1alpha1.ProbeReportList) {
			for i := range page.Items {
				reports = append(reports, r.trimReport(&page.Items[i]))
			}
		}, which...)
	if err == nil {
		found <- func() {
			for _, report := range reports {
				r.snapshot.Reports[report.NodeName] = append(r.snapshot.Reports[report.NodeName], report)
			}
		}
	}
	return r.missing.note(err, "list", permission.Reports, "")
}

// listNodes starts to list the plans, reports and metadata of all nodes.
func (r *reading) listNodes(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error {
		err := Each(ctx, r.reader, func() *metav1.PartialObjectMetadataList {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
			return list
		}, func(page *metav1.PartialObjectMetadataList) {
			for i := range page.Items {
				node := view.TrimNode(&page.Items[i])
				r.snapshot.Nodes[node.Name] = node
			}
		})
		return r.missing.note(err, "list", permission.Nodes, "")
	})
	group.Go(func() error {
		err := Each(ctx, r.reader, func() *v1alpha1.NodePodProbeList { return &v1alpha1.NodePodProbeList{} },
			func(page *v1alpha1.NodePodProbeList) {
				for i := range page.Items {
					r.addPlan(&page.Items[i])
				}
			})
		return r.missing.note(err, "list", permission.Plans, "")
	})
	group.Go(func() error {
		found := make(chan func(), 1)
		err := r.listReports(ctx, found)
		close(found)
		for add := range found {
			add()
		}
		return err
	})
}

func (r *reading) addPlan(npp *v1alpha1.NodePodProbe) {
	if !r.query.Whole {
		npp = r.plans.Trim(npp)
	}
	r.snapshot.Plans[npp.Name] = npp
}

func (r *reading) trimReport(report *seamarkv1alpha1.ProbeReport) *seamarkv1alpha1.ProbeReport {
	if r.query.Whole {
		return report
	}
	return view.TrimReport(report)
}

// AbsentError returns an error that names the absent pods and the most similar names, or nil.
func (s *Snapshot) AbsentError(ctx context.Context, reader client.Reader, namespace string) error {
	if len(s.Absent) == 0 {
		return nil
	}
	// Without the permission to list, nothing is suggested.
	names, _ := podNames(ctx, reader, namespace)
	return notFound("pod", s.Absent, names, fmt.Sprintf(" in namespace %s", namespace))
}
