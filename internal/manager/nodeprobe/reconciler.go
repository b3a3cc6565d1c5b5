// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeprobe maintains the plan of every node that can run an agent: ProbePlans of a few pods
// each, and one NodePodProbe that refers to them. It compiles a node's plan when its inputs have
// settled, so that a burst of changes costs one write per changed ProbePlan. The package also deletes the
// ProbePlans and ProbeReports of nodes without an agent, and asks agents to restore ProbeReports that
// other clients delete or change.
package nodeprobe

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/keyed"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// Plans writes plans, as apply.Plans does.
type Plans interface {
	// Create creates the NodePodProbe of the node, with the references to its ProbePlans.
	Create(ctx context.Context, node *metav1.PartialObjectMetadata, references string) (*v1alpha1.NodePodProbe, error)
	// Refer replaces the references of the NodePodProbe and its removed pods, and removes the plan of OpenKruise.
	Refer(ctx context.Context, npp *v1alpha1.NodePodProbe, references string, removed []string) (version string, err error)
	// Delete deletes the NodePodProbe.
	Delete(ctx context.Context, npp *v1alpha1.NodePodProbe) error
	// WriteSlice creates or updates a ProbePlan.
	WriteSlice(ctx context.Context, node *metav1.PartialObjectMetadata, slice slicing.Slice) (*seamarkv1alpha1.ProbePlan, error)
}

// Options are the dependencies of a Reconciler. All are required.
type Options struct {
	// Reader reads pods, nodes, markers, NodePodProbes, ProbePlans and ProbeReports from the cache.
	Reader gather.Reader
	// Live reads nodes and pods from the API server.
	Live client.Reader
	// Plans writes plans.
	Plans Plans
	// Slices requests and deletes ProbeReports, and deletes ProbePlans.
	Slices Slices
	// Inbox receives nodes from other controllers.
	Inbox *controllers.Inbox
	// Refusals remembers the nodes whose plan cannot be written.
	Refusals *problems.Refusals
	// Metrics counts the writes.
	Metrics *metrics.Metrics
	// Now is the clock.
	Now func() time.Time
}

// Reconciler maintains the plan of one node at a time.
type Reconciler struct {
	Options
	// expectedHeaders are the last writes of NodePodProbes, and expectedPlans those of ProbePlans, by name.
	expectedHeaders apply.Expectations[string, header]
	expectedPlans   apply.Expectations[string, *seamarkv1alpha1.ProbePlan]
	// unstored are the writes that changed nothing, by name.
	unstored keyed.Store[string, unstored]

	// By node: what is known between two reconciles.
	bursts  keyed.Store[string, burst]
	losses  keyed.Store[string, loss]
	created keyed.Store[string, []creation]
	// searched are the nodes whose losses before this manager led are known.
	searched keyed.Store[string, bool]
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	return &Reconciler{Options: options}
}

// Reconcile creates, updates or deletes the plan of the requested node, with one write per changed
// ProbePlan and one of the references to them.
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
		return reconcile.Result{}, r.deleteForeign(ctx, npp)
	}
	// The plan does not wait for lost reports.
	notRestored := r.restore(ctx, npp)
	next, err := r.compile(ctx, node.Name)
	if err != nil {
		return reconcile.Result{}, errors.Join(notRestored, err)
	}
	retry, err := r.write(ctx, node, npp, next)
	r.Refusals.Note(types.NamespacedName{Name: node.Name}, err)
	if err = errors.Join(notRestored, err); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: retry}, nil
}

// forget removes what is remembered of a node without a plan.
func (r *Reconciler) forget(node string) {
	r.unstored.Forget(node)
	r.losses.Forget(node)
	r.searched.Forget(node)
	r.created.Forget(node)
	r.Refusals.Note(types.NamespacedName{Name: node}, nil)
}

// deleteOrphans deletes the plan and the ProbeReports of a node that is gone. It checks with the API
// server first, because the deletion loses the states.
func (r *Reconciler) deleteOrphans(ctx context.Context, name string, npp *v1alpha1.NodePodProbe) error {
	reports, err := r.Reader.Slices(ctx, name)
	if err != nil {
		return err
	}
	plans, err := r.Reader.ProbePlans(ctx, name)
	if err != nil || npp == nil && len(reports) == 0 && len(plans) == 0 {
		return err
	}
	node, err := gather.GetNode(ctx, r.Live, name)
	if err != nil || node != nil {
		return err
	}
	return errors.Join(r.delete(ctx, npp), r.deleteSlices(ctx, name))
}

// deleteForeign deletes the plan of an earlier node with the same name, which enqueues the node again. It checks
// with the API server first: the cache may have the earlier node and the plan of the later one. Then the event of the
// later node enqueues it.
func (r *Reconciler) deleteForeign(ctx context.Context, npp *v1alpha1.NodePodProbe) error {
	node, err := gather.GetNode(ctx, r.Live, npp.Name)
	if err != nil || node != nil && !ownedByAnother(npp, node) {
		return err
	}
	return r.delete(ctx, npp)
}

func (r *Reconciler) delete(ctx context.Context, npp *v1alpha1.NodePodProbe) error {
	if npp == nil || npp.DeletionTimestamp != nil {
		return nil
	}
	if err := r.Plans.Delete(ctx, npp); err != nil {
		return err
	}
	r.expectedHeaders.Forget(npp.Name)
	r.unstored.Forget(npp.Name)
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

// compiled is the whole plan of a node, and the UIDs of its pods: those that have not ended, of which only these may be in a
// later plan, and those that are ending.
type compiled struct {
	v1alpha1.NodePodProbeSpec
	alive, ending sets.Set[string]
}

func (c compiled) gone(uid string) bool { return !c.alive.Has(uid) }

func (r *Reconciler) compile(ctx context.Context, node string) (compiled, error) {
	pods, err := r.Reader.NodePods(ctx, node)
	if err != nil {
		return compiled{}, err
	}
	namespaces, alive, ending := sets.New[string](), sets.New[string](), sets.New[string]()
	for _, pod := range pods {
		namespaces.Insert(pod.Namespace)
		if plan.Ending(pod) {
			ending.Insert(string(pod.UID))
		} else {
			alive.Insert(string(pod.UID))
		}
	}
	var markers []*plan.Marker
	for namespace := range namespaces {
		found, err := r.Reader.Markers(ctx, namespace)
		if err != nil {
			return compiled{}, err
		}
		markers = append(markers, found...)
	}
	return compiled{plan.Node(pods, markers, r.Reader.Defaults), alive, ending}, nil
}
