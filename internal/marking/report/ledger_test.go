// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
)

func TestEvents(t *testing.T) {
	before := write(podReport("a", entry("m#p", succeeded, "ok", 0, 0)))
	read := report.Read(stored(before.Pods...), nil)
	after := func(state v1alpha1.ProbeState, message string) report.Write {
		return write(podReport("a", entry("m#p", state, message, 9, 9)))
	}
	cases := map[string]struct {
		ledger report.Ledger
		write  report.Write
		want   []string
	}{
		"first result":                    {report.Ledger{}, after(failed, "no"), []string{"Failed no"}},
		"transition":                      {read, after(failed, "no"), []string{"Failed no"}},
		"to Unknown":                      {read, after(unknown, ""), nil},
		"from Unknown":                    {read.Wrote(at(1), after(unknown, "")), after(succeeded, "ok"), []string{"Succeeded ok"}},
		"message only":                    {read, after(succeeded, "fine"), nil},
		"restored state":                  {read, before, nil},
		"state removed by another client": {read.Adopt(nil), after(succeeded, "ok"), nil},
		"transition after a foreign edit": {read.Adopt(nil), after(failed, "no"), []string{"Failed no"}},
		"takeover":                        {report.Read(nil, []v1alpha1.PodProbeStatus{podStatus(before.Pods[0])}), before, nil},
		"state removed":                   {read, write(podReport("a")), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range tc.ledger.Events(onePlan(), tc.write) {
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
