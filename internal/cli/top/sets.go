// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// showsSets reports whether the command shows sets: --node and --selector select pods.
func (o *Options) showsSets() bool { return o.Node == "" && o.Selector.Text == "" }

// firstSets returns the sets that there are rows for, and the number of the others. Those with problems come first, as on the page.
func (o *Options) firstSets(all []model.Set) (sets []model.Set, more int) {
	sorted := model.SetsOf(all, "")
	sets = sorted.Sets[:min(len(sorted.Sets), o.Rows)]
	return sets, sorted.Total - len(sets)
}

// readSets lists the sets of the namespace, or of all namespaces if it is empty. It warns of kinds that may not be listed.
func (o *Options) readSets(ctx context.Context, reader client.Reader, namespace string) (all []model.Set, err error) {
	if !o.showsSets() {
		return nil, nil
	}
	var unread []permission.Missing
	for _, kind := range live.SetKinds() {
		err := cluster.Each(ctx, reader, kind.NewList(), func(object client.Object) {
			all = append(all, live.SetOf(kind.Kind, object))
		}, client.InNamespace(namespace))
		missing, failure := cluster.MissingOf(err, "list", permission.Resource(kind.Definition()), namespace)
		if failure != nil {
			return nil, failure
		}
		if missing != nil {
			unread = append(unread, *missing)
		}
	}
	o.warnOfSets(unread)
	return all, nil
}

// warnOfSets prints a warning that kinds of sets are not shown, without those that are not installed.
func (o *Options) warnOfSets(unread []permission.Missing) {
	resources := map[string][]string{}
	namespace, which := "", "some sets"
	for _, missing := range unread {
		if missing.Verb != "" {
			resources[missing.Verb], namespace = append(resources[missing.Verb], string(missing.Resource)), missing.Namespace
		}
	}
	if len(unread) == len(live.SetKinds()) {
		which = "sets"
	}
	var reasons []string
	for _, verb := range slices.Sorted(maps.Keys(resources)) {
		slices.Sort(resources[verb])
		all := permission.Resource(strings.Join(resources[verb], ", "))
		reasons = append(reasons, permission.Missing{Resource: all, Verb: verb, Namespace: namespace}.String())
	}
	if len(reasons) > 0 {
		fmt.Fprintf(o.ErrOut, "Warning: %s are not shown: %s\n", which, strings.Join(reasons, "; "))
	}
}

// followSets watches the sets of the namespace, or of all namespaces if it is empty, until stop is called. It warns of kinds that may
// not be watched.
func (o *Options) followSets(ctx context.Context, connection cluster.Connection, notices live.Notices) (sets func() []model.Set, stop func(), err error) {
	if !o.showsSets() {
		return func() []model.Set { return nil }, func() {}, nil
	}
	found := live.NewSets(live.NewSignal())
	stop, err = live.Follow(ctx, connection.Client, found.Resources(connection.Namespace), found.Lacks, notices.Add)
	o.warnOfSets(found.Unread)
	return found.List, stop, err
}

// maxSetMessage is the maximum length of the message of a set in its row, in bytes.
const maxSetMessage = 200

// printSets prints the sets below the probes. It prints nothing if there are none.
func printSets(out io.Writer, sets []model.Set, more int) error {
	for _, line := range setLines(sets, more, printing.HasColors(out, os.Getenv)) {
		if _, err := fmt.Fprintln(printing.Raw(out), line); err != nil {
			return fmt.Errorf("print the table: %w", err)
		}
	}
	return nil
}

// setLines returns an empty line and the lines of the table of sets, safe for a terminal. There is none without sets.
func setLines(sets []model.Set, more int, colors bool) []string {
	if len(sets) == 0 {
		return nil
	}
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tSET\tUPDATED\tAVAILABLE\tPHASE\tMESSAGE")
	for i := range sets {
		s := &sets[i]
		fmt.Fprintf(table, "%s\t%s\t%d/%d\t%d/%d\t%s\t%s\n", s.Namespace, nameOf(s), s.Updated, s.Desired, s.Available, s.Desired,
			s.Phase, text.Truncate(strings.Join(strings.Fields(s.Message), " "), maxSetMessage))
	}
	switch {
	case more > 0 && len(sets) == model.MaxSets:
		fmt.Fprintf(table, "%d more: at most %d sets are shown\n", more, model.MaxSets)
	case more > 0:
		fmt.Fprintf(table, "%d more: use --rows\n", more)
	}
	// A buffer accepts everything.
	_ = table.Flush()
	lines := linesOf(out.String())
	start := strings.Index(lines[0], "PHASE")
	for i := range sets {
		if line, phase := lines[i+1], sets[i].Phase; colors {
			lines[i+1] = line[:start] + printing.Style(severity(&sets[i])).Render(phase) + line[start+len(phase):]
		}
	}
	return append([]string{""}, lines...)
}

// nameOf returns a set as the commands accept it.
func nameOf(s *model.Set) string { return strings.ToLower(s.Kind) + "/" + s.Name }

// severity returns the word whose color a rollout has.
func severity(s *model.Set) string {
	switch {
	case s.Problem:
		return "problem"
	case s.Complete:
		return "ok"
	}
	return "waiting"
}
