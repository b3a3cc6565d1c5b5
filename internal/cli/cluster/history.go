// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster/eventlog"
	"github.com/seamark-dev/seamark/internal/program/apierror"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/web/history"
)

// ReadHistory reads the pods of the query with their states, and the events of their probes. If
// the user may not list events, it prints a warning, and there are none.
func ReadHistory(ctx context.Context, reader client.Client, query Query, warnings io.Writer) (*Snapshot, []history.Event, error) {
	pod := ""
	if len(query.Names) == 1 {
		pod = query.Names[0]
	}
	var snapshot *Snapshot
	var events []corev1.Event
	var unread error
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		snapshot, err = Read(ctx, reader, query)
		return err
	})
	group.Go(func() error {
		events, unread = eventlog.Events(ctx, reader, query.Namespace, pod)
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	if err := snapshot.Require(permission.Required()...); err != nil {
		return nil, nil, err
	}
	if hint := snapshot.Hint(); hint != "" {
		fmt.Fprintf(warnings, "Warning: %s\n", hint)
	}
	return snapshot, history.ParseEvents(events), WarnOfEvents(warnings, unread)
}

// WarnOfEvents prints a warning if the events could not be listed because of a missing permission, or are too
// many. It returns all other errors.
func WarnOfEvents(warnings io.Writer, err error) error {
	var truncated *eventlog.TruncatedError
	if errors.As(err, &truncated) {
		fmt.Fprintf(warnings, "Warning: %v\n", err)
		return nil
	}
	if err != nil && !apierror.IsDenied(err) {
		return Unreachable(err)
	}
	if err != nil {
		fmt.Fprintf(warnings, "Warning: changes of states are not known: %v\n", err)
	}
	return nil
}
