// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/lint"
	"github.com/seamark-dev/seamark/internal/cli/lint/sarif"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/manifest/files"
)

// LintOptions are the options of `seamark lint`.
type LintOptions struct {
	genericiooptions.IOStreams
	// Version is the version of the program.
	Version string

	// Filenames are files, folders, or "-" for the standard input.
	Filenames []string
	// Output is text, json, yaml or sarif.
	Output string
	// FailOn is the severity from which findings make the command fail: warning or error.
	FailOn string
	// Show is the severity from which findings are printed: info, warning or error.
	Show string
	// Ignore holds the names of rules whose findings do not count and are not printed.
	Ignore []string
}

const lintLong = `Check manifests without a cluster.

The command checks PodProbeMarkers, and CloneSets and StatefulSets of apps.kruise.io, as the
API server does: with the schema and the rules of the CustomResourceDefinitions. It also finds
mistakes that the API server accepts, such as a label that two probes set, a selector that
matches none of the given pod templates, or a command that needs a shell.

The markers are compared with each other and with the workloads and Services in the given
files, as if all were applied to one cluster. A namespace that is not set is "default".

The arguments, and -f, are files, folders with all their subfolders, or - for the standard input. A
folder with a kustomization is built; its manifests are only compared with each other, and
their findings have no line. The templates of Helm charts are skipped: use
"helm template CHART | seamark lint -".

--ignore leaves out the findings of rules; their names are in brackets at the end of findings.
SARIF lists them as suppressed.

Exit codes: 0 if there is no finding of the severity --fail-on or above, 1 if there is one,
2 for bad input, also if no object is checked.`

const lintExample = `  # Check a marker together with the workload that it selects
  seamark lint marker.yaml deployment.yaml

  # Check everything in a repository, fail on warnings too, and show the findings in GitHub
  seamark lint . --fail-on warning -o sarif > seamark.sarif

  # Leave out the findings of two rules
  seamark lint . --ignore exec-no-path,no-matching-pods

  # Check what a chart installs
  helm template ./chart | seamark lint -`

