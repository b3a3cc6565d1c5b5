// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestCopiesOfRevisions copies only what OpenKruise has recorded of a set in its own namespace.
func TestCopiesOfRevisions(t *testing.T) {
	set := func(image, uid string) *v1alpha1.SidecarSet {
		return &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: types.UID(uid)}, Spec: v1alpha1.SidecarSetSpec{
			Containers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "logs", Image: image}}},
		}}
	}
	revision := func(image, uid, namespace string, number int64) *appsv1.ControllerRevision {
		rev, err := history.New(set(image, uid), namespace, number, 0)
		expect.NoError(t, err)
		return rev
	}
	const from, to = "kruise-system", "seamark-system"
	one, two := revision("logs:1", "1", from, 1), revision("logs:2", "1", from, 2)
	two.OwnerReferences = append(two.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "other", UID: "2"})
	hostile, earlier := revision("evil:1", "1", "hostile", 9), revision("logs:0", "0", from, 1)
	recorded := []*appsv1.ControllerRevision{hostile, two, earlier, one}
	for name, test := range map[string]struct {
		existing []*appsv1.ControllerRevision
		copies   []string
		present  int
		err      string
	}{
		"all":             {copies: []string{one.Name, two.Name}},
		"once":            {existing: []*appsv1.ControllerRevision{revision("logs:1", "1", to, 7)}, copies: []string{two.Name}, present: 1},
		"another's name":  {existing: []*appsv1.ControllerRevision{revision("logs:1", "0", to, 1)}, err: "exists, and is not that of SidecarSet logs"},
		"not in that one": {existing: []*appsv1.ControllerRevision{hostile}, copies: []string{one.Name, two.Name}},
	} {
		copies, present, err := migration.Copies([]*v1alpha1.SidecarSet{set("logs:2", "1")}, from, to, recorded, test.existing)
		if test.err != "" {
			expect.ErrorWith(t, name, test.err, err)
			continue
		}
		var got []string
		for _, each := range copies {
			got = append(got, each.Name)
			if each.Namespace != to || len(each.OwnerReferences) != 1 || !history.Key(set("", "1"), to).Controls(each) {
				t.Errorf("%s: copy %+v", name, each.ObjectMeta)
			}
		}
		if err != nil || !slices.Equal(got, test.copies) || present != test.present {
			t.Errorf("%s: copies %v, present %d, error %v", name, got, present, err)
		}
		if found := history.Of(set("", "1"), to, copies); len(found) != len(copies) {
			t.Errorf("%s: %d of %d copies are those of the set", name, len(found), len(copies))
		}
	}
}
