// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"charm.land/lipgloss/v2"

	explanation "github.com/seamark-dev/seamark/internal/cli/explanation"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// print prints the explanation in the requested format.
func (o *Options) print(x explanation.Explanation) error {
	var content []byte
	var err error
	switch o.Output {
	case formatJSON:
		content, err = json.MarshalIndent(x, "", "  ")
		content = append(content, '\n')
	case formatYAML:
		content, err = printing.YAML(x)
	default:
		content = []byte(render(x, printing.HasColors(o.Out, os.Getenv)))
	}
	if err != nil {
		return fmt.Errorf("encode explanation: %w", err)
	}
	if _, err := printing.Raw(o.Out).Write(content); err != nil {
		return fmt.Errorf("print explanation: %w", err)
	}
	return nil
}

// render returns the explanation as text: one line per step, its evidence below it, and the
// conclusion with the next command at the end.
func render(x explanation.Explanation, colors bool) string {
	var out strings.Builder
	for _, step := range x.Steps {
		verdict := fmt.Sprintf("%-8s", step.Verdict)
		if colors {
			verdict = style(step.Verdict).Render(verdict)
		}
		fmt.Fprintf(&out, "%s %s: %s\n", verdict, text.Line(step.Title), text.Line(step.Text))
		for _, line := range step.Evidence {
			fmt.Fprintf(&out, "           %s\n", text.Line(line))
		}
	}
	conclusion := text.Line(x.Conclusion)
	if colors {
		conclusion = lipgloss.NewStyle().Bold(true).Render(conclusion)
	}
	fmt.Fprintf(&out, "\n%s\n", conclusion)
	next(&out, x.Next)
	return out.String()
}

func next(out io.Writer, command string) {
	if command != "" {
		fmt.Fprintf(out, "Next: %s\n", text.Line(command))
	}
}

// style returns the color of a verdict. The words differ too.
func style(verdict explanation.Verdict) lipgloss.Style {
	color := map[explanation.Verdict]string{
		explanation.OK: "2", explanation.Problem: "1", explanation.Waiting: "3", explanation.Unknown: "5", explanation.Info: "6",
	}[verdict]
	return lipgloss.NewStyle().Foreground(lipgloss.Color(color))
}
