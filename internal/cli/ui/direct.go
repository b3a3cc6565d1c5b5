// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/cluster/eventlog"
	"github.com/seamark-dev/seamark/internal/cli/ui/clustersource"
	"github.com/seamark-dev/seamark/internal/cli/ui/objects"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	viewgather "github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/decoding"
	"github.com/seamark-dev/seamark/internal/program/permission"
	webui "github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// direct is a webui.Source that reads the cluster with the permissions of the user
// who runs the command.
type direct struct {
	connection cluster.Connection
	now        func() time.Time
	user       string
	// full is whether the user may read nodes, plans and reports.
	full atomic.Bool
}

// newDirect finds out what the user may read. It returns a hint for the user, which is empty if
// everything can be read. It returns an error with the code exit.Access if pods and markers of the
// namespace cannot be read.
func newDirect(ctx context.Context, connection cluster.Connection, now func() time.Time) (d *direct, hint string, err error) {
	d = &direct{connection: connection, now: now}
	required, err := cluster.Try(ctx, connection.Client, connection.Namespace, permission.Required()...)
	if err != nil {
		return nil, "", err
	}
	if err := required.Require(permission.Required()...); err != nil {
		return nil, "", err
	}
	optional, err := cluster.Try(ctx, connection.Client, "", permission.States()...)
	if err != nil {
		return nil, "", err
	}
	d.full.Store(len(optional.Missing) == 0)
	review := &authenticationv1.SelfSubjectReview{}
	// API servers before Kubernetes 1.28 do not answer, and the page shows no name.
	if connection.Client.Create(ctx, review) == nil {
		d.user = review.Status.UserInfo.Username
	}
	return d, optional.Hint(), nil
}

// access returns what the user may read, as the API server last said.
func (d *direct) access() webui.Access {
	return webui.Access{User: d.user, Full: d.full.Load(), Problems: func(ctx context.Context) ([]model.ObjectProblem, error) {
		return objects.Problems(ctx, d.connection.Client)
	}}
}

// Open starts to watch the namespace of the scope, with its own caches.
func (d *direct) Open(ctx context.Context, scope webui.Scope) (webui.Changes, error) {
	required, err := cluster.Try(ctx, d.connection.Client, scope.Namespace, permission.Required()...)
	if err != nil {
		return nil, err
	}
	if err := required.Require(permission.Required()...); err != nil {
		return nil, &webui.Refusal{Status: http.StatusForbidden, Message: err.Error()}
	}
	// It also ends when the API server refuses a watch.
	ctx, cancel := context.WithCancelCause(ctx)
	options := d.cacheOptions(scope)
	options.DefaultWatchErrorHandler = func(ctx context.Context, _ *toolscache.Reflector, err error) { d.failed(ctx, err, cancel) }
	caches, source, err := d.caches(ctx, options, scope.Namespace, scope.Full)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	var running sync.WaitGroup
	running.Go(func() {
		// It returns only when ctx ends.
		if err := caches.Start(ctx); err != nil {
			cancel(err)
		}
	})
	end := func() {
		cancel(nil)
		running.Wait()
	}
	changes, err := source.Open(ctx, scope)
	if err != nil {
		end()
		return nil, err
	}
	return func(yield func(webui.Change, error) bool) {
		defer end()
		changes(yield)
	}, nil
}

// Timeline reads one pod and its events.
func (d *direct) Timeline(ctx context.Context, query webui.TimelineQuery) (model.Timeline, error) {
	snapshot, err := cluster.Read(ctx, d.connection.Client, cluster.Query{Namespace: query.Pod.Namespace, Names: []string{query.Pod.Name}})
	if err != nil {
		return model.Timeline{}, err
	}
	if err := snapshot.Require(permission.Required()...); err != nil {
		return model.Timeline{}, &webui.Refusal{Status: http.StatusForbidden, Message: err.Error()}
	}
	snapshot.Now = d.now()
	return clustersource.Timeline(snapshot.Input, query, func() ([]corev1.Event, error) {
		events, err := eventlog.Events(ctx, d.connection.Client, query.Pod.Namespace, query.Pod.Name)
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("no permission to list events in namespace %s, so only the last change is known", query.Pod.Namespace)
		}
		return events, err
	})
}

// caches returns caches and the source that reads them.
func (d *direct) caches(ctx context.Context, options cache.Options, namespace string, full bool) (cache.Cache, *clustersource.Source, error) {
	server := decoding.Server{Config: d.connection.Config, Scheme: options.Scheme, Mapper: options.Mapper, Namespace: namespace}
	options.NewInformer = func(source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		// The cache reports an error itself.
		if custom, err := server.Source(object); err == nil && custom != nil {
			source = custom
		}
		return toolscache.NewSharedIndexInformer(source, object, resync, indexers)
	}
	caches, err := cache.New(d.connection.Config, options)
	if err != nil {
		return nil, nil, fmt.Errorf("create the caches: %w", err)
	}
	informers, err := clustersource.InformersOf(ctx, caches, full)
	if err != nil {
		return nil, nil, err
	}
	for _, slices := range []clustersource.Informer{informers.PlanSlices, informers.Reports} {
		if slices == nil {
			continue
		}
		if err := slices.AddIndexers(viewgather.SliceIndexers()); err != nil {
			return nil, nil, fmt.Errorf("index the caches: %w", err)
		}
	}
	source, err := clustersource.New(informers, cluster.ViewOptions(), d.now)
	return caches, source, err
}

// cacheOptions returns caches of only what the scope needs.
func (d *direct) cacheOptions(scope webui.Scope) cache.Options {
	c := d.connection.Client
	namespace := fields.Everything()
	if scope.Namespace != "" {
		namespace = fields.OneTermEqualSelector("metadata.namespace", scope.Namespace)
	}
	plans := podview.NewPlanTrimmer()
	return cache.Options{
		Scheme: c.Scheme(), Mapper: c.RESTMapper(),
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {
				Field:     fields.AndSelectors(namespace, viewgather.LivePods()),
				Transform: podview.Transform(podview.NewPodTrimmer(cluster.ViewOptions()).WithControllers().Trim),
			},
			&v1alpha1.PodProbeMarker{}:     {Field: namespace},
			viewgather.NewNode():           {Transform: podview.Transform(podview.TrimNode)},
			&v1alpha1.NodePodProbe{}:       {Transform: podview.Transform(plans.Trim)},
			&seamarkv1alpha1.ProbePlan{}:   {Transform: podview.Transform(plans.TrimSlice)},
			&seamarkv1alpha1.ProbeReport{}: {Transform: podview.Transform(podview.TrimReport)},
		},
	}
}

// failed ends a watch if the API server refuses it. Other errors are tried again.
func (d *direct) failed(ctx context.Context, err error, cancel context.CancelCauseFunc) {
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return
	}
	if optional, err := cluster.Try(ctx, d.connection.Client, "", permission.States()...); err == nil {
		d.full.Store(len(optional.Missing) == 0)
	}
	cancel(&webui.Refusal{Status: http.StatusForbidden, Message: err.Error()})
}
