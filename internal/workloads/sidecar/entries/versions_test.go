// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package entries_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
)

// TestGroupVersions checks which version of the sets the path of a group has: it changes only with the rows, because it
// needs a write, and every set that was added is in a cache that has reached it.
func TestGroupVersions(t *testing.T) {
	const a, b = 256, 257
	start := func() []*v1alpha1.SidecarSet {
		var sets []*v1alpha1.SidecarSet
		for i := range b + 1 {
			s := set(fmt.Sprintf("set-%d", i), bound("games"))
			s.CreationTimestamp = metav1.Unix(int64(i), 0)
			s.ResourceVersion = fmt.Sprint(90 + i)
			sets = append(sets, s)
		}
		sets[a].ResourceVersion, sets[b].ResourceVersion = "400", "500"
		return sets
	}
	for name, test := range map[string]struct {
		// stored edits the path that is stored, and change the sets, before the next plan.
		stored func(path string) string
		change func(sets []*v1alpha1.SidecarSet) []*v1alpha1.SidecarSet
		want   string
	}{
		"nothing": {nil, nil, "fail-0.500"},
		"rollout": {nil, func(s []*v1alpha1.SidecarSet) []*v1alpha1.SidecarSet {
			s[a].ResourceVersion = "600"
			return s
		}, "fail-0.500"},
		"other pods": {nil, func(s []*v1alpha1.SidecarSet) []*v1alpha1.SidecarSet {
			s[a].ResourceVersion, s[a].Status.InForce.Selector.MatchLabels["app"] = "600", "other"
			return s
		}, "fail-0.600"},
		"created again": {nil, func(s []*v1alpha1.SidecarSet) []*v1alpha1.SidecarSet {
			s[a].ResourceVersion, s[a].UID = "600", "another"
			return s
		}, "fail-0.600"},
		"undecided": {nil, func(s []*v1alpha1.SidecarSet) []*v1alpha1.SidecarSet {
			s[b].ResourceVersion, s[b].Status.InForce = "600", nil
			return s
		}, "fail-0.500"},
		"the oldest is gone": {nil, func(s []*v1alpha1.SidecarSet) []*v1alpha1.SidecarSet { return append(s[:a], s[b]) }, "fail-0.500"},
		"the newest is gone": {nil, func(s []*v1alpha1.SidecarSet) []*v1alpha1.SidecarSet { return s[:b] }, "fail-0.500"},
		"rows of a process with older sets": {nil, func(s []*v1alpha1.SidecarSet) []*v1alpha1.SidecarSet {
			s[a].ResourceVersion, s[a].Status.InForce.Selector.MatchLabels["app"] = "300", "other"
			return s[:b]
		}, "fail-0.500"},
		"a third one": {nil, func(s []*v1alpha1.SidecarSet) []*v1alpha1.SidecarSet {
			third := set("third", bound("games"))
			third.CreationTimestamp, third.ResourceVersion = metav1.Unix(999, 0), "1000"
			return append(s, third)
		}, "fail-0.1000"},
		"versions that are no numbers": {nil, func(s []*v1alpha1.SidecarSet) []*v1alpha1.SidecarSet {
			s[a].ResourceVersion, s[b].ResourceVersion, s[b].UID = "X", "Y", "another"
			return s
		}, "fail-0.500"},
		"stored, no number":            {func(string) string { return "/inject/group/fail-0.x" }, nil, "fail-0"},
		"stored without a version":     {func(string) string { return "/inject/group/fail-0" }, nil, "fail-0"},
		"restored, of another cluster": {func(string) string { return "/inject/group/fail-0.9000" }, nil, "fail-0.500"},
	} {
		t.Run(name, func(t *testing.T) {
			sets := start()
			plan := server().Plan(sets, entries.Lists{})
			path := pathOfGroup(t, plan)
			if test.stored != nil {
				*path = test.stored(*path)
			}
			if test.change != nil {
				sets = test.change(sets)
			}
			stored := server()
			for i := range stored.StoredVersions {
				stored.StoredVersions[i] = "2000"
			}
			next := stored.Plan(sets, plan.Lists)
			got, inGroup := strings.CutPrefix(*pathOfGroup(t, next), "/inject/group/")
			if !inGroup || got != test.want || len(validation.IsDNS1123Subdomain(got)) > 0 {
				t.Errorf("path %s, want %s", got, test.want)
			}
			if _, version, _ := strings.Cut(test.want, "."); entries.GroupVersion(got) != version {
				t.Errorf("version %s, want %s", entries.GroupVersion(got), version)
			}
			if again := pathOfGroup(t, stored.Plan(sets, next.Lists)); !strings.HasSuffix(*again, "/"+got) {
				t.Errorf("the path changes again, to %s", *again)
			}
		})
	}
}

// pathOfGroup returns the path of the only group.
func pathOfGroup(t *testing.T, plan entries.Plan) *string {
	t.Helper()
	for i := range plan.Lists {
		for j := range plan.Lists[i] {
			if entry := &plan.Lists[i][j]; strings.HasPrefix(entry.Name, "fail-") {
				return entry.ClientConfig.Service.Path
			}
		}
	}
	t.Fatal("there is no group")
	return nil
}
