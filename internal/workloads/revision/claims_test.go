// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/test/expect"
)

// templatesOf returns templates with the names, which are separated by spaces.
func templatesOf(names string) (all []corev1.PersistentVolumeClaim) {
	for _, name := range strings.Fields(names) {
		all = append(all, corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("of " + name)},
		})
	}
	return all
}

// TestClaims records templates in a revision, and then removes some from the set.
func TestClaims(t *testing.T) {
	for name, test := range map[string]struct{ recorded, again, set, want string }{
		"none":                     {},
		"the same":                 {recorded: "a b", set: "a b", want: "a b"},
		"one is removed":           {recorded: "a b", set: "b", want: "b a"},
		"all are removed":          {recorded: "a b", want: "a b"},
		"one is added":             {recorded: "a", set: "a b", want: "a b"},
		"not recorded":             {set: "a", want: "a"},
		"the revision is restored": {recorded: "a b", again: "b c", set: "c", want: "c b a"},
		"all were removed before":  {recorded: "a", again: "", set: "c", want: "c a"},
	} {
		t.Run(name, func(t *testing.T) {
			rev := &appsv1.ControllerRevision{}
			for _, templates := range []string{test.recorded, test.again} {
				expect.NoError(t, revision.RecordClaims(rev, templatesOf(templates)))
			}
			expect.Equal(t, "templates", templatesOf(test.want), revision.Claims(rev, templatesOf(test.set)))
			older := &appsv1.ControllerRevision{}
			all := revision.AllClaims([]*appsv1.ControllerRevision{older, rev, older, rev}, templatesOf(test.set))
			expect.Equal(t, "templates of all revisions", templatesOf(test.want), all)
		})
	}
}

func TestRecordsOfClaimsThatDoNotCount(t *testing.T) {
	large := templatesOf("a")
	large[0].Annotations = map[string]string{"large": strings.Repeat("x", 64<<10)}
	rev := &appsv1.ControllerRevision{}
	if err := revision.RecordClaims(rev, large); err != nil || len(rev.Annotations) > 0 {
		t.Errorf("error %v, %d annotations for a large record, want none", err, len(rev.Annotations))
	}
	for _, text := range []string{"x", "{}", `[{"metadata":{}}]`, "null"} {
		rev.Annotations = map[string]string{pub.RevisionClaimTemplatesKey: text}
		expect.Equal(t, "templates with the record "+text, templatesOf("a"), revision.Claims(rev, templatesOf("a")))
	}
}
