// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/internal/workloads/revision"
	podtemplate "github.com/seamark-dev/seamark/internal/workloads/template"
	"github.com/seamark-dev/seamark/test/expect"
)

func template(image string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func owner(t *corev1.PodTemplateSpec) revision.Owner {
	return revision.Owner{
		Object: &metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "set", Annotations: map[string]string{
			"kubernetes.io/change-cause":                       "v2",
			"kubectl.kubernetes.io/last-applied-configuration": "{}",
		}},
		Kind:     schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"},
		Template: t,
	}
}

// history returns the revisions of templates that were the set's one after another.
func history(t *testing.T, templates ...*corev1.PodTemplateSpec) []*appsv1.ControllerRevision {
	t.Helper()
	var revisions []*appsv1.ControllerRevision
	for _, template := range templates {
		revisions = plan(t, owner(template), revisions, 100, nil).All
	}
	return revisions
}

func plan(
	t *testing.T, o revision.Owner, revisions []*appsv1.ControllerRevision, limit int, inUse map[string]bool,
) revision.Result {
	t.Helper()
	result, err := revision.Plan(o, revisions, limit, inUse)
	expect.NoError(t, err)
	return result
}

func TestNewRevisionIsComplete(t *testing.T) {
	result := plan(t, owner(template("a:1")), nil, 10, nil)
	got := result.Create
	if got == nil || got != result.Update || got != result.Current {
		t.Fatalf("Create, Update and Current differ: %v", result)
	}
	wanted := `{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"web"}},` +
		`"spec":{"containers":[{"image":"a:1","name":"main","resources":{}}]}}}}`
	expect.Equal(t, "Data", wanted, string(got.Data.Raw))
	hash := revision.Hash(got.Name)
	yes := true
	meta := metav1.ObjectMeta{
		Namespace: "ns", Name: "web-" + hash,
		Labels:      map[string]string{"app": "web", "controller.kubernetes.io/hash": hash},
		Annotations: map[string]string{"kubernetes.io/change-cause": "v2"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web", UID: "set",
			Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}
	expect.Equal(t, "metadata", meta, got.ObjectMeta)
	if got.Revision != 1 || strings.Contains(hash, "-") {
		t.Errorf("revision %d with hash %q", got.Revision, hash)
	}
}

func TestPlan(t *testing.T) {
	a, b, c := template("a:1"), template("b:1"), template("c:1")
	abc := history(t, a, b, c)
	orphan := func(r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
		r = r.DeepCopy()
		r.OwnerReferences = nil
		return r
	}
	foreign := func(r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
		r = r.DeepCopy()
		r.OwnerReferences[0].UID = "other"
		return r
	}
	other := func(r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
		r = r.DeepCopy()
		r.Data = runtime.RawExtension{Raw: []byte(`{"spec":{"template":{}}}`)}
		return r
	}
	// elsewhere names the set of ns as its controller.
	elsewhere := func(r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
		r = r.DeepCopy()
		r.Namespace, r.Name, r.Revision = "hostile", "web-hostile", 9
		return r
	}
	kin := func(r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
		r = r.DeepCopy()
		r.Name, r.Revision, r.OwnerReferences[0].APIVersion = "web-kin", 9, "example.com/v1"
		return r
	}
	type want struct {
		update                  string
		created                 bool
		updated, deleted        []string
		number                  int64
		collisions, revisionsIn int
	}
	for name, test := range map[string]struct {
		template  *corev1.PodTemplateSpec
		revisions []*appsv1.ControllerRevision
		current   string
		limit     int
		inUse     []string
		want      want
	}{
		"nothing changes":       {c, abc, "", 10, nil, want{abc[2].Name, false, nil, nil, 3, 0, 3}},
		"order does not matter": {c, []*appsv1.ControllerRevision{abc[2], abc[0], abc[1]}, "", 10, nil, want{abc[2].Name, false, nil, nil, 3, 0, 3}},
		"a rollback gives the old revision the highest number": {
			a, abc, "", 10, nil, want{abc[0].Name, false, []string{abc[0].Name}, nil, 4, 0, 3},
		},
		"revisions of another namespace and of another group": {
			c, []*appsv1.ControllerRevision{abc[0], elsewhere(abc[2]), kin(abc[2])}, "", 10, nil,
			want{"", true, nil, nil, 2, 0, 2},
		},
		"orphans are adopted": {
			c, []*appsv1.ControllerRevision{orphan(abc[0]), orphan(abc[2])}, "", 10, nil,
			want{abc[2].Name, false, []string{abc[0].Name, abc[2].Name}, nil, 3, 0, 2},
		},
		"an orphan that is rolled back to is written once": {
			a, []*appsv1.ControllerRevision{orphan(abc[0]), abc[2]}, "", 10, nil,
			want{abc[0].Name, false, []string{abc[0].Name}, nil, 4, 0, 2},
		},
		"a revision of another set with the name": {
			a, []*appsv1.ControllerRevision{foreign(abc[0])}, "", 10, nil, want{"", true, nil, nil, 1, 1, 1},
		},
		"other content with the name": {
			a, []*appsv1.ControllerRevision{other(abc[0])}, "", 10, nil, want{"", true, nil, nil, 2, 1, 2},
		},
		"limit 1":                      {c, abc, "", 1, nil, want{abc[2].Name, false, nil, []string{abc[0].Name}, 3, 0, 2}},
		"limit 0":                      {c, abc, "", 0, nil, want{abc[2].Name, false, nil, []string{abc[0].Name, abc[1].Name}, 3, 0, 1}},
		"negative limit":               {c, abc, "", -1, nil, want{abc[2].Name, false, nil, []string{abc[0].Name, abc[1].Name}, 3, 0, 1}},
		"the current revision is kept": {c, abc, abc[0].Name, 0, nil, want{abc[2].Name, false, nil, []string{abc[1].Name}, 3, 0, 2}},
		"revisions of pods are kept":   {c, abc, "", 0, []string{abc[0].Name}, want{abc[2].Name, false, nil, []string{abc[1].Name}, 3, 0, 2}},
		"pods with the hash as label":  {c, abc, "", 0, []string{revision.Hash(abc[1].Name)}, want{abc[2].Name, false, nil, []string{abc[0].Name}, 3, 0, 2}},
		"used revisions do not count":  {c, abc, "", 1, []string{abc[0].Name}, want{abc[2].Name, false, nil, nil, 3, 0, 3}},
		"deleted orphans are not adopted": {
			a, []*appsv1.ControllerRevision{orphan(abc[0]), orphan(abc[1]), abc[2]}, "", 0, nil,
			want{abc[0].Name, false, []string{abc[0].Name}, []string{abc[1].Name, abc[2].Name}, 4, 0, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := owner(test.template)
			o.CurrentRevision, o.Now = test.current, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			before := fmt.Sprint(test.revisions)
			inUse := map[string]bool{}
			for _, n := range test.inUse {
				inUse[n] = true
			}
			result := plan(t, o, test.revisions, test.limit, inUse)
			got := want{
				result.Update.Name, result.Create != nil, names(result.UpdateRevisions), names(result.Delete),
				result.Update.Revision, int(result.CollisionCount), len(result.All),
			}
			slices.Sort(test.want.deleted)
			slices.Sort(test.want.updated)
			if test.want.created {
				if got.update == abc[0].Name {
					t.Errorf("Update has the name that is taken: %s", got.update)
				}
				got.update = ""
			}
			expect.Equal(t, "plan", test.want, got, cmp.AllowUnexported(want{}))
			if again := revision.Begun(result.Update).Equal(o.Now); again != (test.want.number > 3) {
				t.Errorf("the update began at %s, now is %s", revision.Begun(result.Update), o.Now)
			}
			if fmt.Sprint(test.revisions) != before {
				t.Error("the input is changed")
			}
			if test.current != "" && result.Current.Name != test.current {
				t.Errorf("Current is %s, want %s", result.Current.Name, test.current)
			}
		})
	}
}

func names(revisions []*appsv1.ControllerRevision) []string {
	var all []string
	for _, r := range revisions {
		all = append(all, r.Name)
	}
	slices.Sort(all)
	return all
}

// OpenKruise's webhook stores templates with defaults. A client that writes its whole template removes
// them, and writes them again if it spells them out.
func TestDefaultsMakeNoRevision(t *testing.T) {
	short := template("a:1")
	whole := podtemplate.WithDefaults(short)
	always := whole.DeepCopy()
	always.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	for name, test := range map[string]struct {
		first, second *corev1.PodTemplateSpec
		// other is a pull policy that makes a revision.
		other corev1.PullPolicy
	}{
		"a client removes the defaults": {whole, short, corev1.PullNever},
		"a client removes OpenKruise's": {always, short, corev1.PullIfNotPresent},
		"a client adds the defaults":    {short, whole, corev1.PullAlways},
	} {
		t.Run(name, func(t *testing.T) {
			o := owner(test.first)
			o.Encoder = &revision.Encoder{}
			revisions := plan(t, o, nil, 10, nil).All
			for _, encoder := range map[string]*revision.Encoder{"same process": o.Encoder, "other process": {}, "none": nil} {
				again := owner(test.second)
				again.Encoder = encoder
				for range 2 { // The second time, the encoder remembers the revision.
					result := plan(t, again, revisions, 10, nil)
					if result.Create != nil || len(result.UpdateRevisions) > 0 || result.Update != revisions[0] {
						t.Errorf("got %v, want the revision unchanged", result)
					}
				}
				image, policy := template("a:2"), template("a:1")
				policy.Spec.Containers[0].ImagePullPolicy = test.other
				for what, changed := range map[string]*corev1.PodTemplateSpec{"image": image, "pull policy": policy} {
					again.Template = changed
					if result := plan(t, again, revisions, 10, nil); result.Create == nil {
						t.Errorf("a new %s makes no revision", what)
					}
				}
			}
		})
	}
}

func TestEqualIgnoresNothingThatMatters(t *testing.T) {
	first := history(t, template("a:1"))[0]
	for name, test := range map[string]struct {
		change func(*corev1.PodTemplateSpec)
		equal  bool
	}{
		"nothing":            {func(*corev1.PodTemplateSpec) {}, true},
		"empty list":         {func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = []corev1.Volume{} }, true},
		"image":              {func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "a:2" }, false},
		"label":              {func(p *corev1.PodTemplateSpec) { p.Labels["x"] = "" }, false},
		"annotation":         {func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"a": ""} }, false},
		"default of the pod": {func(p *corev1.PodTemplateSpec) { p.Spec.SecurityContext = &corev1.PodSecurityContext{} }, true},
		"default of a container": {func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
		}, true},
		"other value than the default": {func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		}, false},
		"empty struct":   {func(p *corev1.PodTemplateSpec) { p.Spec.Affinity = &corev1.Affinity{} }, false},
		"zero pointer":   {func(p *corev1.PodTemplateSpec) { p.Spec.TerminationGracePeriodSeconds = new(int64) }, false},
		"empty variable": {func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}} }, false},
		"order of containers": {func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers = append([]corev1.Container{{Name: "x"}}, p.Spec.Containers...)
		}, false},
		"resources": {func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := template("a:1")
			test.change(changed)
			expect.Equal(t, "Equal", test.equal, revision.Equal(first, history(t, changed)[0].Data.Raw))
		})
	}
	one, thousand := template("a:1"), template("a:1")
	one.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
	thousand.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1000m")}
	if !revision.Equal(history(t, one)[0], history(t, thousand)[0].Data.Raw) {
		t.Error("1 and 1000m are not equal")
	}
}

