// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/cluster/eventlog"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/ui/clustersource"
	"github.com/seamark-dev/seamark/internal/cli/ui/objects"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	viewgather "github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/kinds"
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
	// visible are the namespaces that the user may see.
	visible *visible
	// full is whether the user may read nodes, plans and reports.
	full atomic.Bool
}

// newDirect finds out what the user may read. It returns a hint for the user, which is empty if
// everything can be read. It returns an error with the code exit.Access if pods and markers of the
// namespace, or of each of the chosen ones, cannot be read.
func newDirect(ctx context.Context, connection cluster.Connection, namespaces *visible) (d *direct, hint string, err error) {
	d = &direct{connection: connection, now: namespaces.now, visible: namespaces}
	for _, namespace := range namespaces.chosen {
		if err := namespaces.require(ctx, namespace); err != nil {
			return nil, "", err
		}
	}
	if _, err := namespaces.scopes(ctx, connection.Namespace); err != nil {
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
	return webui.Access{
		User: d.user, Full: d.full.Load(), Namespaces: d.visible.get,
		Problems: func(ctx context.Context) ([]model.ObjectProblem, error) {
			return objects.Problems(ctx, d.connection.Client)
		},
		Set: func(ctx context.Context, set model.SetID) (model.SetDetails, error) {
			return objects.Set(ctx, d.connection.Client, set, d.now())
		},
	}
}

// Open starts to watch the namespaces of the scope, each with its own caches.
func (d *direct) Open(ctx context.Context, scope webui.Scope) (webui.Changes, error) {
	namespaces, err := d.visible.scopes(ctx, scope.Namespace)
	if exit.Code(err) == exit.Access {
		return nil, &webui.Refusal{Status: http.StatusForbidden, Message: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	w := &watching{direct: d, full: scope.Full}
	// It also ends when the API server refuses a watch.
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	scopes := make([]webui.Changes, 0, len(namespaces))
	for _, namespace := range namespaces {
		changes, err := w.open(namespace)
		if err != nil {
			w.end()
			return nil, err
		}
		scopes = append(scopes, changes)
	}
	if len(scopes) > 1 {
		return merge(scopes, w.end), nil
	}
	return func(yield func(webui.Change, error) bool) {
		defer w.end()
		scopes[0](yield)
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
		events, err := eventlog.OfObject(ctx, d.connection.Client, query.Pod.Namespace, "Pod", query.Pod.Name)
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("no permission to list events in namespace %s, so only the last change is known", query.Pod.Namespace)
		}
		return events, err
	})
}

// cacheOptions returns caches of only what the scope needs.
func (d *direct) cacheOptions(namespace string, sets []kinds.Kind) cache.Options {
	c := d.connection.Client
	inNamespace := fields.Everything()
	if namespace != "" {
		inNamespace = fields.OneTermEqualSelector("metadata.namespace", namespace)
	}
	plans := podview.NewPlanTrimmer()
	options := cache.Options{
		Scheme: c.Scheme(), Mapper: c.RESTMapper(),
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {
				Field:     fields.AndSelectors(inNamespace, viewgather.LivePods()),
				Transform: podview.Transform(podview.NewPodTrimmer(cluster.ViewOptions()).WithControllers().Trim),
			},
			&v1alpha1.PodProbeMarker{}: {Field: inNamespace},
			&policyv1.PodDisruptionBudget{}: {
				Field: inNamespace, Label: guard.Labels().AsSelector(), Transform: podview.Transform(guard.Trim),
			},
			viewgather.NewNode():           {Transform: podview.Transform(podview.TrimNode)},
			&v1alpha1.NodePodProbe{}:       {Transform: podview.Transform(plans.Trim)},
			&seamarkv1alpha1.ProbePlan{}:   {Transform: podview.Transform(plans.TrimSlice)},
			&seamarkv1alpha1.ProbeReport{}: {Transform: podview.Transform(podview.TrimReport)},
		},
	}
	for i := range sets {
		options.ByObject[sets[i].New()] = cache.ByObject{Field: inNamespace, Transform: podview.Transform(clustersource.TrimSet)}
	}
	return options
}