func newLintCommand(streams genericiooptions.IOStreams, version string) *cobra.Command {
	o := &LintOptions{IOStreams: streams, Version: version}
	command := &cobra.Command{
		Use:     "lint FILE...",
		Short:   "Check manifests without a cluster",
		Long:    lintLong,
		Example: lintExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Filenames, err = files.Join(o.Filenames, args); err != nil {
				return err //nolint:wrapcheck // it names the value
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&o.Filenames, "filename", "f", nil, "file or folder with manifests, or - for the standard input (repeatable; also as arguments)")
	flags.StringVarP(&o.Output, "output", "o", "text", "output format: text, json, yaml or sarif")
	flags.StringVar(&o.FailOn, "fail-on", "error", "severity from which a finding makes the command fail: warning or error")
	flags.StringVar(&o.Show, "show", "warning", "severity from which findings are printed: info, warning or error")
	flags.StringSliceVar(&o.Ignore, "ignore", nil, "rules whose findings are left out, separated by commas")
	choices := o.choices()
	choices["ignore"] = lint.RuleNames()
	for flag, values := range choices {
		// The flags exist.
		_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return command
}

// choices returns the allowed values of the flags.
func (o *LintOptions) choices() map[string][]string {
	return map[string][]string{
		"output":  {"text", "json", "yaml", "sarif"},
		"fail-on": {"warning", "error"},
		"show":    {"info", "warning", "error"},
	}
}

// Validate checks the flags. The error names each invalid flag and the allowed values.
func (o *LintOptions) Validate() error {
	var errs []error
	if len(o.Filenames) == 0 {
		errs = append(errs, errors.New("FILE is required: specify files, folders, or - for the standard input"))
	}
	for _, flag := range []struct{ name, value string }{{"output", o.Output}, {"fail-on", o.FailOn}, {"show", o.Show}} {
		if allowed := o.choices()[flag.name]; !slices.Contains(allowed, flag.value) {
			last := len(allowed) - 1
			errs = append(errs, fmt.Errorf("--%s: %q is invalid: must be %s or %s", flag.name, flag.value,
				strings.Join(allowed[:last], ", "), allowed[last]))
		}
	}
	for _, name := range o.Ignore {
		if err := lint.CheckRule(name); err != nil {
			errs = append(errs, fmt.Errorf("--ignore: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Run checks the manifests and prints the findings. exit.Code maps its error to an exit code.
func (o *LintOptions) Run(ctx context.Context) error {
	manifests := &lintFiles{in: o.In}
	for _, name := range o.Filenames {
		if err := manifests.add(name); err != nil {
			return err
		}
	}
	sets := [][]lint.File{manifests.plain}
	for _, built := range manifests.built {
		sets = append(sets, []lint.File{built})
	}
	linter, report := &lint.Linter{}, lintReport{Findings: []lint.Finding{}}
	if len(o.Ignore) > 0 {
		report.ignored = []lint.Finding{}
	}
	report.Summary.Files = len(manifests.plain) + len(manifests.built)
	for _, set := range sets {
		result, err := linter.Check(ctx, set)
		if err != nil {
			return err
		}
		report.add(result, o)
	}
	if report.Summary.Objects == 0 && report.Summary.Errors+report.Summary.Ignored == 0 {
		return fmt.Errorf("%s: no Kubernetes object", strings.Join(o.Filenames, ", "))
	}
	if err := o.print(report); err != nil {
		return exit.Failure(fmt.Errorf("print findings: %w", err))
	}
	if report.Summary.Checked == 0 && report.Summary.Errors+report.Summary.Ignored == 0 {
		return fmt.Errorf("%s: nothing to check: must have an object of a kind that Seamark serves, such as PodProbeMarker", strings.Join(o.Filenames, ", "))
	}
	if report.Summary.Errors > 0 || report.Summary.Warnings > 0 && o.FailOn == string(lint.Warning) {
		return exit.Failure(errors.New(report.Summary.String()))
	}
	fmt.Fprintln(o.ErrOut, report.Summary)
	return nil
}

// print prints the findings in the output format.
func (o *LintOptions) print(report lintReport) error {
	switch o.Output {
	case "json":
		encoder := json.NewEncoder(printing.Raw(o.Out))
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	case "yaml":
		content, err := printing.YAML(report)
		if err != nil {
			return err
		}
		_, err = printing.Raw(o.Out).Write(content)
		return err
	case "sarif":
		return sarif.Log{Findings: report.Findings, Suppressed: report.ignored, Version: o.Version}.Write(printing.Raw(o.Out))
	default:
		return printFindings(o.Out, report.Findings)
	}
}

// maxFindings is the number of findings that are printed as text.
const maxFindings = 1000

// printFindings prints one line per finding, and one for its fix. It counts those above maxFindings.
func printFindings(w io.Writer, findings []lint.Finding) error {
	more := len(findings) - maxFindings
	for _, f := range findings[:min(len(findings), maxFindings)] {
		place, message := f.File, f.Message
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
		}
		if f.Field != "" {
			message = f.Field + ": " + message
		}
		if f.Line == 0 && f.Object != "" {
			message = f.Object + ": " + message
		}
		if f.Fix != "" {
			message += "\n    fix: " + f.Fix
		}
		if _, err := fmt.Fprintf(w, "%s: %s: %s\n", place, f.Severity, withRule(message, f.Rule)); err != nil {
			return err
		}
	}
	if more > 0 {
		_, err := fmt.Fprintf(w, "%d more findings: other formats than text show all\n", more)
		return err
	}
	return nil
}

// withRule adds the name of the rule to the first line.
func withRule(message, rule string) string {
	first, rest, more := strings.Cut(message, "\n")
	first += " [" + rule + "]"
	if more {
		first += "\n" + rest
	}
	return first
}

// lintReport is the output in JSON and YAML.
type lintReport struct {
	Findings []lint.Finding `json:"findings"`
	Summary  lintSummary    `json:"summary"`
	// ignored holds the findings of ignored rules. It is nil if no rule is ignored.
	ignored []lint.Finding
}

// lintSummary counts the findings, also those that are not shown. Findings of ignored rules have no
// other count than their own.
type lintSummary struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
	Ignored  int `json:"ignored,omitempty"`
	Files    int `json:"files"`
	// Objects are the Kubernetes objects, and Checked those with a CustomResourceDefinition of Seamark.
	Objects int `json:"objects"`
	Checked int `json:"checked"`
	hidden  int
}

// add adds the findings of a check.
func (r *lintReport) add(result lint.Result, o *LintOptions) {
	r.Summary.Objects += result.Objects
	r.Summary.Checked += result.Checked
	for _, f := range result.Findings {
		shown := f.Severity.AtLeast(lint.Severity(o.Show))
		if slices.Contains(o.Ignore, f.Rule) {
			r.Summary.Ignored++
			if shown {
				r.ignored = append(r.ignored, f)
			}
			continue
		}
		switch f.Severity {
		case lint.Error:
			r.Summary.Errors++
		case lint.Warning:
			r.Summary.Warnings++
		case lint.Info:
			r.Summary.Infos++
		}
		if shown {
			r.Findings = append(r.Findings, f)
		} else {
			r.Summary.hidden++
		}
	}
}

// String returns the counts in one line.
func (s lintSummary) String() string {
	count := func(n int, noun string) string {
		if n != 1 {
			noun += "s"
		}
		return fmt.Sprintf("%d %s", n, noun)
	}
	text := fmt.Sprintf("%s, %s in %s: %s checked", count(s.Errors, "error"), count(s.Warnings, "warning"), count(s.Files, "file"),
		count(s.Checked, "object"))
	if s.Ignored > 0 {
		text += fmt.Sprintf("; %s ignored", count(s.Ignored, "finding"))
	}
	if s.hidden > 0 {
		text += fmt.Sprintf("; %s not shown, see --show", count(s.hidden, "finding"))
	}
	return text
}
