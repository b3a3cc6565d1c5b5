// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uninstall takes off a cluster what Seamark has written: the marks of all pods,
// the finalizer of all markers, all NodePodProbes. The markers stay as their authors wrote
// them. It works alone: the managers are scaled to none and have ended, and their lease is
// held meanwhile. What is taken off already is passed over, so that a run that failed may
// be repeated.
//
// Its needs in the API, besides a manager's own:
//
//	deployments/scale    patch, of the managers' Deployment
//	leases               delete, of the managers' Lease
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
	"github.com/seamark-dev/seamark/internal/apply"
)

const (
	// concurrency is how many writes are under way at a time.
	concurrency = 16
	// page is how many objects one list request returns.
	page = 500
)

// Options are what an uninstall works with. All are required.
type Options struct {
	// Config reaches the API server. Its rate limits are lifted.
	Config *rest.Config
	// Namespace holds the managers' Deployment and their Lease.
	Namespace string
	// Name is the name of both.
	Name string
	// Identity names this run as the holder of the Lease.
	Identity string
	// Out takes a line for each step that is done.
	Out io.Writer
}

// Summary counts what was taken off.
type Summary struct {
	// Pods had marks or annotations of Seamark.
	Pods int
	// Finalizers is the number of markers that had Seamark's finalizer.
	Finalizers int
	// Markers is the number of all markers. They are kept.
	Markers int
	// Plans is the number of NodePodProbes.
	Plans int
}

type uninstaller struct {
	Options
	kubernetes kubernetes.Interface
	metadata   metadata.Interface
	pods       *apply.Pods
	markers    *apply.Markers
	client     client.Client
}

// Run uninstalls. It returns an error where a step fails or the context ends, with what is
// done by then left done; a cluster without Seamark's CRDs or Deployment is none.
func Run(ctx context.Context, options Options) (Summary, error) {
	u, err := connect(options)
	if err != nil {
		return Summary{}, err
	}
	if err := u.stopManagers(ctx); err != nil {
		return Summary{}, err
	}
	var summary Summary
	err = u.alone(ctx, func(ctx context.Context) error {
		summary, err = u.clean(ctx)
		return err
	})
	if err != nil {
		return summary, err
	}
	if err := u.deleteLease(ctx); err != nil {
		return summary, err
	}
	u.say("Kept: the CRDs podprobemarkers and nodepodprobes of apps.kruise.io, and %s.", count(summary.Markers, "PodProbeMarker"))
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
		return nil, fmt.Errorf("making the client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making the metadata client: %w", err)
	}
	markers, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making the client of markers: %w", err)
	}
	return &uninstaller{
		Options: options, kubernetes: clientset, metadata: metadataClient,
		pods: apply.NewPods(metadataClient), markers: apply.NewMarkers(markers), client: markers,
	}, nil
}

// clean takes everything off. Marks go first and plans last: a run that is cut off leaves
// plans whose probes go on, and no finalizer that nobody would remove.
func (u *uninstaller) clean(ctx context.Context) (Summary, error) {
	var summary Summary
	var err error
	if summary.Pods, err = u.unmark(ctx); err != nil {
		return summary, err
	}
	u.say("Took the marks off %s.", count(summary.Pods, "pod"))
	if summary.Markers, summary.Finalizers, err = u.release(ctx); err != nil {
		return summary, err
	}
	u.say("Took the finalizer off %s.", count(summary.Finalizers, "marker"))
	if summary.Plans, err = u.deletePlans(ctx); err != nil {
		return summary, err
	}
	u.say("Deleted %s.", count(summary.Plans, "NodePodProbe"))
	return summary, nil
}

// deletePlans deletes all NodePodProbes: a later installation must not mark pods by what
// was reported before it.
func (u *uninstaller) deletePlans(ctx context.Context) (int, error) {
	plans := u.metadata.Resource(v1alpha1.GroupVersion().WithResource("nodepodprobes"))
	return u.each(ctx, plans, func(ctx context.Context, plan *metav1.PartialObjectMetadata) (bool, error) {
		err := plans.Delete(ctx, plan.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(plan.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("deleting NodePodProbe %s: %w", plan.Name, err)
		}
		return true, nil
	})
}

// each calls do for every object of a resource, some at a time, and returns for how many
// of them it was true. A resource that isn't served has no objects.
func (u *uninstaller) each(ctx context.Context, lister metadata.ResourceInterface, do func(context.Context, *metav1.PartialObjectMetadata) (bool, error)) (int, error) {
	done := 0
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := lister.List(ctx, options)
		if apierrors.IsNotFound(err) {
			return done, nil
		}
		if err != nil {
			return done, fmt.Errorf("listing: %w", err)
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

// count says how many there are of what, in words.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// unserved tells whether the API server doesn't have the resource at all.
func unserved(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
