// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	viewgather "github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/states"
	"github.com/seamark-dev/seamark/internal/program/permission"
	webui "github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/clustersource"
	"github.com/seamark-dev/seamark/internal/web/eventlog"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// direct is a webui.Source and a webui.Guard that reads the cluster with the permissions of the user
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

// Admit admits every request: the API server decides what is read.
func (d *direct) Admit(*http.Request, string) (webui.Access, error) {
	return webui.Access{User: d.user, Full: d.full.Load()}, nil
}

// Recheck does what Admit does.
func (d *direct) Recheck(r *http.Request, namespace string) (webui.Access, error) {
	return d.Admit(r, namespace)
}

// Open starts to watch the namespace of the scope.
func (d *direct) Open(ctx context.Context, scope webui.Scope) (webui.View, error) {
	required, err := cluster.Try(ctx, d.connection.Client, scope.Namespace, permission.Required()...)
	if err != nil {
		return nil, err
	}
	if err := required.Require(permission.Required()...); err != nil {
		return nil, &webui.Refusal{Status: http.StatusForbidden, Message: err.Error()}
	}
	v := &watch{direct: d, stopped: make(chan struct{})}
	v.ctx, v.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := v.start(ctx, scope); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
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
	pods := model.PodsOf(snapshot.Pods, probestate.Of(snapshot.Input).Rows)
	if len(pods) == 0 {
		return model.Timeline{}, webui.NotFound(query.Pod)
	}
	query.Events = func(ctx context.Context, pod model.Key) ([]corev1.Event, error) {
		events, err := gather.Events(ctx, d.connection.Client, pod.Namespace, pod.Name)
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("no permission to list events in namespace %s, so only the last change is known", pod.Namespace)
		}
		return events, err
	}
	return clustersource.Timeline(ctx, &pods[0], query, d.now()), nil
}

// watch is a view of one scope with its own caches.
type watch struct {
	direct *direct
	webui.View
	source *clustersource.Source
	// ctx ends when the view is closed or the API server refuses a watch.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// stopped is closed when the caches have stopped, if they were started.
	started bool
	stopped chan struct{}
}

// start fills the caches.
func (v *watch) start(ctx context.Context, scope webui.Scope) error {
	caches, err := cache.New(v.direct.connection.Config, v.cacheOptions(scope))
	if err != nil {
		return fmt.Errorf("create the caches: %w", err)
	}
	informers, err := clustersource.InformersOf(ctx, caches, scope.Full)
	if err != nil {
		return err
	}
	if err := errors.Join(informers.Pods.AddIndexers(viewgather.PodIndexers()), addSliceIndex(informers)); err != nil {
		return fmt.Errorf("index the caches: %w", err)
	}
	if v.source, err = clustersource.New(informers, cluster.ViewOptions(), v.direct.now); err != nil {
		return err
	}
	v.started = true
	go func() {
		defer close(v.stopped)
		// It returns only when ctx ends.
		if err := caches.Start(v.ctx); err != nil {
			v.cancel(err)
		}
	}()
	opening, stop := v.join(ctx)
	defer stop()
	v.View, err = v.source.Open(opening, scope)
	return err
}

func addSliceIndex(informers clustersource.Informers) error {
	if informers.Reports == nil {
		return nil
	}
	return informers.Reports.AddIndexers(viewgather.SliceIndexers())
}

// cacheOptions returns caches of only what the scope needs.
func (v *watch) cacheOptions(scope webui.Scope) cache.Options {
	c := v.direct.connection.Client
	namespace := fields.Everything()
	if scope.Namespace != "" {
		namespace = fields.OneTermEqualSelector("metadata.namespace", scope.Namespace)
	}
	return cache.Options{
		Scheme: c.Scheme(), Mapper: c.RESTMapper(),
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler:     v.failed,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {
				Field:     fields.AndSelectors(namespace, viewgather.LivePods()),
				Transform: view.Transform(view.NewPodTrimmer(cluster.ViewOptions()).WithControllers().Trim),
			},
			&v1alpha1.PodProbeMarker{}:     {Field: namespace},
			viewgather.NewNode():           {Transform: view.Transform(view.TrimNode)},
			&v1alpha1.NodePodProbe{}:       {Transform: view.Transform(view.NewPlanTrimmer().Trim)},
			&seamarkv1alpha1.ProbeReport{}: {Transform: view.Transform(view.TrimReport)},
		},
	}
}

// failed ends the view if the API server refuses a list or a watch. Other errors are tried again.
func (v *watch) failed(ctx context.Context, _ *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return
	}
	if optional, err := cluster.Try(ctx, v.direct.connection.Client, "", permission.States()...); err == nil {
		v.direct.full.Store(len(optional.Missing) == 0)
	}
	v.cancel(&webui.Refusal{Status: http.StatusForbidden, Message: err.Error()})
}

// join returns a context that ends with ctx, or with the view.
func (v *watch) join(ctx context.Context) (context.Context, func()) {
	joined, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(v.ctx, func() { cancel(context.Cause(v.ctx)) })
	return joined, func() {
		stop()
		cancel(nil)
	}
}

// Next waits for a change.
func (v *watch) Next(ctx context.Context) (webui.Change, error) {
	joined, stop := v.join(ctx)
	defer stop()
	return v.View.Next(joined)
}

// Close stops the caches.
func (v *watch) Close() {
	if v.View != nil {
		v.View.Close()
	}
	v.cancel(nil)
	if v.started {
		<-v.stopped
	}
}
