// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/check"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/migrate"
)

func TestPrintChecks(t *testing.T) {
	results := []check.Result{
		{Check: "api-server", Verdict: check.OK, Evidence: "Kubernetes v1.36.3 is supported"},
		{Check: "manager", Verdict: check.Failed, Evidence: "0 of 2 pods ready", Fix: "kubectl get pods"},
	}
	for format, want := range map[string]string{
		"text": "ok      api-server  Kubernetes v1.36.3 is supported\n" +
			"failed  manager     0 of 2 pods ready; fix: kubectl get pods\n",
		"yaml": "results:\n" +
			"- check: api-server\n  evidence: Kubernetes v1.36.3 is supported\n  verdict: ok\n" +
			"- check: manager\n  evidence: 0 of 2 pods ready\n  fix: kubectl get pods\n  verdict: failed\n" +
			"verdict: failed\n",
		"json": `{
  "verdict": "failed",
  "results": [
    {
      "check": "api-server",
      "verdict": "ok",
      "evidence": "Kubernetes v1.36.3 is supported"
    },
    {
      "check": "manager",
      "verdict": "failed",
      "evidence": "0 of 2 pods ready",
      "fix": "kubectl get pods"
    }
  ]
}
`,
	} {
		t.Run(format, func(t *testing.T) {
			var out bytes.Buffer
			if err := printChecks(&out, format, results, check.Failed); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerdictError(t *testing.T) {
	failed := check.Result{Verdict: check.Failed}
	denied := check.Result{Verdict: check.Unknown, Denied: true}
	for name, test := range map[string]struct {
		results []check.Result
		want    int
	}{
		"nothing":                 {nil, exit.OK},
		"warning":                 {[]check.Result{{Verdict: check.OK}, {Verdict: check.Warning}}, exit.OK},
		"failed":                  {[]check.Result{failed, denied}, exit.Failed},
		"denied":                  {[]check.Result{{Verdict: check.Warning}, denied}, exit.Access},
		"unknown, but not denied": {[]check.Result{{Verdict: check.Unknown}}, exit.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			worst, denied := check.Worst(test.results)
			if got := exit.Code(verdictError(test.results, worst, denied)); got != test.want {
				t.Errorf("exit code %d, want %d", got, test.want)
			}
		})
	}
}

func TestPrintMigration(t *testing.T) {
	report := migrateReport{Markers: 1, CloneSets: 2, Findings: []migrate.Finding{
		{
			Level: migrate.Blocks, Kind: "CloneSet", Namespace: "game", Name: "c", Field: "spec.lifecycle.preNormal",
			OpenKruise: "implements it", Seamark: "does not implement it", Action: "use a readiness gate",
		},
		{Level: migrate.Changes, Kind: "Namespace", Name: "game", OpenKruise: "a", Seamark: "b"},
	}}
	want := `blocks   CloneSet game/c  spec.lifecycle.preNormal
         OpenKruise: implements it
         Seamark:    does not implement it
         action:     use a readiness gate
changes  Namespace game
         OpenKruise: a
         Seamark:    b
Checked 1 PodProbeMarkers, 2 CloneSets and 0 StatefulSets: 2 findings, of which 1 block a migration.
`
	var out bytes.Buffer
	if err := report.print(&out, textOutput); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if code := exit.Code(report.verdict()); code != exit.Failed {
		t.Errorf("exit code %d, want %d", code, exit.Failed)
	}
	complete, incomplete := migrateReport{Findings: report.Findings[1:]}, migrateReport{Unread: []string{"nodes"}}
	if code := exit.Code(complete.verdict()); code != exit.OK {
		t.Errorf("exit code %d if nothing blocks, want %d", code, exit.OK)
	}
	if code := exit.Code(incomplete.verdict()); code != exit.Access {
		t.Errorf("exit code %d if something could not be read, want %d", code, exit.Access)
	}
}