func TestTemplate(t *testing.T) {
	wanted := template("a:1")
	wanted.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"memory": resource.MustParse("1Gi")}
	got, err := revision.Template(history(t, wanted)[0])
	expect.NoError(t, err)
	expect.Equal(t, "template", wanted, got)
	for name, data := range map[string]string{
		"empty": "", "not JSON": "{", "no template": `{"spec":{}}`, "wrong type": `{"spec":{"template":[]}}`,
	} {
		rev := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1"}}
		rev.Data.Raw = []byte(data)
		if _, err := revision.Template(rev); err == nil || !strings.Contains(err.Error(), "ns/web-1") {
			t.Errorf("%s: error %v, want one with the name", name, err)
		}
	}
}

func TestIs(t *testing.T) {
	for name, test := range map[string]struct {
		label, name string
		want        bool
	}{
		"name":           {"web-abc", "web-abc", true},
		"hash":           {"abc", "web-abc", true},
		"other":          {"web-abd", "web-abc", false},
		"no label":       {"", "web-abc", false},
		"no hash":        {"", "web-", false},
		"dash in name":   {"my-web-abc", "my-web-abc", true},
		"other set":      {"b-abc", "a-abc", false},
		"suffix of hash": {"bc", "web-abc", false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			pod.Labels = map[string]string{"controller-revision-hash": test.label}
			expect.Equal(t, "Is", test.want, revision.Is(pod, test.name))
		})
	}
}

