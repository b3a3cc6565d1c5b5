// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check implements `seamark check`, which checks an installation of Seamark from outside. Package inspect reads
// the facts, and package checks evaluates them.
package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/check/checks"
	"github.com/seamark-dev/seamark/internal/cli/check/inspect"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/apierror"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Options are the flags of `seamark check`, which New describes.
type Options struct {
	genericiooptions.IOStreams
	Flags            *cluster.Flags
	SeamarkNamespace string
	Output           printing.Report
}

const long = `Check an installation of Seamark from outside, with the permissions of the user:
versions, CRDs, the manager and its lease, agents on all nodes that should have one, permissions of
the programs, admission policies, plans, reports, markers, and OpenKruise next to Seamark.

Each line is one check: its verdict (ok, warning, failed or unknown), its name, the evidence, and
the next command to run if something is wrong. The command changes nothing. It asks the API server
about the permissions of the programs by SubjectAccessReviews, which are not stored.

Exit codes: 0 if nothing has failed, also with warnings; 1 if a check has failed; 2 for bad input; 3
if nothing has failed, but a check is unknown because of missing permissions, or the cluster
cannot be reached.`

const example = `  # Check the installation in the namespace seamark-system
  seamark check

  # Print the failed checks only
  seamark check -o json | jq '.results[] | select(.verdict == "failed")'`

// New returns the command.
func New(streams genericiooptions.IOStreams, _, version string) *cobra.Command {
	o := &Options{
		IOStreams: streams, Flags: cluster.NewFlags(streams, version),
		SeamarkNamespace: configv1alpha1.DefaultNamespace, Output: printing.Text,
	}
	command := &cobra.Command{
		Use:     "check",
		Short:   "Check the installation of Seamark in a cluster",
		Long:    long,
		Example: example,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Flags.AddTo(command)
	command.Flags().StringVar(&o.SeamarkNamespace, "seamark-namespace", o.SeamarkNamespace, "namespace of Seamark's programs")
	o.Output.AddTo(command)
	return command
}

// Validate checks the flags.
func (o *Options) Validate() error {
	if o.SeamarkNamespace == "" {
		return errors.New("--seamark-namespace: must not be empty")
	}
	return o.Output.Validate()
}

// Run reads the installation and prints the results. The error has the exit code of the verdict.
func (o *Options) Run(ctx context.Context) error {
	connection, err := o.Flags.Connect()
	if err != nil {
		return err
	}
	facts, err := inspect.Facts(ctx, connection, o.SeamarkNamespace, time.Now())
	if err != nil {
		return exit.NoAccess(err)
	}
	if facts.Server.Err != nil && !apierror.IsDenied(facts.Server.Err) {
		// Without a connection, every check would be unknown for the same reason.
		return exit.NoAccess(facts.Server.Err)
	}
	results := checks.Run(facts)
	worst, denied := checks.Worst(results)
	err = o.Output.Print(o.Out, report{Verdict: worst, Results: results}, func(out io.Writer) error { return printResults(out, results) })
	if err != nil {
		return exit.Failure(err)
	}
	return verdictError(results, worst, denied)
}

func verdictError(results []checks.Result, worst checks.Severity, denied bool) error {
	failed, unknown := 0, 0
	for _, r := range results {
		switch r.Verdict {
		case checks.Failed:
			failed++
		case checks.Unknown:
			unknown++
		}
	}
	switch {
	case worst == checks.Failed:
		return exit.Failure(fmt.Errorf("%d of %d checks failed", failed, len(results)))
	case denied:
		return exit.NoAccess(fmt.Errorf("%d of %d checks are unknown because of missing permissions", unknown, len(results)))
	case unknown > 0:
		return exit.Failure(fmt.Errorf("%d of %d checks are unknown", unknown, len(results)))
	}
	return nil
}

// report is the output for programs.
type report struct {
	// Verdict is the worst verdict.
	Verdict checks.Severity `json:"verdict"`
	// Results are the results of all checks.
	Results []checks.Result `json:"results"`
}

func printResults(out io.Writer, results []checks.Result) error {
	var lines bytes.Buffer
	table := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	for _, r := range results {
		evidence := r.Evidence
		if r.Fix != "" {
			evidence += "; fix: " + r.Fix
		}
		// A tab or a newline would start a cell or a row.
		fmt.Fprintf(table, "%s\t%s\t%s\n", r.Verdict, r.Check, text.Line(evidence))
	}
	// A buffer accepts everything.
	_ = table.Flush()
	painter := printing.NewPainter(out)
	for line := range strings.Lines(lines.String()) {
		verdict, rest, _ := strings.Cut(line, " ")
		if _, err := io.WriteString(printing.Raw(out), painter.Word(verdict)+" "+text.Safe(rest)); err != nil {
			return fmt.Errorf("print the results: %w", err)
		}
	}
	return nil
}
