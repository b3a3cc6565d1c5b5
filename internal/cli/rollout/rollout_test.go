// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/workloads/setview"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestTemplateChanges(t *testing.T) {
	t.Parallel()
	template := func(image string, env ...corev1.EnvVar) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image, Env: env, Args: []string{"a", "b"}}}}}
	}
	labeled := template("a")
	labeled.Labels = map[string]string{"app.kubernetes.io/name": "x"}
	for name, test := range map[string]struct {
		from, to *corev1.PodTemplateSpec
		want     []string
	}{
		"nothing":  {template("a"), template("a"), nil},
		"an image": {template("a"), template("b"), []string{"spec.containers[main].image: a → b"}},
		"a variable is added": {template("a"), template("a", corev1.EnvVar{Name: "X", Value: "1"}), []string{
			"spec.containers[main].env[X].name: X added", "spec.containers[main].env[X].value: 1 added",
		}},
		"a label is removed": {labeled, template("a"), []string{"metadata.labels.app.kubernetes.io/name removed"}},
		"a container is removed": {template(""), &corev1.PodTemplateSpec{}, []string{
			"spec.containers[main].args[0] removed", "spec.containers[main].args[1] removed", "spec.containers[main].name removed",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect.Equal(t, "changes", test.want, templateChanges(test.from, test.to))
		})
	}
}

func TestSameTemplate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	template := func(change func(*corev1.PodSpec)) *corev1.PodTemplateSpec {
		spec := corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "main", Args: []string{long + "a"}}},
			InitContainers: []corev1.Container{{Name: "a"}, {Name: "b"}},
		}
		change(&spec)
		return &corev1.PodTemplateSpec{Spec: spec}
	}
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec)
		want   bool
	}{
		"the same":                  {func(*corev1.PodSpec) {}, true},
		"the end of a long value":   {func(spec *corev1.PodSpec) { spec.Containers[0].Args[0] = long + "b" }, false},
		"the order of a named list": {func(spec *corev1.PodSpec) { slices.Reverse(spec.InitContainers) }, false},
		"an empty object":           {func(spec *corev1.PodSpec) { spec.Affinity = &corev1.Affinity{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect.Equal(t, "same", test.want, sameTemplate(template(func(*corev1.PodSpec) {}), template(test.change)))
		})
	}
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	template := func(image, name string) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}}}
	}
	pod := func(name, image string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
		}
	}
	revisions := map[string]*corev1.PodTemplateSpec{"old": template("a", "main"), "new": template("b", "main"), "other": template("b", "side")}
	from := func(pod *corev1.Pod) *corev1.PodTemplateSpec { return revisions[pod.Name] }
	for name, test := range map[string]struct {
		set  setview.View
		pods []*corev1.Pod
		want string
	}{
		"no pods":   {want: "no pod changes"},
		"recreated": {setview.View{}, []*corev1.Pod{pod("new", "b"), pod("new", "b")}, "2 pods to recreate"},
		"in place":  {setview.View{InPlace: true}, []*corev1.Pod{pod("new", "b"), pod("old", "a")}, "1 pod to update in place"},
		"not in place": {
			setview.View{InPlace: true}, []*corev1.Pod{pod("other", "b")}, "1 pod to recreate, because container main is not at the same place",
		},
		"both": {
			setview.View{InPlace: true}, []*corev1.Pod{pod("other", "b"), pod("new", "b")},
			"1 pod to update in place, and 1 pod to recreate, because container main is not at the same place",
		},
		"no revision":      {setview.View{InPlace: true}, []*corev1.Pod{pod("unknown", "b")}, "1 pod to recreate"},
		"the same already": {setview.View{}, []*corev1.Pod{pod("old", "a")}, "no pod changes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect.Equal(t, "updates", test.want, updatesTo(&test.set, test.pods, from, revisions["old"]).String())
		})
	}
}
