// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeprobe maintains one NodePodProbe, whose spec is the plan, for every node that can
// run an agent. It compiles a node's plan when its inputs have settled, so that a burst of
// changes costs one write per node. It also deletes the ProbeReports of nodes without an agent, and
// asks agents to restore those that other clients delete or change.
package nodeprobe

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/keyed"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// eventPlanTooLarge is the reason of the event on a node whose plan the API server refused.
const eventPlanTooLarge = "ProbePlanTooLarge"

// Plans writes plans, as apply.Plans does.
type Plans interface {
	Create(ctx context.Context, node *metav1.PartialObjectMetadata, spec v1alpha1.NodePodProbeSpec) (*v1alpha1.NodePodProbe, error)
	Replace(ctx context.Context, node string, spec v1alpha1.NodePodProbeSpec) (string, error)
	Delete(ctx context.Context, npp *v1alpha1.NodePodProbe) error
}

// Options are the dependencies of a Reconciler. All are required.
type Options struct {
	// Reader reads pods, nodes, markers, NodePodProbes and ProbeReports from the cache.
	Reader gather.Reader
	// Live reads nodes from the API server.
	Live client.Reader
	// Plans writes plans.
	Plans Plans
	// Slices requests and deletes ProbeReports.
	Slices Slices
	// Recorder records events on nodes.
	Recorder record.EventRecorder
	// Inbox receives nodes from other controllers.
	Inbox *controllers.Inbox
	// Refusals remembers the nodes whose plan cannot be written.
	Refusals *problems.Refusals
	// Metrics counts the writes.
	Metrics *metrics.Metrics
	// Shortages gets what the plans leave out.
	Shortages *problems.Shortages
	// Now is the clock.
	Now func() time.Time
}

// Reconciler maintains the NodePodProbe of one node at a time.
type Reconciler struct {
	Options
	recent apply.Recent[string, v1alpha1.NodePodProbeSpec]

	// By node: what is known between two reconciles.
	bursts   keyed.Store[string, burst]
	budgets  keyed.Store[string, reduction]
	unstored keyed.Store[string, unstored]
	losses   keyed.Store[string, loss]
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	return &Reconciler{Options: options}
}

// Reconcile creates, updates or deletes the NodePodProbe of the requested node, with at most
// one write, and one more if ProbeReports of the node were lost.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if wait := r.debouncing(request.Name); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	npp, err := r.Reader.NodePodProbe(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	node, err := gather.GetNode(ctx, r.Reader.Client, request.Name)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case node == nil:
		r.forget(request.Name)
		return reconcile.Result{}, r.deleteOrphans(ctx, request.Name, npp)
	case !serverless.HasAgent(node.Labels):
		r.forget(request.Name)
		return reconcile.Result{}, errors.Join(r.delete(ctx, npp), r.deleteSlices(ctx, request.Name))
	case npp != nil && ownedByAnother(npp, node):
		// The deletion enqueues the node again.
		return reconcile.Result{}, r.delete(ctx, npp)
	}
	// The plan does not wait for lost reports.
	notRestored := r.restore(ctx, npp)
	spec, pods, err := r.compile(ctx, node.Name)
	if err != nil {
		return reconcile.Result{}, errors.Join(notRestored, err)
	}
	result, err := r.fit(ctx, node, npp, spec, pods)
	if err = errors.Join(notRestored, err); err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// forget removes what is remembered of a node without a plan.
func (r *Reconciler) forget(node string) {
	r.budgets.Forget(node)
	r.unstored.Forget(node)
	r.losses.Forget(node)
	r.Shortages.Set(node, nil)
	r.Refusals.Note(types.NamespacedName{Name: node}, nil)
}

