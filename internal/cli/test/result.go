// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/internal/cli/dryrun"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/remote"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// none is shown for a value that does not exist.
const none = "-"

// Item is the result of one probe in one pod, as JSON and YAML show it.
type Item struct {
	// Namespace, Pod and Node are where the probe ran.
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node,omitempty"`
	// Marker, Probe, Container and Handler are what ran. Probe is empty if the marker does not probe
	// the pod.
	Marker    string `json:"marker"`
	Probe     string `json:"probe,omitempty"`
	Container string `json:"container,omitempty"`
	Handler   string `json:"handler,omitempty"`
	// Result is Succeeded, Failed, Error or NotRun. After repeated runs, it is the state, or Undecided
	// if no result reached its threshold.
	Result string `json:"result"`
	// Message is the message of the probe, or why it has no result.
	Message string `json:"message,omitempty"`
	// Seconds is how long the probe took: the newest of repeated runs.
	Seconds float64 `json:"seconds,omitempty"`
	// TimedOut is whether it exceeded its timeout, in any run.
	TimedOut bool `json:"timedOut,omitempty"`
	// Threshold is the number of equal results in a row that lead to the state of the newest result.
	Threshold int `json:"threshold,omitempty"`
	// Effect is what the state would do.
	dryrun.Effect `json:",inline"`
	// Notes are what else to know about the result.
	Notes []string `json:"notes,omitempty"`
	// Series are the repeated runs, or nil.
	*dryrun.Series `json:",inline"`
}

// conclude prints the results, and returns an error unless all probes succeeded.
func (o *Options) conclude(attempts []*attempt, layOut func([]Item) printing.Result) error {
	var items []Item
	counts := map[string]int{}
	denied := map[permission.Resource]error{}
	for _, a := range attempts {
		items = append(items, a.Item)
		counts[a.Result]++
		var missing *remote.DeniedError
		if errors.As(a.err, &missing) {
			denied[missing.Missing.Resource] = fmt.Errorf("%s; %s", missing.Missing, missing.Missing.Fix())
		}
	}
	if err := o.Output.Print(o.Out, layOut(items)); err != nil {
		return exit.Failure(err)
	}
	if slices.ContainsFunc(attempts, func(a *attempt) bool { return a.ran && a.Handler != string(probing.HandlerExec) }) {
		fmt.Fprintln(o.ErrOut, "Note: network probes connected to localhost in the pod. Agents connect to the address of the pod from its node, "+
			"so servers that listen on one of them only, and network policies, can lead to another result.")
	}
	var errs []error
	for _, resource := range []permission.Resource{permission.Exec, permission.PortForward} {
		errs = append(errs, denied[resource])
	}
	missing := errors.Join(errs...)
	if missing != nil && counts[succeeded]+counts[failed]+counts[resultError]+counts[undecided] == 0 {
		return exit.NoAccess(missing)
	}
	expected := succeeded
	if strings.EqualFold(o.Expect, failed) {
		expected = failed
	}
	if counts[expected] == len(items) {
		return nil
	}
	text := summary(counts, len(items), expected)
	if expected != succeeded {
		text += ": expected " + expected
	}
	return exit.Failure(errors.Join(errors.New(text), missing))
}

// summary says how many probes have another result than the expected one.
func summary(counts map[string]int, all int, expected string) string {
	var parts []string
	for _, part := range []struct{ result, text string }{
		{succeeded, "succeeded"}, {failed, "failed"}, {undecided, "undecided"}, {resultError, "had no result"}, {notRun, "could not run"},
	} {
		if n := counts[part.result]; n > 0 && part.result != expected {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.text))
		}
	}
	return fmt.Sprintf("of %d probes, %s", all, strings.Join(parts, ", "))
}

// result returns the table of the results of single runs.
func result(items []Item) printing.Result {
	return table(items, []string{"Result", "Time"}, func(item *Item) []any { return []any{item.Result, duration(item.Seconds)} })
}

// table returns a row for each item. The columns are those that all results have, and others, of which the
// first one is colored.
func table(items []Item, others []string, cells func(*Item) []any) printing.Result {
	columns := slices.Concat([]string{"Pod", "Probe", "Container"}, others, []string{"Message", "Changes"})
	r := printing.Result{
		Columns: append(printing.Table(false, columns...), printing.Table(true, "Node", "Marks", "Notes")...),
		Object:  func() runtime.Object { return printing.NewList("ProbeTestList", items) },
		Colored: others[0], Color: printing.Style,
	}
	for i := range items {
		item := &items[i]
		r.Rows = append(r.Rows, slices.Concat([]any{item.Pod, item.name(), orNone(item.Container)}, cells(item), []any{
			orNone(oneLine(item.Message)), joined(item.Changes), orNone(item.Node), joined(item.Marks), orNone(strings.Join(item.Notes, "; ")),
		}))
		r.Names = append(r.Names, "pod/"+item.Pod)
	}
	return r
}

// name returns MARKER#PROBE, or MARKER if the marker does not probe the pod.
func (i *Item) name() string {
	if i.Probe == "" {
		return i.Marker
	}
	return identity.ID{Marker: i.Marker, Probe: i.Probe}.String()
}

func joined[T fmt.Stringer](values []T) string {
	var texts []string
	for _, value := range values {
		texts = append(texts, value.String())
	}
	return orNone(strings.Join(texts, ","))
}

func duration(seconds float64) string {
	if seconds == 0 {
		return none
	}
	return max(time.Duration(seconds*float64(time.Second)).Round(time.Millisecond), time.Millisecond).String()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}
