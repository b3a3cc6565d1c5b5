// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint implements `seamark lint`, which checks manifests without a cluster. Package rules finds what is wrong.
package lint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/lint/rules"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/internal/manifest/files"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Options are the flags of `seamark lint`, which New describes.
type Options struct {
	genericiooptions.IOStreams
	Version           string
	Filenames, Ignore []string
	Output            printing.Report
	FailOn, Show      string
	AllowRemote       bool
}

const long = `Check manifests without a cluster.

The command checks PodProbeMarkers, and the sets and jobs of apps.kruise.io, as the API server does:
with the schema and the rules of the CustomResourceDefinitions. It also finds mistakes that the API server
accepts, such as a label that two probes set, a selector that matches none of the given pod
templates, a command that needs a shell, or a schedule that never runs.

The markers are compared with each other and with the workloads and Services in the given
files, as if all were applied to one cluster. A namespace that is not set is "default".

The arguments, and -f, are files, folders with all their subfolders, or - for the standard input. A
folder with a kustomization is built; its manifests are only compared with each other, and
their findings have no line. The templates of Helm charts are skipped: use
"helm template CHART | seamark lint -". Nothing is downloaded unless --allow-remote is set: URLs,
and kustomizations with remote parts, are refused.

--ignore leaves out the findings of rules; their names are in brackets at the end of findings.
SARIF lists them as suppressed.

Exit codes: 0 if there is no finding of the severity --fail-on or above, 1 if there is one,
2 for bad input, also if no object is checked.`

const example = `  # Check a marker together with the workload that it selects
  seamark lint marker.yaml deployment.yaml

  # Check everything in a repository, fail on warnings too, and show the findings in GitHub
  seamark lint . --fail-on warning -o sarif > seamark.sarif

  # Leave out the findings of two rules
  seamark lint . --ignore exec-no-path,no-matching-pods

  # Check what a chart installs
  helm template ./chart | seamark lint -`

// New returns the command.
func New(streams genericiooptions.IOStreams, _, version string) *cobra.Command {
	o := &Options{IOStreams: streams, Version: version}
	command := &cobra.Command{
		Use:     "lint FILE...",
		Short:   "Check manifests without a cluster",
		Long:    long,
		Example: example,
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
	o.Output.AddTo(command, sarifOutput)
	flags.StringVar(&o.FailOn, "fail-on", "error", "severity from which a finding makes the command fail: warning or error")
	flags.StringVar(&o.Show, "show", "warning", "severity from which findings are printed: info, warning or error")
	flags.BoolVar(&o.AllowRemote, "allow-remote", false, "read manifests from URLs, and the remote parts of kustomizations")
	flags.StringSliceVar(&o.Ignore, "ignore", nil, "rules whose findings are left out, separated by commas")
	for flag, values := range map[string][]string{"fail-on": failOn(), "show": show(), "ignore": rules.Names()} {
		// The flags exist.
		_ = command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return command
}

func failOn() []string { return []string{"warning", "error"} }
func show() []string   { return []string{"info", "warning", "error"} }

// Validate checks the flags. The error names each invalid flag and the allowed values.
func (o *Options) Validate() error {
	var errs []error
	if len(o.Filenames) == 0 {
		errs = append(errs, errors.New("FILE is required: specify files, folders, or - for the standard input"))
	}
	errs = append(errs, o.Output.Validate(sarifOutput))
	for _, flag := range []struct {
		name, value string
		allowed     []string
	}{{"fail-on", o.FailOn, failOn()}, {"show", o.Show, show()}} {
		if !slices.Contains(flag.allowed, flag.value) {
			errs = append(errs, fmt.Errorf("--%s: %q is invalid: must be %s", flag.name, flag.value, printing.OneOf(flag.allowed)))
		}
	}
	for _, name := range o.Ignore {
		if err := rules.CheckName(name); err != nil {
			errs = append(errs, fmt.Errorf("--ignore: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Run checks the manifests and prints the findings. exit.Code maps its error to an exit code.
func (o *Options) Run(ctx context.Context) error {
	manifests, err := (&files.Loader{Stdin: o.In, AllowRemote: o.AllowRemote}).Load(ctx, o.Filenames)
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	// The files are compared with each other. Each kustomization stands for itself.
	sets := make([][]document.File, 1)
	for _, file := range manifests {
		if file.Generated {
			sets = append(sets, []document.File{file})
		} else {
			sets[0] = append(sets[0], file)
		}
	}
	linter, report := &rules.Linter{}, lintReport{Findings: []rules.Finding{}}
	if len(o.Ignore) > 0 {
		report.ignored = []rules.Finding{}
	}
	report.Summary.Files = len(manifests)
	for _, set := range sets {
		report.add(linter.Check(ctx, set), o)
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
	if report.Summary.Errors > 0 || report.Summary.Warnings > 0 && o.FailOn == string(rules.Warning) {
		return exit.Failure(errors.New(report.Summary.String()))
	}
	fmt.Fprintln(o.ErrOut, report.Summary)
	return nil
}

// sarifOutput is the format of code hosts.
const sarifOutput = "sarif"

// print prints the findings in the output format.
func (o *Options) print(report lintReport) error {
	return o.Output.Print(o.Out, report, func(out io.Writer) error {
		if o.Output == sarifOutput {
			return rules.WriteSARIF(printing.Raw(out), o.Version, report.Findings, report.ignored)
		}
		return printFindings(out, report.Findings)
	})
}

// maxFindings is the number of findings that are printed as text.
const maxFindings = 1000

// printFindings prints one line per finding, and one for its fix. It counts those above maxFindings.
func printFindings(w io.Writer, findings []rules.Finding) error {
	more := len(findings) - maxFindings
	painter := printing.NewPainter(w)
	for _, f := range findings[:min(len(findings), maxFindings)] {
		message := f.Text()
		if f.Fix != "" {
			message += "\n    fix: " + f.Fix
		}
		line := fmt.Sprintf("%s: %s: %s\n", text.Safe(f.Place()), painter.Word(string(f.Severity)), text.Safe(withRule(message, f.Rule)))
		if _, err := io.WriteString(printing.Raw(w), line); err != nil {
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
	Findings []rules.Finding `json:"findings"`
	Summary  summary         `json:"summary"`
	// ignored holds the findings of ignored rules. It is nil if no rule is ignored.
	ignored []rules.Finding
}

// summary counts the findings, also those that are not shown. Findings of ignored rules have no
// other count than their own.
type summary struct {
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
func (r *lintReport) add(result rules.Result, o *Options) {
	r.Summary.Objects += result.Objects
	r.Summary.Checked += result.Checked
	for _, f := range result.Findings {
		shown := f.Severity.AtLeast(rules.Severity(o.Show))
		if slices.Contains(o.Ignore, f.Rule) {
			r.Summary.Ignored++
			if shown {
				r.ignored = append(r.ignored, f)
			}
			continue
		}
		switch f.Severity {
		case rules.Error:
			r.Summary.Errors++
		case rules.Warning:
			r.Summary.Warnings++
		case rules.Info:
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
func (s summary) String() string {
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
