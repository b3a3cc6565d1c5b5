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

// Watch has the current rows. Its methods are for one goroutine, except Lacks.
type Watch struct {
	*objects
	rows table
	// invalid are the markers that have no effect.
	invalid map[types.NamespacedName]error
	// Stop ends the watch and waits for its requests.
	Stop func()
}

// NewWatch returns the watch of a query without objects, for Follow.
func NewWatch(query cluster.Query) *Watch { return &Watch{objects: newObjects(query), rows: table{}} }

// Start reads what the query selects, and then watches it until the context is canceled or Stop is
// called. A resource that the user may not list or watch, or that is not installed, is no error:
// see Snapshot. The line for the user is that of Follow.
func Start(ctx context.Context, c client.WithWatch, query cluster.Query, notify func(line string)) (*Watch, error) {
	w := NewWatch(query)
	var err error
	if w.Stop, err = Follow(ctx, c, append(w.Namespaced(query), w.States(query)...), w.Lacks, notify); err != nil {
		return nil, err
	}
	return w, nil
}

// Namespaced returns the pods of the query, and the markers and guards of its namespace. The options select pods too.
func (w *Watch) Namespaced(query cluster.Query, pods ...client.ListOption) []Resource {
	fields := client.MatchingFields{}
	if query.Node != "" {
		fields[gather.NodeNameField] = query.Node
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
	resources := []Resource{
		ResourceOf(permission.Pods, query.Namespace, &corev1.PodList{}, w.pods, pods...),
		ResourceOf(permission.Markers, query.Namespace, &v1alpha1.PodProbeMarkerList{}, w.markers),
	}
	if query.Guards {
		guards := client.MatchingLabels(guard.Labels())
		resources = append(resources, ResourceOf(permission.Budgets, query.Namespace, &policyv1.PodDisruptionBudgetList{}, w.guards, guards))
	}
	return resources
}

// States returns the nodes, plans and reports of the node of the query, or of all nodes.
func (w *Watch) States(query cluster.Query) []Resource {
	var ofNode, named []client.ListOption
	if query.Node != "" {
		ofNode = append(ofNode, client.MatchingFields{gather.SliceNodeField: query.Node})
		named = append(named, client.MatchingFields{metav1.ObjectNameField: query.Node})
	}
	return []Resource{
		ResourceOf(permission.Nodes, "", cluster.MetadataList(corev1.SchemeGroupVersion.WithKind("Node")), w.nodes, named...),
		ResourceOf(permission.Plans, "", &v1alpha1.NodePodProbeList{}, w.plans, named...),
		ResourceOf(permission.PlanSlices, "", &seamarkv1alpha1.ProbePlanList{}, w.slices, ofNode...),
		ResourceOf(permission.Reports, "", &seamarkv1alpha1.ProbeReportList{}, w.reports, ofNode...),
	}
}

// Snapshot returns all objects, as cluster.Read does.
func (w *Watch) Snapshot() *cluster.Snapshot { return w.take(true).Snapshot }

// Update returns the changes since the last call, ordered as Rows. The first call returns all rows.
// The states are those of the pods that may have changed, and all markers that have no effect.
func (w *Watch) Update() ([]Change, probestatus.States) {
	stale, current := w.Take()
	return w.rows.apply(stale.Pods, current.Rows), current
}

// Take returns what may have changed since the last call, and the states of the pods among it, with all markers that
// have no effect. The first call returns all pods.
func (w *Watch) Take() (Stale, probestatus.States) {
	stale := w.take(false)
	current := probestatus.List(stale.Snapshot.Input)
	if stale.Markers {
		w.invalid = current.Invalid
	}
	current.Invalid = w.invalid
	if waiting := current.Waiting; len(waiting) > 0 {
		time.AfterFunc(current.RecheckAt.Sub(stale.Snapshot.Now), func() { w.recheck(waiting) })
	}
	return stale, current
}

// Rows returns all rows as of the last Update, in the order of probestatus.List.
func (w *Watch) Rows() []probestatus.Row { return w.rows.all() }
