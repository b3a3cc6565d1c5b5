// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// id returns the instance ID of the number.
func id(n int64) string { return InstanceID("set", n) }

// TestTwoProcessesChooseTheSameNames plans with two caches: that of a process that has lost its lease, and that of its
// successor, which has what the other one has created in part.
func TestTwoProcessesChooseTheSameNames(t *testing.T) {
	for name, test := range map[string]struct {
		replicas                   int32
		oldPods, oldClaims, claims string
		want                       []string
	}{
		"claims of the last pod":           {2, "", "", id(2), []string{id(1), id(2)}},
		"somebody deletes a pod meanwhile": {3, "used1", "used1", "used1, " + id(1) + ", " + id(2), []string{id(1), id(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			old := newFixture(t, test.replicas, withClaims).pod(test.oldPods).claim(test.oldClaims).plan(t)
			next := newFixture(t, test.replicas, withClaims).claim(test.claims).plan(t)
			got := sets.New(created(&old)...)
			for _, each := range test.want {
				if !got.Has("web-" + each) {
					t.Errorf("the old leader creates %v, want %v", sets.List(got), test.want)
				}
			}
			// The pod that somebody deletes is replaced, too.
			if all := got.Insert(created(&next)...); all.Len() != int(test.replicas) {
				t.Errorf("both create %v, want %d pods", sets.List(all), test.replicas)
			}
		})
	}
}

// TestClaimIsUsedAfterTheSerialIsLost checks that a pod that somebody deletes gets its claim again if the status has no
// serial number: the CRD of OpenKruise does not have the field.
func TestClaimIsUsedAfterTheSerialIsLost(t *testing.T) {
	f := newFixture(t, 3, withClaims).pod(id(4) + " serial=4, " + id(6) + " serial=6").claim(id(4) + ", " + id(5) + ", " + id(6))
	out := f.plan(t)
	if diff := cmp.Diff([]string{"web-" + id(5)}, created(&out)); diff != "" || len(out.CreateClaims) > 0 {
		t.Errorf("%d new claims, names (-want +got):\n%s", len(out.CreateClaims), diff)
	}
}

// TestClaimsUnderAQuota deletes pods of a set whose quota permits half of its pods. The claims of all exist, and no other
// ones are created.
func TestClaimsUnderAQuota(t *testing.T) {
	var pods, claims []string
	for n := int64(1); n <= 10; n++ {
		claims = append(claims, id(n))
		if n <= 5 {
			pods = append(pods, fmt.Sprintf("%s serial=%d", id(n), n))
		}
	}
	for serial := int64(5); serial < 10; serial++ {
		pods = pods[1:]
		f := newFixture(t, 10, withClaims, func(set *v1alpha1.CloneSet) { set.Status.PodSerial = serial })
		out := f.pod(strings.Join(pods, ", ")).claim(strings.Join(claims, ", ")).plan(t)
		if len(out.CreateClaims) > 0 {
			t.Fatalf("serial %d: %d new claims", serial, len(out.CreateClaims))
		}
		first := out.Creates[0]
		pods = append(pods, strings.TrimPrefix(first.Name, "web-")+" serial="+first.Annotations[v1alpha1.PodSerialAnnotationKey])
	}
}

// TestHugeSerial checks that what a step costs does not depend on the number in an annotation, which users can write.
func TestHugeSerial(t *testing.T) {
	out := newFixture(t, 2, withClaims).pod(fmt.Sprintf("a serial=%d", int64(math.MaxInt64))).claim("a, used1").plan(t)
	expect.Equal(t, "names", []string{"web-used1"}, created(&out))
}

func TestNamesOfAStepDiffer(t *testing.T) {
	out := newFixture(t, 20000, withClaims, naming(id(2))).claim(id(5001)).plan(t)
	names := created(&out)
	slices.Sort(names)
	if different := len(slices.Compact(slices.Clone(names))); different != len(names) {
		t.Errorf("%d pods have %d names", len(names), different)
	}
}