// FuzzPlan changes the template again and again. Each byte is a template, or a write that is lost.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 1, 3}, uint8(1))
	f.Add([]byte{0, 1, 0, 1, 0, 1, 9, 2}, uint8(0))
	f.Fuzz(func(t *testing.T, changes []byte, limit uint8) {
		var stored []*appsv1.ControllerRevision
		pods := map[string]bool{}
		var collisions int32
		for i, change := range changes {
			wanted := template(fmt.Sprintf("a:%d", change%8))
			o := owner(wanted)
			o.CollisionCount = collisions
			result := plan(t, o, stored, int(limit), pods)
			got, err := revision.Template(result.Update)
			if err != nil || got.Spec.Containers[0].Image != wanted.Spec.Containers[0].Image {
				t.Fatalf("step %d: the update revision has another template (%v)", i, err)
			}
			for _, r := range result.Delete {
				if pods[r.Name] {
					t.Fatalf("step %d: the revision %s of a pod is deleted", i, r.Name)
				}
			}
			if change >= 128 { // A crash before the writes: the next step has the same input.
				if again := plan(t, o, stored, int(limit), pods); cmp.Diff(again, result) != "" {
					t.Fatalf("step %d: the plan is not deterministic", i)
				}
				continue
			}
			stored, collisions = result.All, result.CollisionCount
			if change%3 == 0 {
				pods = map[string]bool{result.Update.Name: true}
			}
			o.CollisionCount = collisions
			rest := plan(t, o, stored, int(limit), pods)
			if rest.Create != nil || len(rest.UpdateRevisions) > 0 || change%3 != 0 && len(rest.Delete) > 0 {
				t.Fatalf("step %d: writes after convergence: %v", i, rest)
			}
			if all := names(stored); len(slices.Compact(all)) != len(stored) || len(stored) > int(limit)+2 {
				t.Fatalf("step %d: revisions %v with limit %d", i, all, limit)
			}
		}
	})
}
