// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// lines prints the lines about a rollout, each only once in a row. On a terminal, one about what is waited for has a bar, and the
// next one replaces it.
type lines struct {
	out io.Writer
	// width is the number of columns of the terminal, 0 if the output is none.
	width int
	last  string
	// open is whether the cursor is in the last line.
	open bool
}

// print prints a line that stays.
func (l *lines) print(line string) error {
	line = text.Line(line) // Messages of conditions come from webhooks.
	if line == l.last {
		return nil
	}
	l.end()
	l.last = line
	return printLine(l.out, "%s", line)
}

// wait prints a line about what is waited for.
func (l *lines) wait(p *planning.Progress, line string) error {
	if l.width == 0 {
		return l.print(line)
	}
	line = ansi.Truncate(bar(p)+" "+text.Line(line), l.width-1, "…")
	if line == l.last {
		return nil
	}
	l.last, l.open = line, true
	if _, err := io.WriteString(printing.Raw(l.out), "\r"+ansi.EraseLineRight+line); err != nil {
		return exit.Failure(fmt.Errorf("print the progress: %w", err))
	}
	return nil
}

// end ends the line in which the cursor is.
func (l *lines) end() {
	if l.open {
		// An error of the terminal follows with the next line.
		_, _ = fmt.Fprintln(l.out)
		l.open = false
	}
}

// bar shows how many of the pods that the strategy updates are updated and available.
func bar(p *planning.Progress) string {
	const cells = 10
	done, all := p.UpdatedAvailable, p.Target
	if all <= 0 {
		done, all = p.Available, p.Desired
	}
	full := 0
	if all > 0 && p.Observed >= p.Generation {
		full = int(min(max(done, 0), all)) * cells / int(all)
	}
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", cells-full) + "]"
}
