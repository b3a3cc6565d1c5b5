// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/expect"
)

// failing returns entries of pods with errors, each written pod/marker#probe/message.
func failing(errs ...string) []seamarkv1alpha1.PodReport {
	var pods []seamarkv1alpha1.PodReport
	for _, e := range errs {
		parts := strings.Split(e, "/")
		pods = append(pods, seamarkv1alpha1.PodReport{
			Namespace: "ns", Name: parts[0], UID: "uid-" + parts[0],
			Errors: []v1alpha1.ContainerProbeError{{Name: parts[1], Reason: v1alpha1.ProbeCannotRun, Message: parts[2]}},
		})
	}
	return pods
}

func TestErrorsInForce(t *testing.T) {
	slice := func(name string, errs ...string) *seamarkv1alpha1.ProbeReport {
		s := &seamarkv1alpha1.ProbeReport{NodeName: "n", Pods: failing(errs...)}
		s.Name = name
		return s
	}
	odd := slice("n.0", "x/m#p/"+strings.Repeat("é", 300))
	odd.Pods[0].Errors[0].Reason = "Odd reason\n"
	cases := map[string]struct {
		report mark.NodeReport
		want   []v1alpha1.ContainerProbeError
	}{
		"none":             {report: mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{slice("n.0", "y/m#p/other")}}},
		"in a ProbeReport": {report: mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{slice("n.0", "x/m#p/no")}}, want: failing("x/m#p/no")[0].Errors},
		"states in status": {report: mark.NodeReport{Plan: status(false, podStatus("uid-x")), Slices: []*seamarkv1alpha1.ProbeReport{slice("n.0", "x/m#p/no")}}},
		"two entries":      {report: mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{slice("n.1", "x/m#p/b"), slice("n.0", "x/m#p/a")}}, want: failing("x/m#p/a")[0].Errors},
		"unknown reason and long message": {
			report: mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{odd}}, want: failing("x/m#p/" + strings.Repeat("é", 128))[0].Errors,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "errors", tc.want, tc.report.Errors("uid-x"))
		})
	}
	expect.Equal(t, "the cached report is modified", "Odd reason\n", odd.Pods[0].Errors[0].Reason)
}

func TestChangedErrors(t *testing.T) {
	cases := map[string]struct{ before, after, want []string }{
		"none":                 {},
		"new":                  {after: []string{"x/m#p/no"}, want: []string{"ns/m"}},
		"same":                 {before: []string{"x/m#p/no"}, after: []string{"x/m#p/no"}},
		"message":              {before: []string{"x/m#p/no"}, after: []string{"x/m#p/gone"}, want: []string{"ns/m"}},
		"one of two cleared":   {before: []string{"x/m#p/no", "x/n#p/no"}, after: []string{"x/n#p/no"}, want: []string{"ns/m"}},
		"all cleared":          {before: []string{"x/m#p/no", "y/n#p/no"}, want: []string{"ns/m", "ns/n"}},
		"other pod":            {before: []string{"x/m#p/no"}, after: []string{"y/m#p/no"}, want: []string{"ns/m"}},
		"name is not of probe": {after: []string{"x/m/no"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			merge := func(errs []string) []seamarkv1alpha1.PodReport {
				var pods []seamarkv1alpha1.PodReport
				for _, pod := range failing(errs...) {
					if i := slices.IndexFunc(pods, func(p seamarkv1alpha1.PodReport) bool { return p.UID == pod.UID }); i >= 0 {
						pods[i].Errors = append(pods[i].Errors, pod.Errors...)
					} else {
						pods = append(pods, pod)
					}
				}
				return pods
			}
			var got []string
			for _, marker := range mark.ChangedErrors(merge(tc.before), merge(tc.after)) {
				got = append(got, marker.String())
			}
			expect.Equal(t, "changed markers", tc.want, got)
		})
	}
}
