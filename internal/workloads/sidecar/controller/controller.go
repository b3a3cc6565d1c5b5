// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller runs SidecarSets: it accepts their generations, writes the webhook entries by which the
// API server asks the injectors, updates pods, and writes the status of the sets. While OpenKruise serves the sets, it
// only accepts and writes entries, so that no pod is created without its containers when OpenKruise ends: injection
// changes nothing in a pod that OpenKruise has injected. It writes only fields of the status that OpenKruise does not.
package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
)

// ConfigurationName is the name of the ConfigMap with the white list of annotations.
const ConfigurationName = "kruise-configuration"

// Kind returns the kind of the sets.
func Kind() schema.GroupVersionKind { return history.Kind() }

// Options are the dependencies of a Controller. All are required.
type Options struct {
	// Sets, Revisions and Configurations are the informers of SidecarSets, with SetIndexers, of the ControllerRevisions, with
	// reconciler.RevisionIndexers, and of the MutatingWebhookConfigurations.
	Sets, Revisions, Configurations reconciler.Store
	// Budgets are the PodDisruptionBudgets that are guards.
	Budgets reconciler.Store
	// Pods are those of all namespaces, with PodIndexers, and Namespaces the metadata of these.
	Pods, Namespaces reconciler.Store
	// Pause is active while another program serves the sets.
	Pause *reconciler.Pause
	// Maps are the caches of the ConfigMaps of the own namespace, by name: ConfigurationName and
	// certificates.BundleName.
	Maps map[string]cache.Cache
	// Client writes statuses and configurations, and creates pods as a dry run.
	Client client.Client
	// Live reads configurations from the API server.
	Live client.Reader
	// Executor writes revisions.
	Executor *apply.Executor
	// Recorder records events on sets, and Metrics counts.
	Recorder record.EventRecorder
	Metrics  reconciler.Metrics
	// Address is where the API server reaches the injectors, without their CA.
	Address admissionregistrationv1.WebhookClientConfig
	// Namespace is the program's own namespace. No set selects its pods, nor those of ExcludedNamespaces.
	Namespace          string
	ExcludedNamespaces []string
	// DefaultAllowed allows all annotations of sets for which the white list has no expressions.
	DefaultAllowed bool
	// Now is the clock.
	Now func() time.Time
}

// Controller runs the sets.
type Controller struct {
	Options
	ledger *ledger
	board  *board
	states setStates
	// changed enqueues sets, and outdated the entries.
	changed, outdated controllers.Inbox
}

// New returns a Controller.
func New(options Options) *Controller {
	return &Controller{Options: options, ledger: newLedger(), board: newBoard()}
}

// Add runs the Controller under the manager, with at most concurrency sets at a time.
func (c *Controller) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	sources := []source.Source{
		source.Kind(informers, &v1alpha1.SidecarSet{}, controllers.Changes(c.setChanged)),
		source.Kind(informers, &appsv1.ControllerRevision{}, controllers.Changes(c.revisionChanged)),
		source.Kind(informers, &corev1.Pod{}, controllers.Changes(c.podChanged)),
		c.Pause.Source(c.enqueueAll),
		reconciler.GrantSource(informers, c.Sets),
		reconciler.GuardSource(informers, c.Budgets, c.guardsChanged),
		c.changed.Source(),
	}
	for _, informers := range c.Maps {
		sources = append(sources, source.Kind(informers, &corev1.ConfigMap{}, controllers.Changes(c.mapChanged)))
	}
	if err := controllers.Add(mgr, "sidecarset", reconciler.SubjectSet, c, concurrency, sources...); err != nil {
		return err
	}
	return controllers.Add(mgr, "sidecarsetentries", "entries", newWriter(c), 1,
		source.Kind(informers, &admissionregistrationv1.MutatingWebhookConfiguration{}, controllers.Changes(c.configurationChanged)),
		c.outdated.Source())
}

// Reconcile accepts the generation of a set, updates its pods, and writes its status.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set, ok := stored[*v1alpha1.SidecarSet](c.Sets, request.Name)
	if !ok || set.DeletionTimestamp != nil {
		c.states.sets.Forget(request.Name)
		return reconcile.Result{}, nil
	}
	if isolated, result, err := reconciler.Isolated(ctx, c.Client, c.Recorder, c.Now(), Kind(), set); isolated {
		return result, err
	}
	status := c.states.withAcceptance(set).Status.DeepCopy()
	wait, err := c.accept(ctx, set, status)
	if err != nil {
		return reconcile.Result{}, err
	}
	c.describe(set, status)
	again, err := c.update(ctx, set, status)
	if err != nil {
		return reconcile.Result{}, err
	}
	again = earliest.Wait(min(again, planning.LongestWait), wait)
	if c.Pause.Active() {
		own := status
		status = set.Status.DeepCopy()
		status.InForce, status.Conditions = own.InForce, own.Conditions
	}
	if postponed := c.postpone(set, status); postponed > 0 {
		again = earliest.Wait(again, postponed)
	} else if err := c.write(ctx, set, status); err != nil {
		return c.retried(again, err)
	}
	return c.retried(again, c.annotate(ctx, set, status.InForce))
}

