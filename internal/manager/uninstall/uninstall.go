// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uninstall removes what Seamark has written to a cluster: the marks of all pods, the
// finalizers of all markers, all NodePodProbes, ProbePlans and ProbeReports, and the RoleBindings
// that the managers have created. The markers are kept, and so are CloneSets, StatefulSets, other
// sets and their pods. Before the work, the managers and seamark-workloads are scaled to zero, and
// the managers' lease is free: no manager writes, and no workload is scaled or updated based on
// marks that are being removed. A run that failed can be repeated.
//
// Required permissions, in addition to those of a manager:
//
//	deployments/scale    patch, for both Deployments
//	leases               delete, for the Leases with the same names
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
)

const (
	// concurrency is the number of concurrent writes.
	concurrency = 16
	// sweeps is the maximum number of times that all reports are deleted: agents may still write
	// some while they stop their probes.
	sweeps = 3
)

// Options are the dependencies of an uninstall. All are required.
type Options struct {
	// Config connects to the API server. Its rate limits are ignored.
	Config *rest.Config
	// Namespace of the managers' Deployment and Lease.
	Namespace string
	// Name of the managers' Deployment and Lease.
	Name string
	// Workloads is the name of the Deployment and Lease of seamark-workloads.
	Workloads string
	// Out receives a line for each completed step.
	Out io.Writer
}

type uninstaller struct {
	Options
	kubernetes kubernetes.Interface
	metadata   metadata.Interface
	pods       *apply.Pods
	markers    *apply.Markers
}

// Run uninstalls. If a step fails or the context ends, it returns an error and does not undo
// completed steps. Missing CRDs or a missing Deployment are not errors.
func Run(ctx context.Context, options Options) error {
	cfg := rest.CopyConfig(options.Config)
	cfg.QPS = -1
	clientset, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("create the client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("create the metadata client: %w", err)
	}
	u := &uninstaller{
		Options: options, kubernetes: clientset, metadata: metadataClient,
		pods: apply.NewPods(metadataClient), markers: apply.NewMarkers(nil, metadataClient),
	}
	workloads, err := u.stop(ctx, u.Workloads)
	if err != nil {
		return err
	}
	if _, err := u.stop(ctx, u.Name); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{u.awaitLease, u.revoke, u.clean, u.deleteLeases} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if workloads {
		u.say("Kept the CRDs of sets and jobs, these objects, and their pods: nothing replaces, scales or updates these pods anymore.")
	}
	return nil
}

// revoke removes the RoleBindings of seamark-workloads that the managers have created.
func (u *uninstaller) revoke(ctx context.Context) error {
	removed, err := grants.Remove(ctx, u.Config)
	if err == nil && removed > 0 {
		u.say("Deleted %s of seamark-workloads.", text.Count(int64(removed), "RoleBinding"))
	}
	return err
}

// clean removes everything, marks first, then plans, then reports, which agents no longer write
// without a plan. An interrupted run can leave plans, whose probes continue, but no finalizer
// that nothing would remove.
func (u *uninstaller) clean(ctx context.Context) error {
	pods, _, err := u.each(ctx, corev1.SchemeGroupVersion.WithResource("pods"), u.unmark)
	if err != nil {
		return err
	}
	u.say("Removed the marks of %s.", text.Count(pods, "pod"))
	released, markers, err := u.each(ctx, v1alpha1.GroupVersion().WithResource("podprobemarkers"), u.release)
	if err != nil {
		return err
	}
	u.say("Removed the finalizer of %s.", text.Count(released, "marker"))
	plans, _, err := u.each(ctx, v1alpha1.GroupVersion().WithResource("nodepodprobes"), remove)
	if err != nil {
		return err
	}
	u.say("Deleted %s.", text.Count(plans, "NodePodProbe"))
	slices, _, err := u.each(ctx, seamarkv1alpha1.GroupVersion().WithResource("probeplans"), remove)
	if err != nil {
		return err
	}
	u.say("Deleted %s.", text.Count(slices, "ProbePlan"))
	var reports int64
	for range sweeps {
		deleted, _, err := u.each(ctx, seamarkv1alpha1.GroupVersion().WithResource("probereports"), remove)
		if err != nil {
			return err
		}
		if deleted == 0 {
			break
		}
		reports += deleted
	}
	u.say("Deleted %s.", text.Count(reports, "ProbeReport"))
	u.say("Kept the CRDs podprobemarkers.apps.kruise.io, nodepodprobes.apps.kruise.io, probeplans.seamark.dev and probereports.seamark.dev, and %s.",
		text.Count(markers, "PodProbeMarker"))
	return nil
}

// change changes one object of a resource and reports whether there was something to change.
type change func(context.Context, metadata.ResourceInterface, *metav1.PartialObjectMetadata) (bool, error)

