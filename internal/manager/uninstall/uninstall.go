// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uninstall removes what Seamark has written to a cluster: the marks of all pods, the
// finalizers of all markers, all NodePodProbes and all ProbeReports. The markers are kept.
// CloneSets, StatefulSets and their pods are kept. During the work the managers and
// seamark-workloads are scaled to zero and the managers' lease is held: no manager writes, and no
// workload is scaled or updated based on marks that are being removed. A run that failed can be
// repeated.
//
// Required permissions, in addition to those of a manager:
//
//	deployments/scale    patch, for both Deployments
//	leases               delete, for the Leases with the same names
package uninstall

import (
	"context"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
)

const (
	// concurrency is the number of concurrent writes.
	concurrency = 16
	// page is the number of objects that one list request returns.
	page = 500
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
	// Identity of this run as the holder of the Lease.
	Identity string
	// Out receives a line for each completed step.
	Out io.Writer
}

// Summary counts what was removed.
type Summary struct {
	// Pods is the number of pods that had marks or annotations of Seamark.
	Pods int
	// Finalizers is the number of markers that had Seamark's finalizer.
	Finalizers int
	// Markers is the number of all markers. They are kept.
	Markers int
	// Plans is the number of NodePodProbes.
	Plans int
	// Reports is the number of ProbeReports.
	Reports int
}

type uninstaller struct {
	Options
	kubernetes kubernetes.Interface
	metadata   metadata.Interface
	pods       *apply.Pods
	markers    *apply.Markers
	client     client.Client
}

// Run uninstalls. If a step fails or the context ends, it returns an error and does not undo
// completed steps. Missing CRDs or a missing Deployment are not errors.
func Run(ctx context.Context, options Options) (Summary, error) {
	u, err := connect(options)
	if err != nil {
		return Summary{}, err
	}
	workloads, err := u.stop(ctx, u.Workloads)
	if err != nil {
		return Summary{}, err
	}
	if _, err := u.stop(ctx, u.Name); err != nil {
		return Summary{}, err
	}
	var summary Summary
	err = u.withLease(ctx, func(ctx context.Context) error {
		summary, err = u.clean(ctx)
		return err
	})
	if err != nil {
		return summary, err
	}
	for _, name := range []string{u.Workloads, u.Name} {
		if err := u.deleteLease(ctx, name); err != nil {
			return summary, err
		}
	}
	u.say("Kept the CRDs podprobemarkers.apps.kruise.io, nodepodprobes.apps.kruise.io and probereports.seamark.dev, and %s.",
		count(summary.Markers, "PodProbeMarker"))
	if workloads {
		u.say("Kept the CRDs of CloneSets and StatefulSets, these objects, and their pods: nothing replaces, scales or updates these pods anymore.")
	}
	return summary, nil
}

func connect(options Options) (*uninstaller, error) {
	cfg := rest.CopyConfig(options.Config)
	cfg.QPS = -1
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create the client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create the metadata client: %w", err)
	}
	markers, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create the client for markers: %w", err)
	}
	return &uninstaller{
		Options: options, kubernetes: clientset, metadata: metadataClient,
		pods: apply.NewPods(metadataClient), markers: apply.NewMarkers(markers), client: markers,
	}, nil
}

// clean removes everything, marks first, then plans, then reports, which agents no longer write
// without a plan. An interrupted run can leave plans, whose probes continue, but no finalizer
// that nothing would remove.
func (u *uninstaller) clean(ctx context.Context) (Summary, error) {
	var summary Summary
	var err error
	if summary.Pods, err = u.unmark(ctx); err != nil {
		return summary, err
	}
	u.say("Removed the marks of %s.", count(summary.Pods, "pod"))
	if summary.Markers, summary.Finalizers, err = u.release(ctx); err != nil {
		return summary, err
	}
	u.say("Removed the finalizer of %s.", count(summary.Finalizers, "marker"))
	if summary.Plans, err = u.deletePlans(ctx); err != nil {
		return summary, err
	}
	u.say("Deleted %s.", count(summary.Plans, "NodePodProbe"))
	if summary.Reports, err = u.deleteReports(ctx); err != nil {
		return summary, err
	}
	u.say("Deleted %s.", count(summary.Reports, "ProbeReport"))
	return summary, nil
}

// deletePlans deletes all NodePodProbes, so that a later installation does not mark pods
// based on old reports.
func (u *uninstaller) deletePlans(ctx context.Context) (int, error) {
	plans := u.metadata.Resource(v1alpha1.GroupVersion().WithResource("nodepodprobes"))
	return u.each(ctx, plans, func(ctx context.Context, plan *metav1.PartialObjectMetadata) (bool, error) {
		err := plans.Delete(ctx, plan.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(plan.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("delete NodePodProbe %s: %w", plan.Name, err)
		}
		return true, nil
	})
}

// each calls do for every object of a resource, concurrently, and returns the number of
// objects for which it returned true. A resource that is not served has no objects.
func (u *uninstaller) each(ctx context.Context, lister metadata.ResourceInterface, do func(context.Context, *metav1.PartialObjectMetadata) (bool, error)) (int, error) {
	done := 0
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := lister.List(ctx, options)
		if apierrors.IsNotFound(err) {
			return done, nil
		}
		if err != nil {
			return done, fmt.Errorf("list objects: %w", err)
		}
		counted := make([]bool, len(list.Items))
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(concurrency)
		for i := range list.Items {
			group.Go(func() (err error) {
				counted[i], err = do(groupCtx, &list.Items[i])
				return err
			})
		}
		err = group.Wait()
		for _, one := range counted {
			if one {
				done++
			}
		}
		if err != nil || list.Continue == "" {
			return done, err
		}
		options.Continue = list.Continue
	}
}

func (u *uninstaller) say(format string, args ...any) {
	fmt.Fprintf(u.Out, format+"\n", args...)
}

// count returns the number with its noun.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// unserved reports whether the API server does not serve the resource.
func unserved(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
