// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
)

// settleTime is how long changes are collected before they are printed. A report and the marks that
// follow from it are one change for the user.
const settleTime = 200 * time.Millisecond

// watch lists the probes and then shows changes.
func (o *options) watch(ctx context.Context, connection cluster.Connection) error {
	return live.Session(ctx, connection, o.query(connection.Namespace), o.showWatch)
}

func (o *options) showWatch(ctx context.Context, connection cluster.Connection, w *live.Watch, notices live.Notices) error {
	snapshot := w.Snapshot()
	if err := o.checkWatched(ctx, snapshot, connection); err != nil {
		return err
	}
	if hint := snapshot.Hint(); hint != "" {
		fmt.Fprintln(o.ErrOut, "Hint: "+hint)
	}
	if o.inPlace() {
		return o.show(ctx, w, notices)
	}
	nothing := func(current probestatus.States) string { return o.nothing(snapshot, current, connection.Namespace) }
	return exit.Failure(o.follow(ctx, w, notices, nothing))
}

// checkWatched returns an error if there is nothing to watch.
func (o *options) checkWatched(ctx context.Context, snapshot *cluster.Snapshot, connection cluster.Connection) error {
	if err := o.check(snapshot, connection.Namespace); err != nil {
		return err
	}
	if o.selector != nil || o.Node != "" {
		// A pod that is not selected now may be selected later.
		return nil
	}
	for _, name := range o.Pods {
		if !slices.ContainsFunc(snapshot.Pods, func(pod *corev1.Pod) bool { return pod.Name == name }) {
			snapshot.Absent = append(snapshot.Absent, name)
		}
	}
	return snapshot.AbsentError(ctx, connection.Client, connection.Namespace)
}

// inPlace reports whether the table is updated in place.
func (o *options) inPlace() bool {
	return !o.WatchOnly && o.Output.IsTable() && printing.HasScreen(o.Out)
}

// follow prints all rows, unless WatchOnly is set, and then appends changes. The function returns
// why there are no rows.
func (o *options) follow(ctx context.Context, w live.Source, notices live.Notices, nothing func(probestatus.States) string) error {
	stream, err := o.Output.Stream(o.Out)
	if err != nil {
		return err //nolint:wrapcheck // it names the flag
	}
	var warned warner
	all, current := w.Update()
	warned.warn(o, current)
	first := o.changes(all)
	if len(first) == 0 && o.Output.IsTable() {
		fmt.Fprintln(o.ErrOut, nothing(current))
	}
	if !o.WatchOnly {
		if err := o.print(stream, first); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case line := <-notices:
			fmt.Fprintln(o.ErrOut, line)
		case <-w.Changed():
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(settleTime):
			}
			found, current := w.Update()
			warned.warn(o, current)
			if err := o.print(stream, o.changes(found)); err != nil {
				return err
			}
		}
	}
}

// print prints changes: a table in one piece, so that its columns are aligned, and other formats one
// object at a time.
func (o *options) print(stream *printing.Stream, changes []change) error {
	if len(changes) == 0 {
		return nil
	}
	size := 1
	if o.Output.IsTable() {
		size = len(changes)
	}
	for some := range slices.Chunk(changes, size) {
		if err := stream.Print(changeResult(some, o.Cluster.AllNamespaces, o.now())); err != nil {
			return err //nolint:wrapcheck // it says what failed
		}
	}
	return nil
}

// warner prints each warning once, until it no longer applies.
type warner struct{ printed []string }

func (w *warner) warn(o *options, current probestatus.States) {
	found := warnings(current)
	for _, warning := range found {
		if !slices.Contains(w.printed, warning) {
			fmt.Fprintln(o.ErrOut, warning)
		}
	}
	w.printed = found
}