// each changes all objects of a resource, concurrently, and returns the number of those that it
// changed, and of all. A resource that is not served has no objects. Objects that no longer exist
// are skipped.
func (u *uninstaller) each(ctx context.Context, resource schema.GroupVersionResource, do change) (changed, total int64, err error) {
	var done atomic.Int64
	all := u.metadata.Resource(resource)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return all.List(ctx, options)
	})
	err = pages.EachListItem(groupCtx, metav1.ListOptions{}, func(object runtime.Object) error {
		item := object.(*metav1.PartialObjectMetadata)
		total++
		group.Go(func() error {
			changed, err := do(groupCtx, u.metadata.Resource(resource).Namespace(item.Namespace), item)
			switch {
			case apierrors.IsNotFound(err), errors.Is(err, apply.ErrGone):
				return nil
			case err != nil:
				return fmt.Errorf("clean %s %s: %w", resource.Resource, client.ObjectKeyFromObject(item), err)
			case changed:
				done.Add(1)
			}
			return nil
		})
		return nil
	})
	// A failed change ends the context of the list.
	if failed := group.Wait(); failed != nil {
		return 0, 0, failed
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, 0, fmt.Errorf("list %s: %w", resource.Resource, err)
	}
	return done.Load(), total, nil
}

// unmark removes the marks of a pod, even of a terminated one, its annotations for the provider of a
// virtual node, and the label by which the manager has released it from guards. It retries on
// concurrent writes.
func (u *uninstaller) unmark(ctx context.Context, pods metadata.ResourceInterface, object *metav1.PartialObjectMetadata) (bool, error) {
	pod := &corev1.Pod{ObjectMeta: object.ObjectMeta}
	marked, annotated := mark.Entry(pod.ManagedFields) != nil, serverless.AnnotationsOf(pod) != (serverless.Annotations{})
	released := pod.Labels[v1alpha1.GuardExemptKey] == v1alpha1.GuardExemptMaxDuration
	err := retry.OnError(retry.DefaultBackoff, isOutdated, func() error { return u.removeShared(ctx, pod) })
	if err == nil && annotated {
		_, err = u.pods.Handover(ctx, pod, serverless.Annotations{})
	}
	if err == nil && marked {
		_, err = u.pods.Marks(ctx, pod, mark.Marks{})
	}
	if err == nil && released {
		err = retry.OnError(retry.DefaultBackoff, isOutdated, func() error { return u.guardAgain(ctx, pods, pod) })
	}
	return marked || annotated || released, err
}

// guardAgain removes the label that the manager sets at the maximum duration of a guard, and not that of somebody else.
func (u *uninstaller) guardAgain(ctx context.Context, pods metadata.ResourceInterface, pod *corev1.Pod) error {
	live, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil || live.UID != pod.UID || live.Labels[v1alpha1.GuardExemptKey] != v1alpha1.GuardExemptMaxDuration {
		return err
	}
	_, err = u.pods.GuardExempt(ctx, &corev1.Pod{ObjectMeta: live.ObjectMeta}, false)
	return err
}

// removeShared removes the marks that other managers own too. It must run before the empty
// apply, which would keep them and remove the record that Seamark owned them.
func (u *uninstaller) removeShared(ctx context.Context, pod *corev1.Pod) error {
	if len(mark.Shared(pod.ManagedFields)) == 0 {
		return nil
	}
	// The conditions are in the pod's status, which metadata does not include.
	live, err := u.kubernetes.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get pod: %w", err)
	}
	owned, err := mark.Owned(live)
	if err != nil {
		return err
	}
	keys := mark.Leftover(live, nil, mark.PodReport{}, owned, mark.Marks{})
	if len(keys) == 0 {
		return nil
	}
	_, err = u.pods.Remove(ctx, live, keys)
	return err
}

func isOutdated(err error) bool { return errors.Is(err, apply.ErrOutdated) }

// release removes the finalizer of a marker and retries on concurrent writes.
func (u *uninstaller) release(ctx context.Context, markers metadata.ResourceInterface, marker *metav1.PartialObjectMetadata) (bool, error) {
	if !controllerutil.ContainsFinalizer(marker, v1alpha1.PodProbeMarkerFinalizer) {
		return false, nil
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := markers.Get(ctx, marker.Name, metav1.GetOptions{})
		if err != nil || !controllerutil.RemoveFinalizer(live, v1alpha1.PodProbeMarkerFinalizer) {
			return err
		}
		_, err = u.markers.Finalizers(ctx, &v1alpha1.PodProbeMarker{ObjectMeta: live.ObjectMeta}, live.Finalizers)
		return err
	})
	return true, err
}

// remove deletes an object that is not being deleted.
func remove(ctx context.Context, objects metadata.ResourceInterface, object *metav1.PartialObjectMetadata) (bool, error) {
	if object.DeletionTimestamp != nil {
		return false, nil
	}
	return true, objects.Delete(ctx, object.Name, metav1.DeleteOptions{})
}

func (u *uninstaller) say(format string, args ...any) {
	fmt.Fprintf(u.Out, format+"\n", args...)
}
