// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/report"
)

func TestEvents(t *testing.T) {
	before := status(podStatus("a", entry("m#p", succeeded, "ok", 0, 0)))
	after := func(state v1alpha1.ProbeState, message string) v1alpha1.NodePodProbeStatus {
		return status(podStatus("a", entry("m#p", state, message, 9, 9)))
	}
	cases := map[string]struct {
		ledger report.Ledger
		status v1alpha1.NodePodProbeStatus
		want   []string
	}{
		"first result":                    {report.Read(status()), after(failed, "no"), []string{"Failed no"}},
		"transition":                      {report.Read(before), after(failed, "no"), []string{"Failed no"}},
		"to Unknown":                      {report.Read(before), after(unknown, ""), nil},
		"from Unknown":                    {report.Read(before).Wrote(at(1), after(unknown, "")), after(succeeded, "ok"), []string{"Succeeded ok"}},
		"message only":                    {report.Read(before), after(succeeded, "fine"), nil},
		"restored state":                  {report.Read(before), before, nil},
		"state removed by another client": {report.Read(before).Adopt(status()), after(succeeded, "ok"), nil},
		"transition after a foreign edit": {report.Read(before).Adopt(status()), after(failed, "no"), []string{"Failed no"}},
		"state removed":                   {report.Read(before), status(), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range tc.ledger.Events(onePlan(), tc.status) {
				if e.Pod.Name != "a" || e.Probe.Name != "m#p" {
					t.Errorf("event of %s %s", e.Pod.Name, e.Probe.Name)
				}
				got = append(got, string(e.State)+" "+e.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSameStates(t *testing.T) {
	base := status(podStatus("a", entry("m#p", succeeded, "ok", 0, 0)))
	stripped := base
	stripped.ObservedGeneration, stripped.Pods, stripped.Probes = 0, 0, 0
	cases := map[string]struct {
		other v1alpha1.NodePodProbeStatus
		want  bool
	}{
		"equal":                        {base, true},
		"without Seamark's own fields": {stripped, true},
		"different state":              {status(podStatus("a", entry("m#p", failed, "ok", 0, 0))), false},
		"different time":               {status(podStatus("a", entry("m#p", succeeded, "ok", 1, 0))), false},
		"additional probe":             {status(podStatus("a", base.PodProbeStatuses[0].ProbeStates[0], entry("m#q", failed, "", 0, 0))), false},
		"empty":                        {status(), false},
		"same probe of another pod":    {status(podStatus("b", entry("m#p", succeeded, "ok", 0, 0))), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := report.SameStates(base, tc.other); got != tc.want {
				t.Errorf("SameStates() = %t, want %t", got, tc.want)
			}
		})
	}
}
