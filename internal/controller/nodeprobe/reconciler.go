// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeprobe keeps one NodePodProbe for every node that a kubelet runs, with the
// plan that the node's pods and the markers call for. A node's plan is compiled once
// its inputs rest, so that a burst of changes costs one write a node.
package nodeprobe

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/apply"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/logging"
	metrics "github.com/seamark-dev/seamark/internal/metrics/manager"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/serverless"
)

// eventPlanTooLarge is the reason of the event on a node whose plan can't be stored.
const eventPlanTooLarge = "ProbePlanTooLarge"

// Plans writes plans, as apply.Plans does.
type Plans interface {
	Create(ctx context.Context, node *metav1.PartialObjectMetadata, spec v1alpha1.NodePodProbeSpec) (*v1alpha1.NodePodProbe, error)
	Replace(ctx context.Context, node string, spec v1alpha1.NodePodProbeSpec) (string, error)
	Delete(ctx context.Context, npp *v1alpha1.NodePodProbe) error
}

// Options are what a Reconciler works with. All are required.
type Options struct {
	// Cache reads pods, nodes (their metadata alone), markers and NodePodProbes.
	Cache client.Reader
	// Live reads nodes from the API server.
	Live client.Reader
	// Plans writes.
	Plans Plans
	// Compiler compiles markers.
	Compiler *plan.Compiler
	// Defaults are for the fields that a marker leaves unset.
	Defaults plan.Defaults
	// Recorder records events on nodes.
	Recorder record.EventRecorder
	// Metrics counts the writes.
	Metrics *metrics.Metrics
	// Now is the clock.
	Now func() time.Time
}

// Reconciler keeps the NodePodProbe of one node at a time.
type Reconciler struct {
	Options
	bursts *bursts
	recent *apply.Recent[string, v1alpha1.NodePodProbeSpec]
}

// New returns a Reconciler that knows of no change yet.
func New(options Options) *Reconciler {
	return &Reconciler{
		Options: options,
		bursts:  newBursts(),
		recent:  apply.NewRecent[string, v1alpha1.NodePodProbeSpec](),
	}
}

// Reconcile makes the NodePodProbe of the node named by the request what it should be,
// with at most one write.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if wait := r.bursts.take(request.Name, r.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	npp, err := r.nodePodProbe(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	node, err := getNode(ctx, r.Cache, request.Name)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case node == nil:
		return reconcile.Result{}, r.deleteOrphan(ctx, npp)
	case serverless.IsVirtual(node.Labels):
		return reconcile.Result{}, r.delete(ctx, npp)
	case npp != nil && ownedByAnother(npp, node):
		// Its deletion asks for this node again.
		return reconcile.Result{}, r.delete(ctx, npp)
	}
	spec, err := r.compile(ctx, node.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	return r.write(ctx, node, npp, spec)
}

func (r *Reconciler) nodePodProbe(ctx context.Context, name string) (*v1alpha1.NodePodProbe, error) {
	npp := &v1alpha1.NodePodProbe{}
	err := r.Cache.Get(ctx, types.NamespacedName{Name: name}, npp)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the NodePodProbe %s: %w", name, err)
	}
	return npp, nil
}

// getNode returns nil where there is no such node.
func getNode(ctx context.Context, reader client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	node := controller.NewNode()
	err := reader.Get(ctx, types.NamespacedName{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	return node, nil
}

// deleteOrphan deletes a NodePodProbe whose node is gone. It asks the API server
// first: with the object go the states in its status.
func (r *Reconciler) deleteOrphan(ctx context.Context, npp *v1alpha1.NodePodProbe) error {
	if npp == nil {
		return nil
	}
	node, err := getNode(ctx, r.Live, npp.Name)
	if err != nil || node != nil {
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
	r.recent.Forget(npp.Name)
	r.Metrics.PlanWritten(metrics.PlanDeleted)
	tell(ctx, npp.Spec.PodProbes, nil)
	log.FromContext(ctx).V(logging.Writes).Info("Deleted NodePodProbe")
	return nil
}

// ownedByAnother tells whether the object was made for an earlier node of the name. It
// will be collected with that node.
func ownedByAnother(npp *v1alpha1.NodePodProbe, node *metav1.PartialObjectMetadata) bool {
	owner := metav1.GetControllerOf(npp)
	return owner != nil && owner.Kind == "Node" && owner.UID != node.UID
}

func (r *Reconciler) compile(ctx context.Context, node string) (v1alpha1.NodePodProbeSpec, error) {
	var list corev1.PodList
	if err := r.Cache.List(ctx, &list, client.MatchingFields{controller.NodeNameField: node}); err != nil {
		return v1alpha1.NodePodProbeSpec{}, fmt.Errorf("listing the pods of node %s: %w", node, err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	namespaces := sets.New[string]()
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
		namespaces.Insert(list.Items[i].Namespace)
	}
	var markers []*plan.Marker
	for namespace := range namespaces {
		found, err := controller.Markers(ctx, r.Cache, r.Compiler, namespace)
		if err != nil {
			return v1alpha1.NodePodProbeSpec{}, err
		}
		markers = append(markers, found...)
	}
	return plan.Node(pods, markers, r.Defaults), nil
}

func (r *Reconciler) write(ctx context.Context, node *metav1.PartialObjectMetadata, npp *v1alpha1.NodePodProbe, spec v1alpha1.NodePodProbeSpec) (reconcile.Result, error) {
	var err error
	if npp == nil {
		err = r.create(ctx, node, spec)
		if apierrors.IsAlreadyExists(err) {
			// The cache doesn't show it yet.
			return reconcile.Result{RequeueAfter: podRest().quiet}, nil
		}
	} else {
		err = r.replace(ctx, npp, spec)
	}
	if errors.Is(err, apply.ErrTooLarge) {
		r.Recorder.Eventf(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: types.UID(node.Name)},
			corev1.EventTypeWarning, eventPlanTooLarge,
			"The API server can't store the node's plan, which has too many pods (%d); the plan before it stays in force.", len(spec.PodProbes))
		// Another try can't help; the next change of an input may.
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) create(ctx context.Context, node *metav1.PartialObjectMetadata, spec v1alpha1.NodePodProbeSpec) error {
	created, err := r.Plans.Create(ctx, node, spec)
	if err != nil {
		return err
	}
	r.recent.Wrote(node.Name, created.UID, created.ResourceVersion, spec)
	r.Metrics.PlanWritten(metrics.PlanCreated)
	tell(ctx, nil, spec.PodProbes)
	log.FromContext(ctx).V(logging.Writes).Info("Created NodePodProbe", "pods", len(spec.PodProbes))
	return nil
}

func (r *Reconciler) replace(ctx context.Context, npp *v1alpha1.NodePodProbe, spec v1alpha1.NodePodProbeSpec) error {
	current, unseen := r.recent.Unseen(npp.Name, npp.UID, npp.ResourceVersion)
	if !unseen {
		current = npp.Spec
	}
	if equality.Semantic.DeepEqual(current, spec) {
		return nil
	}
	version, err := r.Plans.Replace(ctx, npp.Name, spec)
	switch {
	case errors.Is(err, apply.ErrGone):
		// Its deletion asks for this node again.
		return nil
	case err != nil:
		return err
	}
	r.recent.Wrote(npp.Name, npp.UID, version, spec)
	r.Metrics.PlanWritten(metrics.PlanReplaced)
	tell(ctx, current.PodProbes, spec.PodProbes)
	log.FromContext(ctx).V(logging.Writes).Info("Replaced plan", "pods", len(spec.PodProbes))
	return nil
}
