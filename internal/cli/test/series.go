// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/internal/cli/dryrun"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
)

// runFor runs the probes at their periods, and prints the runs as they end, and then the results.
// Only tables show the runs before the results.
func (o *Options) runFor(ctx context.Context, r *runner, attempts []*attempt) error {
	lines, err := o.Output.Stream(o.Out)
	if err != nil {
		return err
	}
	printed := false
	start := o.now()
	err = r.repeat(ctx, attempts, o.For, func(a *attempt) error {
		if !o.Output.IsTable() {
			return nil
		}
		printed = true
		return lines.Print(line(a))
	})
	if err != nil {
		return exit.Failure(err)
	}
	if printed {
		fmt.Fprintln(o.Out)
	}
	err = o.conclude(attempts, states)
	if ctx.Err() != nil {
		after := o.now().Sub(start).Round(time.Second)
		return exit.Failure(errors.Join(fmt.Errorf("interrupted after %s of %s", after, o.For), err))
	}
	return err
}

// line returns the newest run of the probe as a row of a table.
func line(a *attempt) printing.Result {
	run := a.Runs[len(a.Runs)-1]
	result, streak, state := resultError, none, orNone(string(run.State))
	if run.Result != "" {
		result, streak = string(run.Result), fmt.Sprintf("%d/%d", run.Streak, run.Threshold)
	}
	if run.Changed {
		state = fmt.Sprintf("%s->%s", a.Transitions[len(a.Transitions)-1].From, run.State)
	}
	// The columns have the width of their longest values, so that later lines do not move.
	return printing.Result{
		Columns: printing.Table(false, "Time", "Pod", "Probe", "Result", "Took", "Streak", "State", "Message"),
		Rows: [][]any{{
			run.Time.Format(time.TimeOnly), a.Pod, a.name(), fmt.Sprintf("%-9s", result), fmt.Sprintf("%-6s", duration(run.Seconds)), streak,
			fmt.Sprintf("%-17s", state), orNone(oneLine(run.Message)),
		}},
		Colored: "Result", Color: func(cell string) lipgloss.Style { return color(strings.TrimSpace(cell)) },
	}
}

// states returns the table of the states to which the runs led.
func states(items []Item) printing.Result {
	columns := append(printing.Table(false, "Pod", "Probe", "Container", "State", "Runs", "Streak", "Transitions", "Message", "Changes"),
		printing.Table(true, "Node", "Marks", "Notes")...)
	r := printing.Result{
		Columns: columns,
		Object:  func() runtime.Object { return printing.NewList("ProbeTestList", items) },
		Colored: "State", Color: color,
	}
	for i := range items {
		item := &items[i]
		series, streak := item.Series, none
		if series == nil {
			series = &trial.Series{}
		}
		if series.Streak > 0 {
			streak = fmt.Sprintf("%s %d/%d", series.StreakResult, series.Streak, item.Threshold)
		}
		r.Rows = append(r.Rows, []any{
			item.Pod, item.name(), orNone(item.Container), item.Result, series.RunCount, streak, series.TransitionCount,
			orNone(oneLine(item.Message)), item.changes(), orNone(item.Node), item.marks(), orNone(strings.Join(item.Notes, "; ")),
		})
		r.Names = append(r.Names, "pod/"+item.Pod)
	}
	return r
}
