// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/cluster/eventlog"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/explain"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/test"
	"github.com/seamark-dev/seamark/internal/cli/timeline"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/web/history"
)

// logLines and logBytes limit the logs that are shown.
const logLines, logBytes = 500, 1 << 20

// watch shows the table on the terminal.
func (o *Options) watch(ctx context.Context, connection cluster.Connection, w *live.Watch, notices live.Notices) error {
	if err := w.Snapshot().Require(permission.Required()...); err != nil {
		return err //nolint:wrapcheck // it says what is missing
	}
	events, err := eventlog.Events(ctx, connection.Client, connection.Namespace, "")
	if err := cluster.WarnOfEvents(o.ErrOut, err); err != nil {
		return err
	}
	sets, stop, err := o.followSets(ctx, connection, notices)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	defer stop()
	s := newScreen(ctx, o, w, history.ParseEvents(events), sets)
	s.notices = notices
	s.run = o.runCommand
	s.logs = func(ctx context.Context, row *probestatus.Row) string { return logsOf(ctx, connection.Config, row) }
	if err := s.Show(ctx, o.IOStreams, tea.WithInput(nil)); err != nil {
		return exit.Failure(err)
	}
	// The last table stays on the terminal.
	return exit.Failure(errors.Join(printGroups(o.Out, s.groups, s.more), printSets(o.Out, s.sets, s.moreSets)))
}

// runCommand runs a command that a key of the screen stands for in the namespace, with the flags that select the cluster
// and the user, and returns what it prints.
func (o *Options) runCommand(ctx context.Context, namespace string, args ...string) string {
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}
	streams.Out, streams.ErrOut = printing.Safe(streams.Out), printing.Safe(streams.ErrOut)
	root := &cobra.Command{
		Use: "seamark", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: o.Program}, SilenceUsage: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	for _, add := range []func(streams genericiooptions.IOStreams, program, version string) *cobra.Command{explain.New, timeline.New, test.New} {
		root.AddCommand(add(streams, o.Program, o.Version))
	}
	root.SetArgs(append(append(args, o.connectionFlags...), "--namespace="+namespace))
	// It is part of the output.
	_ = root.ExecuteContext(ctx)
	return out.String()
}

// connectionFlags returns the flags of the command that select the cluster and the user, as they were
// given. The namespace is not among them.
func connectionFlags(command *cobra.Command) []string {
	var args []string
	command.Flags().Visit(func(flag *pflag.Flag) {
		if !cluster.IsConnectionFlag(flag) || flag.Name == "namespace" {
			return
		}
		values := []string{flag.Value.String()}
		if list, isList := flag.Value.(pflag.SliceValue); isList {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, "--"+flag.Name+"="+value)
		}
	})
	return args
}

// logsOf returns the newest lines of the container's output, or why there are none.
func logsOf(ctx context.Context, config *rest.Config, row *probestatus.Row) string {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return "Error: " + err.Error()
	}
	content, err := c.Get().Namespace(row.Namespace).Resource("pods").Name(row.Pod).SubResource("log").
		Param("container", row.Container).Param("tailLines", strconv.Itoa(logLines)).Param("limitBytes", strconv.Itoa(logBytes)).Do(ctx).Raw()
	switch {
	case err != nil:
		return fmt.Sprintf("Error: get logs of container %s: %v", row.Container, err)
	case len(content) == 0:
		return fmt.Sprintf("Container %s has written nothing.", row.Container)
	}
	return string(content)
}

// eventsOf returns the changes of states among the changes of a watch.
func eventsOf(changes []live.Change) []history.Event {
	var events []history.Event
	for _, c := range changes {
		if c.Old == nil || c.New == nil || c.New.State == "" || c.New.State == c.Old.State {
			continue
		}
		at := c.New.LastTransitionTime.Time
		events = append(events, history.Event{
			Probe: history.ProbeOf(c.New), State: c.New.State, Message: c.New.Message, Count: 1, First: at, Last: at,
		})
	}
	return events
}