// retried returns the result of a write. A conflict means that the cache was old.
func (c *Controller) retried(again time.Duration, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: retryDelay}, nil
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// enqueueAll enqueues all sets and the entries.
func (c *Controller) enqueueAll(q controllers.Queue) {
	c.outdated.Enqueue(types.NamespacedName{})
	for _, set := range reconciler.All[*v1alpha1.SidecarSet](c.Sets) {
		controllers.Enqueue(q, client.ObjectKeyFromObject(set))
	}
}

// setChanged enqueues what depends on a set.
func (c *Controller) setChanged(_ context.Context, q controllers.Queue, before, after *v1alpha1.SidecarSet, _ bool) {
	if after != nil && !entries.IsUnknown(after) {
		c.states.update(after, func(s *setState) { s.force = after.Status.InForce })
	}
	switch {
	case after == nil:
		c.released(before)
	case before == nil || !reconciler.SameSet(before, after):
		controllers.Enqueue(q, client.ObjectKeyFromObject(after))
		c.outdated.Enqueue(types.NamespacedName{})
	case !sameForce(before, after):
		c.released(after)
		// Pods whose events came before were compared with the old selection. OpenKruise may also have dropped the new one.
		c.states.update(after, func(s *setState) { s.uninjected = -1 })
		controllers.Enqueue(q, client.ObjectKeyFromObject(after))
	case entries.IsUnknown(before) && !entries.IsUnknown(after):
		// It is decided that nothing is accepted. An entry that was kept until then is not needed.
		c.outdated.Enqueue(types.NamespacedName{})
	}
}

// released enqueues the sets that are not accepted: they may have been in conflict with what changed.
func (c *Controller) released(changed *v1alpha1.SidecarSet) {
	c.outdated.Enqueue(types.NamespacedName{})
	for _, set := range reconciler.All[*v1alpha1.SidecarSet](c.Sets) {
		if set.UID != changed.UID && !isAccepted(set) {
			c.changed.Enqueue(client.ObjectKeyFromObject(set))
		}
	}
}

// revisionChanged enqueues the set of a revision that is gone, or new: a user may have copied one that the set names.
func (c *Controller) revisionChanged(_ context.Context, q controllers.Queue, before, after *appsv1.ControllerRevision, initial bool) {
	changed := cmp.Or(after, before)
	if initial || before != nil && after != nil || changed.Namespace != c.Namespace {
		return
	}
	if key, found := owner.Controller(changed, Kind()); found {
		controllers.Enqueue(q, types.NamespacedName{Name: key.Name})
	}
}

// mapChanged enqueues what depends on a ConfigMap.
func (c *Controller) mapChanged(_ context.Context, q controllers.Queue, before, after *corev1.ConfigMap, initial bool) {
	changed := after
	if changed == nil {
		changed = before
	}
	if changed.Name != ConfigurationName {
		c.outdated.Enqueue(types.NamespacedName{})
		return
	}
	if initial {
		return
	}
	for _, set := range reconciler.All[*v1alpha1.SidecarSet](c.Sets) {
		if len(set.Spec.PatchPodMetadata) > 0 {
			controllers.Enqueue(q, client.ObjectKeyFromObject(set))
		}
	}
}

// configurationChanged makes the entries as they should be.
func (c *Controller) configurationChanged(_ context.Context, q controllers.Queue, _, _ *admissionregistrationv1.MutatingWebhookConfiguration, _ bool) {
	controllers.Enqueue(q, types.NamespacedName{})
}

// stored returns an object of the informer.
func stored[T any](store reconciler.Store, key string) (T, bool) {
	found, _, _ := store.GetIndexer().GetByKey(key)
	object, ok := found.(T)
	return object, ok
}

// configMap returns a ConfigMap of the own namespace, empty if it does not exist.
func (c *Controller) configMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	err := c.Maps[name].Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, found)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get configmap %s: %w", name, err)
	}
	return found, nil
}

// write writes the status if it differs.
func (c *Controller) write(ctx context.Context, set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus) error {
	if equality.Semantic.DeepEqual(&set.Status, status) {
		return nil
	}
	written := set.DeepCopy()
	written.Status = *status
	c.states.update(set, func(s *setState) { s.reported = c.Now() })
	if changed, err := reconciler.WriteStatus(ctx, c.Client, c.Metrics, Kind().Kind, set, written, client.MergeFromWithOptimisticLock{}); !changed {
		return err
	}
	if status.InForce != nil && written.Status.InForce == nil {
		return errors.New("the API server drops status.inForce of SidecarSets: install the CRD of Seamark in place of that of OpenKruise")
	}
	return nil
}
