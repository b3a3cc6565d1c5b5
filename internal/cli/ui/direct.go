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

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/cluster/eventlog"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/ui/objects"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/permission"
	webui "github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/history"
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

// Open starts to watch the namespaces of the scope.
func (d *direct) Open(ctx context.Context, scope webui.Scope) (webui.Changes, error) {
	namespaces, err := d.visible.scopes(ctx, scope.Namespace)
	if exit.Code(err) == exit.Access {
		return nil, &webui.Refusal{Status: http.StatusForbidden, Message: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	// It also ends when the API server refuses a watch.
	ctx, cancel := context.WithCancelCause(ctx)
	w := newWatching(namespaces, scope.Full)
	lacks := func(missing permission.Missing) error {
		switch {
		case !w.needs(missing):
			return errors.Join(w.sets.Lacks(missing), w.Lacks(missing))
		case missing.Verb == "":
			// The page tries again until it is installed.
			return errors.New(missing.String())
		}
		return d.refusal(ctx, missing.String())
	}
	stop, err := live.FollowAllowed(ctx, d.connection.Client, w.resources(), lacks, func(err error) { cancel(d.refusal(ctx, err.Error())) })
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return func(yield func(webui.Change, error) bool) {
		defer stop()
		defer cancel(nil)
		webui.Follow(ctx, w.Changed(), w.change)(yield)
	}, nil
}

// refusal returns the end of a scope that the user may not read any more, and finds out what the user may read now.
func (d *direct) refusal(ctx context.Context, message string) error {
	if optional, err := cluster.Try(ctx, d.connection.Client, "", permission.States()...); err == nil {
		d.full.Store(len(optional.Missing) == 0)
	}
	return &webui.Refusal{Status: http.StatusForbidden, Message: message}
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
	return timeline(snapshot.Input, query, func() ([]corev1.Event, error) {
		events, err := eventlog.OfObject(ctx, d.connection.Client, query.Pod.Namespace, "Pod", query.Pod.Name)
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("no permission to list events in namespace %s, so only the last change is known", query.Pod.Namespace)
		}
		return events, err
	})
}

// timeline returns the timeline of the only pod of the input. It lists the events of the pod if this has
// probes. If they cannot be listed, the error is the note of the timeline.
func timeline(in probestatus.Input, query webui.TimelineQuery, list func() ([]corev1.Event, error)) (model.Timeline, error) {
	rows := probestatus.List(in).Rows
	if len(rows) == 0 {
		return model.Timeline{}, webui.NotFound(query.Pod)
	}
	events, incomplete := list()
	timeline := model.TimelineOf(in.Pods[0], rows, history.ParseEvents(events), incomplete, query.Since, in.Now)
	timeline.Events = model.EventsOf(events, in.Pods[0].UID)
	return timeline, nil
}
