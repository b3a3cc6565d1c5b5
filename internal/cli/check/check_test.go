// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"io"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/check/checks"
	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestPrintResults(t *testing.T) {
	results := []checks.Result{
		{Check: "api-server", Verdict: checks.OK, Evidence: "Kubernetes v1.36.3 is supported"},
		{Check: "manager", Verdict: checks.Failed, Evidence: "0 of 2 pods ready", Fix: "kubectl get pods"},
	}
	want := "ok      api-server  Kubernetes v1.36.3 is supported\n" +
		"failed  manager     0 of 2 pods ready; fix: kubectl get pods\n"
	var out bytes.Buffer
	expect.NoError(t, printResults(&out, results))
	expect.Equal(t, "output", want, out.String())
}

func TestVerdictError(t *testing.T) {
	failed := checks.Result{Verdict: checks.Failed}
	denied := checks.Result{Verdict: checks.Unknown, Denied: true}
	for name, test := range map[string]struct {
		results []checks.Result
		want    int
	}{
		"nothing":                 {nil, exit.OK},
		"warning":                 {[]checks.Result{{Verdict: checks.OK}, {Verdict: checks.Warning}}, exit.OK},
		"failed":                  {[]checks.Result{failed, denied}, exit.Failed},
		"denied":                  {[]checks.Result{{Verdict: checks.Warning}, denied}, exit.Access},
		"unknown, but not denied": {[]checks.Result{{Verdict: checks.Unknown}}, exit.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			worst, denied := checks.Worst(test.results)
			expect.Equal(t, "exit code", test.want, exit.Code(verdictError(test.results, worst, denied)))
		})
	}
}

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"output":       {(&Options{SeamarkNamespace: "x"}).Validate(), `--output: "" is invalid: must be text, json or yaml`},
		"no namespace": {(&Options{Output: "text"}).Validate(), "--seamark-namespace: must not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.err == nil || test.err.Error() != test.want {
				t.Errorf("error %v, want %s", test.err, test.want)
			}
		})
	}
}

func TestReportIsSafe(t *testing.T) {
	results := []checks.Result{{Check: "agents", Verdict: checks.Failed, Evidence: texttest.Hostile, Fix: texttest.Hostile}}
	clitest.CheckReport(t, func(out io.Writer, format printing.Report) error {
		return format.Print(out, results, func(out io.Writer) error { return printResults(out, results) })
	})
	clitest.CheckColors(t, func(out io.Writer) error { return printResults(out, results) })
}
