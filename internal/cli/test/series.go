// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	err = o.conclude(attempts, stateTable)
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
		Colored: "Result", Color: printing.Style,
	}
}

// stateTable returns the table of the states to which the runs led.
func stateTable(items []Item) printing.Result {
	return table(items, []string{"State", "Runs", "Streak", "Transitions"}, func(item *Item) []any {
		series, streak := item.Series, none
		if series == nil {
			series = &dryrun.Series{}
		}
		if series.Streak > 0 {
			streak = fmt.Sprintf("%s %d/%d", series.StreakResult, series.Streak, item.Threshold)
		}
		return []any{item.Result, series.RunCount, streak, series.TransitionCount}
	})
}