// deleteOrphans deletes the NodePodProbe and the ProbeReports of a node that is gone. It checks with
// the API server first, because the deletion loses the states.
func (r *Reconciler) deleteOrphans(ctx context.Context, name string, npp *v1alpha1.NodePodProbe) error {
	if npp == nil {
		if slices, err := r.Reader.Slices(ctx, name); err != nil || len(slices) == 0 {
			return err
		}
	}
	node, err := gather.GetNode(ctx, r.Live, name)
	if err != nil || node != nil {
		return err
	}
	return errors.Join(r.delete(ctx, npp), r.deleteSlices(ctx, name))
}

func (r *Reconciler) delete(ctx context.Context, npp *v1alpha1.NodePodProbe) error {
	if npp == nil || npp.DeletionTimestamp != nil {
		return nil
	}
	if err := r.Plans.Delete(ctx, npp); err != nil {
		return err
	}
	r.recent.Forget(npp.Name)
	r.Metrics.PlanWritten(metrics.PlanDeleted)
	logChanges(ctx, npp.Spec.PodProbes, nil)
	log.FromContext(ctx).V(logging.Writes).Info("Deleted NodePodProbe")
	return nil
}

// ownedByAnother reports whether the object belongs to an earlier node with the same name. The
// garbage collector will delete it because that node is gone.
func ownedByAnother(npp *v1alpha1.NodePodProbe, node *metav1.PartialObjectMetadata) bool {
	owner := metav1.GetControllerOf(npp)
	return owner != nil && owner.Kind == "Node" && owner.UID != node.UID
}

// compile returns the whole plan of the node and the node's pods.
func (r *Reconciler) compile(ctx context.Context, node string) (v1alpha1.NodePodProbeSpec, []*corev1.Pod, error) {
	pods, err := r.Reader.NodePods(ctx, node)
	if err != nil {
		return v1alpha1.NodePodProbeSpec{}, nil, err
	}
	namespaces := sets.New[string]()
	for _, pod := range pods {
		namespaces.Insert(pod.Namespace)
	}
	var markers []*plan.Marker
	for namespace := range namespaces {
		found, err := r.Reader.Markers(ctx, namespace)
		if err != nil {
			return v1alpha1.NodePodProbeSpec{}, nil, err
		}
		markers = append(markers, found...)
	}
	return plan.Node(pods, markers, r.Reader.Defaults), pods, nil
}

// fit writes the part of the plan that fits into the node's budget. If the API server refuses it as
// too large, fit reduces the budget, because removals must reach the plan: markers and namespaces
// that are being deleted wait for them.
func (r *Reconciler) fit(ctx context.Context, node *metav1.PartialObjectMetadata, npp *v1alpha1.NodePodProbe, spec v1alpha1.NodePodProbeSpec, pods []*corev1.Pod) (reconcile.Result, error) {
	budget, _ := r.budgets.Get(node.Name)
	maxBytes, reduced := budget.at(r.Now())
	for refused := 0; ; refused++ {
		fitted, shortages := plan.Fit(spec, pods, maxBytes)
		var retry time.Duration
		var err error
		if npp != nil {
			retry, err = r.replace(ctx, npp, fitted)
		} else {
			// The node is enqueued when the cache gets a NodePodProbe that exists already.
			err = client.IgnoreAlreadyExists(r.create(ctx, node, fitted))
		}
		r.Refusals.Note(types.NamespacedName{Name: node.Name}, err)
		switch {
		case errors.Is(err, apply.ErrTooLarge) && len(fitted.PodProbes) > 0:
			maxBytes = plan.Size(fitted) / 2
			reduced = reducedFor
			r.budgets.Set(node.Name, reduction{maxBytes: maxBytes, until: r.Now().Add(reducedFor)})
			if refused == 0 {
				r.reportTooLarge(node, len(fitted.PodProbes))
			}
		case err != nil:
			// If even an empty plan is too large, the report is, and the agent may shorten it.
			return reconcile.Result{}, err
		default:
			r.Shortages.Set(node.Name, byMarker(shortages))
			if reduced == 0 || retry > 0 && retry < reduced {
				reduced = retry
			}
			return reconcile.Result{RequeueAfter: reduced}, nil
		}
	}
}

