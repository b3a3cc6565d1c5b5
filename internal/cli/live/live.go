// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live follows objects of the cluster for commands that watch. A Watch keeps the rows of package probestatus up to date. It
// is what cluster.Read is for one moment: the same objects, trimmed in the same way, and the same rows, of which only those that may
// have changed are computed again. A Signal says when objects of any kind have changed, for commands that wait. Reflectors of
// client-go list and watch; after an outage or an expired watch they list again, and only differences are changes.
package live

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// Watch has the current rows. Its methods are for one goroutine.
type Watch struct {
	objects *objects
	rows    table
	// Stop ends the watch and waits for its requests.
	Stop func()
}

// Start reads what the query selects, and then watches it until the context is canceled or Stop is
// called. A resource that the user may not list or watch, or that is not installed, is no error:
// see Snapshot. The line for the user is that of Follow.
func Start(ctx context.Context, c client.WithWatch, query cluster.Query, notify func(line string)) (*Watch, error) {
	w := &Watch{objects: newObjects(query), rows: table{}}
	var err error
	if w.Stop, err = Follow(ctx, c, w.sources(query), w.objects.lacks, notify); err != nil {
		return nil, err
	}
	return w, nil
}

// sources returns the resources with what the query selects of them.
func (w *Watch) sources(query cluster.Query) []Resource {
	var pods []client.ListOption
	fields := client.MatchingFields{}
	var ofNode, named []client.ListOption
	if query.Node != "" {
		fields[gather.NodeNameField] = query.Node
		ofNode = append(ofNode, client.MatchingFields{gather.SliceNodeField: query.Node})
		named = append(named, client.MatchingFields{metav1.ObjectNameField: query.Node})
	}
	if len(query.Names) == 1 {
		fields[metav1.ObjectNameField] = query.Names[0]
	}
	if len(fields) > 0 {
		pods = append(pods, fields)
	}
	if query.Selector != nil {
		pods = append(pods, client.MatchingLabelsSelector{Selector: query.Selector})
	}
	o := w.objects
	all := []Resource{
		ResourceOf(permission.Pods, query.Namespace, &corev1.PodList{}, o.pods, pods...),
		ResourceOf(permission.Markers, query.Namespace, &v1alpha1.PodProbeMarkerList{}, o.markers),
		ResourceOf(permission.Nodes, "", cluster.MetadataList(corev1.SchemeGroupVersion.WithKind("Node")), o.nodes, named...),
		ResourceOf(permission.Plans, "", &v1alpha1.NodePodProbeList{}, o.plans, named...),
		ResourceOf(permission.PlanSlices, "", &seamarkv1alpha1.ProbePlanList{}, o.slices, ofNode...),
		ResourceOf(permission.Reports, "", &seamarkv1alpha1.ProbeReportList{}, o.reports, ofNode...),
	}
	if query.Guards {
		all = append(all, ResourceOf(permission.Budgets, query.Namespace, &policyv1.PodDisruptionBudgetList{}, o.guards, client.MatchingLabels(guard.Labels())))
	}
	return all
}

// Snapshot returns all objects, as cluster.Read does.
func (w *Watch) Snapshot() *cluster.Snapshot {
	snapshot, _ := w.objects.take(true)
	return snapshot
}

// Changed has a value if Update may return changes.
func (w *Watch) Changed() <-chan struct{} { return w.objects.signal.Changed() }

// Update returns the changes since the last call, ordered as Rows. The first call returns all rows.
// The states are those of the pods that may have changed, and all markers that have no effect.
func (w *Watch) Update() ([]Change, probestatus.States) {
	snapshot, pods := w.objects.take(false)
	for _, pod := range snapshot.Pods {
		pods = append(pods, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
	current := probestatus.List(snapshot.Input)
	if waiting := current.Waiting; len(waiting) > 0 {
		time.AfterFunc(current.RecheckAt.Sub(snapshot.Now), func() { w.objects.recheck(waiting) })
	}
	return w.rows.apply(pods, current.Rows), current
}

// Rows returns all rows as of the last Update, in the order of probestatus.List.
func (w *Watch) Rows() []probestatus.Row { return w.rows.all() }
