// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// errorReport returns a report with errors, each written pod/marker#probe/message.
func errorReport(errs ...string) *v1alpha1.NodePodProbeStatus {
	status := &v1alpha1.NodePodProbeStatus{}
	for _, e := range errs {
		parts := strings.Split(e, "/")
		status.PodProbeStatuses = append(status.PodProbeStatuses, v1alpha1.PodProbeStatus{
			Name: parts[0], Namespace: "ns", UID: "uid-" + parts[0],
			ProbeErrors: []v1alpha1.ContainerProbeError{{Name: parts[1], Reason: v1alpha1.ProbeCannotRun, Message: parts[2]}},
		})
	}
	return status
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
				for _, marker := range r.set(u.node, errorReport(u.errs...)) {
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
				r.set(u.node, errorReport())
			}
			if len(r.nodes)+len(r.markers) > 0 {
				t.Errorf("%d nodes and %d markers left without errors, want none", len(r.nodes), len(r.markers))
			}
		})
	}
}
