// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// hashed returns claims of which each next one requests twice as much as the one before, from 1Gi.
func hashed(names ...string) []hashedClaim {
	var claims []hashedClaim
	for i, name := range names {
		size := resource.MustParse("1Gi")
		size.Mul(1 << i)
		limit := size.DeepCopy()
		limit.Mul(2)
		claim := hashedClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: size}, Limits: corev1.ResourceList{corev1.ResourceStorage: limit},
			},
		}}
		claim.Metadata.Name = name
		claims = append(claims, claim)
	}
	return claims
}

// TestHashOfClaimsIsThatOfOpenKruise has the hashes that OpenKruise 1.9 computes for these claims.
func TestHashOfClaimsIsThatOfOpenKruise(t *testing.T) {
	two := hashed("pvc-1", "pvc-2")
	for want, claims := range map[string][]hashedClaim{
		"1129974074": hashed("pvc-1"), "510584408": {two[1], two[0]},
	} {
		if got, err := hashClaims(claims); got != want || err != nil {
			t.Errorf("hash %s, %v of %d claims, want %s", got, err, len(claims), want)
		}
	}
}

func TestHashOfClaimTemplates(t *testing.T) {
	plain := corev1.PersistentVolumeClaim{Spec: hashed("data")[0].Spec}
	plain.Name = "data"
	hash := func(change func(*corev1.PersistentVolumeClaim)) string {
		template := plain.DeepCopy()
		change(template)
		got, err := claimsHash([]corev1.PersistentVolumeClaim{*template})
		expect.NoError(t, err)
		return got
	}
	want := hash(func(*corev1.PersistentVolumeClaim) {})
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		same   bool
	}{
		"default mode": {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem) }, true},
		"status":       {func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }, true},
		"labels":       {func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} }, true},
		"other mode":   {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, false},
		"class":        {func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("fast") }, false},
		"name":         {func(c *corev1.PersistentVolumeClaim) { c.Name = "other" }, false},
	} {
		if got := hash(test.change); (got == want) != test.same {
			t.Errorf("%s: hash %s and %s, want the same: %t", name, got, want, test.same)
		}
	}
	if got, err := claimsHash(nil); got != "" || err != nil {
		t.Errorf("hash %q, %v of no templates, want an empty one", got, err)
	}
}

func TestRevisionsRecordTheClaims(t *testing.T) {
	recorded := func(rev *appsv1.ControllerRevision) string {
		if rev == nil {
			return "no revision"
		}
		return rev.Annotations[v1alpha1.CloneSetClaimTemplatesHashKey]
	}
	f := newFixture(t, 1, withClaims)
	want, err := claimsHash(f.set.Spec.VolumeClaimTemplates)
	expect.NoError(t, err)
	if out := f.plan(t); len(out.UpdateRevisions) > 0 {
		t.Errorf("revisions %v are updated, want none: the template is the same", out.UpdateRevisions)
	}
	f.set.Spec.Template.Spec.Containers[0].Image = "app:3"
	if out := f.plan(t); recorded(out.CreateRevision) != want {
		t.Errorf("a new revision records %q, want %q", recorded(out.CreateRevision), want)
	}
	f.set.Spec.Template.Spec.Containers[0].Image = "app:1"
	if out := f.plan(t); len(out.UpdateRevisions) != 1 || recorded(out.UpdateRevisions[0]) != want || recorded(f.old) != "" {
		t.Errorf("revisions %v are updated, want the old one with the hash %s, and no change of the input", out.UpdateRevisions, want)
	}
}

func TestChangedClaimsRecreatePodsWithTheGate(t *testing.T) {
	const key = v1alpha1.CloneSetClaimTemplatesHashKey
	for name, test := range map[string]struct {
		off      bool
		change   func(*v1alpha1.CloneSet)
		old, new map[string]string
		want     []string
	}{
		"changed":               {change: inPlace, old: map[string]string{key: "1"}, new: map[string]string{key: "2"}, want: []string{"+new", "-a Update"}},
		"added":                 {change: inPlace, old: map[string]string{key: ""}, new: map[string]string{key: "2"}, want: []string{"+new", "-a Update"}},
		"the same":              {change: inPlace, old: map[string]string{key: "1"}, new: map[string]string{key: "1"}, want: []string{"~a Updating"}},
		"the old is not known":  {change: inPlace, new: map[string]string{key: "2"}, want: []string{"~a Updating"}},
		"the new is not known":  {change: inPlace, old: map[string]string{key: "1"}, want: []string{"~a Updating"}},
		"InPlaceOnly":           {change: inPlaceOnly, old: map[string]string{key: "1"}, new: map[string]string{key: "2"}, want: []string{"~a Updating"}},
		"changed, without gate": {off: true, change: inPlace, old: map[string]string{key: "1"}, new: map[string]string{key: "2"}, want: []string{"~a Updating"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1, test.change)
			f.set.Spec.UpdateStrategy.MaxUnavailable = number(1)
			f.old.Annotations, f.new.Annotations = test.old, test.new
			f.pod("a old")
			f.recreateForClaims = !test.off
			f.wantSteps(t, test.want...)
		})
	}
}