func byMarker(shortages []plan.Shortage) map[types.NamespacedName][]plan.Shortage {
	found := make(map[types.NamespacedName][]plan.Shortage)
	for _, short := range shortages {
		marker := types.NamespacedName{Namespace: short.Namespace, Name: short.ID.Marker}
		found[marker] = append(found[marker], short)
	}
	return found
}

func (r *Reconciler) reportTooLarge(node *metav1.PartialObjectMetadata, pods int) {
	r.Recorder.Eventf(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: types.UID(node.Name)},
		corev1.EventTypeWarning, eventPlanTooLarge,
		"The API server refused the node's plan with %d pods as too large. A smaller plan takes its place: "+
			"the probes that it leaves out do not run, and their marks are removed.", pods)
}

func (r *Reconciler) create(ctx context.Context, node *metav1.PartialObjectMetadata, spec v1alpha1.NodePodProbeSpec) error {
	created, err := r.Plans.Create(ctx, node, spec)
	if err != nil {
		return err
	}
	r.recent.Wrote(node.Name, created.UID, created.ResourceVersion, spec)
	r.Metrics.PlanWritten(metrics.PlanCreated)
	logChanges(ctx, nil, spec.PodProbes)
	log.FromContext(ctx).V(logging.Writes).Info("Created NodePodProbe", "pods", len(spec.PodProbes))
	return nil
}

// replace returns when the plan must be written again, zero if it is stored.
func (r *Reconciler) replace(ctx context.Context, npp *v1alpha1.NodePodProbe, spec v1alpha1.NodePodProbeSpec) (retry time.Duration, err error) {
	current, unseen := r.recent.Unseen(npp.Name, npp.UID, npp.ResourceVersion)
	if !unseen {
		current = npp.Spec
	}
	if equality.Semantic.DeepEqual(current, spec) {
		return 0, nil
	}
	if last, found := r.unstored.Get(npp.Name); found && !unseen && last.write == writeOf(npp, spec) {
		if wait := last.until.Sub(r.Now()); wait > 0 {
			return wait, nil
		}
	}
	version, err := r.Plans.Replace(ctx, npp.Name, spec)
	switch {
	case errors.Is(err, apply.ErrGone):
		// The deletion enqueues the node again.
		return 0, nil
	case err != nil:
		return 0, err
	case version == npp.ResourceVersion:
		r.unstored.Set(npp.Name, unstored{write: writeOf(npp, spec), until: r.Now().Add(unstoredFor)})
		return unstoredFor, nil
	}
	r.unstored.Forget(npp.Name)
	r.recent.Wrote(npp.Name, npp.UID, version, spec)
	r.Metrics.PlanWritten(metrics.PlanReplaced)
	logChanges(ctx, current.PodProbes, spec.PodProbes)
	log.FromContext(ctx).V(logging.Writes).Info("Replaced plan", "pods", len(spec.PodProbes))
	return 0, nil
}

// logChanges logs what a new plan changes for each pod, at the level of writes: first the pods that were
// removed, then the others that differ, in the order of the plan.
func logChanges(ctx context.Context, before, after []v1alpha1.PodProbe) {
	lines := log.FromContext(ctx).V(logging.Writes)
	if !lines.Enabled() {
		return
	}
	byUID := func(pods []v1alpha1.PodProbe) map[string]*v1alpha1.PodProbe {
		found := make(map[string]*v1alpha1.PodProbe, len(pods))
		for i := range pods {
			found[pods[i].UID] = &pods[i]
		}
		return found
	}
	earlier, later := byUID(before), byUID(after)
	for i := range before {
		if pod := &before[i]; later[pod.UID] == nil {
			lines.Info("Unplanned pod", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID)
		}
	}
	for i := range after {
		pod := &after[i]
		if was := earlier[pod.UID]; was == nil || !equality.Semantic.DeepEqual(was, pod) {
			lines.Info("Planned pod", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "probes", len(pod.Probes))
		}
	}
}
