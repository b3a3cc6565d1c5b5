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
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/internal/cli/printing"
	explanation "github.com/seamark-dev/seamark/internal/explain"
)

// print prints the explanation in the requested format.
func (o *Options) print(x explanation.Explanation) error {
	var text []byte
	var err error
	switch o.Output {
	case formatJSON:
		text, err = json.MarshalIndent(x, "", "  ")
		text = append(text, '\n')
	case formatYAML:
		text, err = yaml.Marshal(x)
	default:
		text = []byte(render(x, printing.HasColors(o.Out, os.Getenv)))
	}
	if err != nil {
		return fmt.Errorf("encode explanation: %w", err)
	}
	if _, err := o.Out.Write(text); err != nil {
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
		fmt.Fprintf(&out, "%s %s: %s\n", verdict, step.Title, oneLine(step.Text))
		for _, line := range step.Evidence {
			fmt.Fprintf(&out, "           %s\n", oneLine(line))
		}
	}
	conclusion := oneLine(x.Conclusion)
	if colors {
		conclusion = lipgloss.NewStyle().Bold(true).Render(conclusion)
	}
	fmt.Fprintf(&out, "\n%s\n", conclusion)
	next(&out, x.Next)
	return out.String()
}

func next(out io.Writer, command string) {
	if command != "" {
		fmt.Fprintf(out, "Next: %s\n", command)
	}
}

// oneLine returns text of a container or the API server without line breaks and other control
// characters.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return -1
		default:
			return r
		}
	}, text)
}

// style returns the color of a verdict. The words differ too.
func style(verdict explanation.Verdict) lipgloss.Style {
	color := map[explanation.Verdict]string{
		explanation.OK: "2", explanation.Problem: "1", explanation.Waiting: "3", explanation.Unknown: "5", explanation.Info: "6",
	}[verdict]
	return lipgloss.NewStyle().Foreground(lipgloss.Color(color))
}
