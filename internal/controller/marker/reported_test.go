// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// errorReports returns pods with errors, each written pod/marker#probe/message.
func errorReports(errs ...string) []seamarkv1alpha1.PodReport {
	var pods []seamarkv1alpha1.PodReport
	for _, e := range errs {
		parts := strings.Split(e, "/")
		pods = append(pods, seamarkv1alpha1.PodReport{
			Name: parts[0], Namespace: "ns", UID: "uid-" + parts[0],
			Errors: []v1alpha1.ContainerProbeError{{Name: parts[1], Reason: v1alpha1.ProbeCannotRun, Message: parts[2]}},
		})
	}
	return pods
}

// errorStatus returns a NodePodProbe of the node that has the errors in its status.
func errorStatus(node string, probeReports bool, errs ...string) *v1alpha1.NodePodProbe {
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}}
	npp.Status.ProbeReports = probeReports
	for _, pod := range errorReports(errs...) {
		npp.Status.PodProbeStatuses = append(npp.Status.PodProbeStatuses, v1alpha1.PodProbeStatus{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ProbeErrors: pod.Errors,
		})
	}
	return npp
}

func TestReportedInStatus(t *testing.T) {
	r := newReported()
	steps := []struct {
		name    string
		update  func() []types.NamespacedName
		changed []string
		message string
	}{
		{"ProbeReport", func() []types.NamespacedName { return r.setSlice("a", "a.0", errorReports("x/m#p/slice")) }, []string{"m"}, "slice"},
		{"copy in the status", func() []types.NamespacedName { return r.setStatus(errorStatus("a", true, "x/m#p/copy")) }, nil, "slice"},
		{"rollback", func() []types.NamespacedName { return r.setStatus(errorStatus("a", false, "x/m#p/status")) }, []string{"m"}, "status"},
		{"ProbeReport without effect", func() []types.NamespacedName { return r.setSlice("a", "a.0", errorReports("x/m#p/late")) }, nil, "status"},
		{"upgrade", func() []types.NamespacedName { return r.setStatus(errorStatus("a", true)) }, []string{"m"}, "late"},
		{"second entry of the pod", func() []types.NamespacedName { return r.setSlice("a", "a.1", errorReports("x/m#p/second")) }, nil, "late"},
		{"first entry is removed", func() []types.NamespacedName { return r.setSlice("a", "a.0", nil) }, []string{"m"}, "second"},
	}
	for _, step := range steps {
		var changed []string
		for _, marker := range step.update() {
			changed = append(changed, marker.Name)
		}
		if diff := cmp.Diff(step.changed, changed); diff != "" {
			t.Errorf("%s: changed markers (-want +got):\n%s", step.name, diff)
		}
		errs := r.of(types.NamespacedName{Namespace: "ns", Name: "m"})["uid-x"]
		if len(errs) != 1 || errs[0].message != step.message {
			t.Errorf("%s: errors %v, want one with message %q", step.name, errs, step.message)
		}
	}
	r.setSlice("a", "a.1", nil)
	r.setStatus(&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if len(r.nodes)+len(r.markers) > 0 {
		t.Errorf("%d nodes and %d markers left without errors, want none", len(r.nodes), len(r.markers))
	}
}

func TestReported(t *testing.T) {
	type update struct {
		node    string
		errs    []string
		changed []string
	}
	cases := map[string]struct {
		updates []update
		// want are the pods with errors of marker m at the end.
		want []types.UID
	}{
		"no errors":            {updates: []update{{node: "a"}}},
		"error":                {updates: []update{{"a", []string{"x/m#p/no"}, []string{"m"}}}, want: []types.UID{"uid-x"}},
		"same error again":     {updates: []update{{"a", []string{"x/m#p/no"}, []string{"m"}}, {"a", []string{"x/m#p/no"}, nil}}, want: []types.UID{"uid-x"}},
		"different message":    {updates: []update{{"a", []string{"x/m#p/no"}, []string{"m"}}, {"a", []string{"x/m#p/gone"}, []string{"m"}}}, want: []types.UID{"uid-x"}},
		"cleared":              {updates: []update{{"a", []string{"x/m#p/no", "x/n#p/no"}, []string{"m", "n"}}, {"a", []string{"x/n#p/no"}, []string{"m"}}}},
		"cleared on one node":  {updates: []update{{"a", []string{"x/m#p/no"}, []string{"m"}}, {"b", []string{"y/m#p/no"}, []string{"m"}}, {"a", nil, []string{"m"}}}, want: []types.UID{"uid-y"}},
		"name is not of probe": {updates: []update{{node: "a", errs: []string{"x/m/no"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newReported()
			for i, u := range tc.updates {
				var changed []string
				for _, marker := range r.setSlice(u.node, u.node+".0", errorReports(u.errs...)) {
					changed = append(changed, marker.Name)
				}
				slices.Sort(changed)
				if diff := cmp.Diff(u.changed, changed); diff != "" {
					t.Errorf("markers changed by update %d (-want +got):\n%s", i, diff)
				}
			}
			var got []types.UID
			for uid := range r.of(types.NamespacedName{Namespace: "ns", Name: "m"}) {
				got = append(got, uid)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pods with errors (-want +got):\n%s", diff)
			}
			for _, u := range tc.updates {
				r.setSlice(u.node, u.node+".0", nil)
			}
			if len(r.nodes)+len(r.markers) > 0 {
				t.Errorf("%d nodes and %d markers left without errors, want none", len(r.nodes), len(r.markers))
			}
		})
	}
}
