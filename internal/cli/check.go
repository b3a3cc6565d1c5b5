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
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/check"
	"github.com/seamark-dev/seamark/internal/cli/check/inspect"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// CheckOptions are the options of `seamark check`.
type CheckOptions struct {
	genericiooptions.IOStreams
	// Flags select the cluster and the user.
	Flags *cluster.Flags
	// SeamarkNamespace is the namespace of Seamark's programs.
	SeamarkNamespace string
	// Output is text, json or yaml.
	Output string
	// Now is the clock.
	Now func() time.Time
}

const checkLong = `Check an installation of Seamark from outside, with the permissions of the user:
versions, CRDs, the manager and its lease, agents on all nodes that should have one, permissions of
the programs, admission policies, plans, reports, markers, and OpenKruise next to Seamark.

Each line is one check: its verdict (ok, warning, failed or unknown), its name, the evidence, and
the next command to run if something is wrong. The command changes nothing. It asks the API server
about the permissions of the programs by SubjectAccessReviews, which are not stored.

Exit codes: 0 if nothing has failed, also with warnings; 1 if a check has failed; 2 for bad input; 3
if nothing has failed, but a check is unknown because of missing permissions, or the cluster
cannot be reached.`

const checkExample = `  # Check the installation in the namespace seamark-system
  seamark check

  # Print the failed checks only
  seamark check -o json | jq '.results[] | select(.verdict == "failed")'`

func newCheckCommand(streams genericiooptions.IOStreams, version string) *cobra.Command {
	o := &CheckOptions{
		IOStreams: streams, Flags: cluster.NewFlags(streams, version), Now: time.Now,
		SeamarkNamespace: configv1alpha1.DefaultNamespace, Output: textOutput,
	}
	command := &cobra.Command{
		Use:     "check",
		Short:   "Check the installation of Seamark in a cluster",
		Long:    checkLong,
		Example: checkExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Flags.AddTo(command)
	flags := command.Flags()
	flags.StringVar(&o.SeamarkNamespace, "seamark-namespace", o.SeamarkNamespace, "namespace of Seamark's programs")
	flags.StringVarP(&o.Output, "output", "o", o.Output, "output format: text, json or yaml")
	cluster.CompleteValues(command, "output", reportOutputs())
	return command
}

// Validate checks the flags.
func (o *CheckOptions) Validate() error {
	if o.SeamarkNamespace == "" {
		return errors.New("--seamark-namespace: must not be empty")
	}
	return validateReportOutput(o.Output)
}

// Run reads the installation and prints the results. The error has the exit code of the verdict.
func (o *CheckOptions) Run(ctx context.Context) error {
	connection, err := o.Flags.Connect()
	if err != nil {
		return err
	}
	reader, err := gather.New(connection.Config)
	if err != nil {
		return exit.Failure(err)
	}
	facts, err := reader.Facts(ctx, o.SeamarkNamespace, o.Now())
	if err != nil {
		return exit.NoAccess(err)
	}
	if facts.Server.Err != nil && !check.IsDenied(facts.Server.Err) {
		// Without a connection, every check would be unknown for the same reason.
		return exit.NoAccess(facts.Server.Err)
	}
	results := check.Run(facts)
	worst, denied := check.Worst(results)
	if err := printChecks(o.Out, o.Output, results, worst); err != nil {
		return exit.Failure(err)
	}
	return verdictError(results, worst, denied)
}

func verdictError(results []check.Result, worst check.Verdict, denied bool) error {
	failed, unknown := 0, 0
	for _, r := range results {
		switch r.Verdict {
		case check.Failed:
			failed++
		case check.Unknown:
			unknown++
		}
	}
	switch {
	case worst == check.Failed:
		return exit.Failure(fmt.Errorf("%d of %d checks failed", failed, len(results)))
	case denied:
		return exit.NoAccess(fmt.Errorf("%d of %d checks are unknown because of missing permissions", unknown, len(results)))
	case unknown > 0:
		return exit.Failure(fmt.Errorf("%d of %d checks are unknown", unknown, len(results)))
	}
	return nil
}

// checkReport is the output for programs.
type checkReport struct {
	// Verdict is the worst verdict.
	Verdict check.Verdict `json:"verdict"`
	// Results are the results of all checks.
	Results []check.Result `json:"results"`
}

func printChecks(out io.Writer, format string, results []check.Result, worst check.Verdict) error {
	if format != textOutput {
		return printStructured(out, format, checkReport{Verdict: worst, Results: results})
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range results {
		evidence := r.Evidence
		if r.Fix != "" {
			evidence += "; fix: " + r.Fix
		}
		// A tab or a newline would start a cell or a row.
		fmt.Fprintf(table, "%s\t%s\t%s\n", r.Verdict, r.Check, text.Line(evidence))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	return nil
}

// textOutput is the default format of reports.
const textOutput = "text"

// reportOutputs returns the formats of reports.
func reportOutputs() []string { return []string{textOutput, "json", "yaml"} }

// validateReportOutput checks the format of a report.
func validateReportOutput(format string) error {
	if slices.Contains(reportOutputs(), format) {
		return nil
	}
	return fmt.Errorf("--output: %q is invalid: must be text, json or yaml", format)
}

// printStructured prints a value as JSON or YAML.
func printStructured(out io.Writer, format string, value any) error {
	encode := printing.YAML
	if format == "json" {
		encode = func(value any) ([]byte, error) {
			encoded, err := json.MarshalIndent(value, "", "  ")
			return append(encoded, '\n'), err
		}
	}
	encoded, err := encode(value)
	if err == nil {
		_, err = printing.Raw(out).Write(encoded)
	}
	if err != nil {
		return fmt.Errorf("print as %s: %w", format, err)
	}
	return nil
}
