// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live keeps the rows of package probestate up to date by watching the cluster. It is what
// cluster.Read is for one moment: the same objects, trimmed in the same way, and the same rows, of
// which only those that may have changed are computed again. Reflectors of client-go list and
// watch; after an outage or an expired watch they list again, and only differences are changes.
package live

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/states"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// Watch has the current rows. Its methods are for one goroutine.
type Watch struct {
	objects *objects
	rows    table
	stop    context.CancelCauseFunc
	feeds   sync.WaitGroup
}

// Start reads what the query selects, and then watches it until the context is canceled or Stop is
// called. A resource that the user may not list or watch, or that is not installed, is no error:
// see Snapshot. Once Start has returned, requests that fail are repeated, and notify is called with
// a line for the user when this begins and ends. It may be called by several goroutines.
func Start(ctx context.Context, c client.WithWatch, query cluster.Query, notify func(line string)) (*Watch, error) {
	w := &Watch{objects: newObjects(query), rows: table{}}
	// Without a logger of its own, client-go writes to standard error.
	ctx, w.stop = context.WithCancelCause(klog.NewContext(ctx, logr.Discard()))
	health := &health{notify: notify, failed: map[permission.Resource]bool{}}
	var feeds []*feed
	for _, source := range w.sources(query) {
		f := &feed{
			source: source, client: c, health: health, ready: make(chan struct{}),
			lacks: w.objects.lacks, fail: w.stop,
		}
		feeds = append(feeds, f)
		w.feeds.Go(func() { f.run(ctx) })
	}
	for _, f := range feeds {
		select {
		case <-f.ready:
		case <-ctx.Done():
			w.Stop()
			return nil, context.Cause(ctx)
		}
	}
	return w, nil
}

// sources returns the resources with what the query selects of them.
func (w *Watch) sources(query cluster.Query) []source {
	namespace := client.InNamespace(query.Namespace)
	pods := []client.ListOption{namespace}
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
	return []source{
		sourceOf(permission.Pods, query.Namespace, &corev1.PodList{}, &o.pods, pods),
		sourceOf(permission.Markers, query.Namespace, &v1alpha1.PodProbeMarkerList{}, &o.markers, []client.ListOption{namespace}),
		sourceOf(permission.Nodes, "", newNodeList(), &o.nodes, named),
		sourceOf(permission.Plans, "", &v1alpha1.NodePodProbeList{}, &o.plans, named),
		sourceOf(permission.Reports, "", &seamarkv1alpha1.ProbeReportList{}, &o.reports, ofNode),
	}
}

// newNodeList returns an empty list of nodes that have only metadata.
func newNodeList() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	return list
}

// Stop ends the watch and waits for its requests.
func (w *Watch) Stop() {
	w.stop(nil)
	w.feeds.Wait()
}

// Snapshot returns all objects, as cluster.Read does.
func (w *Watch) Snapshot() *cluster.Snapshot {
	snapshot, _ := w.objects.take(true)
	return snapshot
}

// Changed has a value if Update may return changes.
func (w *Watch) Changed() <-chan struct{} { return w.objects.changed }

// Update returns the changes since the last call, ordered as Rows. The first call returns all rows.
// The states are those of the pods that may have changed, and all markers that have no effect.
func (w *Watch) Update() ([]Change, probestate.States) {
	snapshot, pods := w.objects.take(false)
	for _, pod := range snapshot.Pods {
		pods = append(pods, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
	states := probestate.Of(snapshot.Input)
	if waiting := states.Waiting; len(waiting) > 0 {
		time.AfterFunc(states.Again.Sub(snapshot.Now), func() { w.objects.recheck(waiting) })
	}
	return w.rows.apply(pods, states.Rows), states
}

// Rows returns all rows as of the last Update, in the order of probestate.Of.
func (w *Watch) Rows() []probestate.Row { return w.rows.all() }
