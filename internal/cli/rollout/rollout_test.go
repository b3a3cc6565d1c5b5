// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// TestObjects runs restart, whose errors about arguments are those of all commands, in an empty cluster.
func TestObjects(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
		want string
		// kubectl are the arguments that are passed to kubectl.
		kubectl string
	}{
		"kind and name":            {args: []string{"cloneset/a"}, code: exit.Failed, want: "cloneset.apps.kruise.io/a not found in namespace games"},
		"a short name":             {args: []string{"asts", "a"}, code: exit.Failed, want: "statefulset.apps.kruise.io/a not found"},
		"two objects":              {args: []string{"cloneset", "a", "b"}, code: exit.Failed, want: "cloneset.apps.kruise.io/b not found"},
		"nothing":                  {code: exit.Usage, want: "an object is required: KIND/NAME, KIND NAME, KIND -l LABELS, or -f FILE"},
		"no name":                  {args: []string{"cloneset"}, code: exit.Usage, want: "a name is required: cloneset/NAME, or cloneset -l LABELS"},
		"an empty name":            {args: []string{"cloneset/"}, code: exit.Usage, want: `"cloneset/" is invalid: must be KIND/NAME`},
		"a kind after a name":      {args: []string{"cloneset/a", "b"}, code: exit.Usage, want: `"b" is invalid: must be KIND/NAME`},
		"a name after a kind":      {args: []string{"cloneset", "a/b"}, code: exit.Usage, want: `"a/b" is invalid: must be the name of a cloneset`},
		"labels":                   {args: []string{"cloneset", "-l", "app=a"}, code: exit.Failed, want: "no clonesets with the labels app=a in"},
		"labels and a file":        {args: []string{"-f", "x.yaml", "-l", "a=b"}, code: exit.Usage, want: `--selector: "a=b" is invalid`},
		"two kinds":                {args: []string{"cloneset,statefulset", "-l", "a=b"}, code: exit.Usage, want: "must be one kind"},
		"a kind without rollouts":  {args: []string{"podprobemarkers.apps.kruise.io/a"}, code: exit.Usage, want: "kind: "},
		"labels and a name":        {args: []string{"cloneset/a", "-l", "app=a"}, code: exit.Usage, want: `--selector: "app=a" is invalid`},
		"wrong labels":             {args: []string{"cloneset", "-l", "a in"}, code: exit.Usage, want: `--selector: "a in" is invalid`},
		"a file that is missing":   {args: []string{"-f", "missing.yaml"}, code: exit.Usage, want: "missing.yaml"},
		"a file and a name":        {args: []string{"cloneset/a", "-f", "missing.yaml"}, code: exit.Usage, want: "--filename: must not be used with"},
		"another kind":             {args: []string{"deployment/a", "-l", "x=y"}, code: exit.Usage, want: "--selector"},
		"Kubernetes' own kind":     {args: []string{"statefulsets.apps/a"}, kubectl: "rollout restart -- statefulsets.apps/a"},
		"objects of both":          {args: []string{"cloneset/a", "deployment/b"}, code: exit.Usage, want: `"deployment/b" is invalid: must be of`},
		"another kind with flags":  {args: []string{"deployment", "-l", "x=y"}, kubectl: "rollout restart --selector=x=y -- deployment"},
		"a kind without a rollout": {args: []string{"broadcastjob/a"}, code: exit.Failed, want: "broadcastjob.apps.kruise.io/a not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			api := fakeapi.Client(t).Build()
			passed := ""
			o := &options{
				IOStreams: streams, cluster: cluster.NewFlags(streams, "test"), now: time.Now,
				connect: func() (cluster.Connection, error) { return cluster.Connection{Client: api, Namespace: "games"}, nil },
				kubectl: func(_ context.Context, args []string) error {
					passed = strings.Join(args, " ")
					return nil
				},
			}
			command := newRestart(o)
			command.SetArgs(test.args)
			command.SetOut(out)
			command.SetErr(errOut)
			err := command.ExecuteContext(t.Context())
			expect.Equal(t, "exit code", test.code, exit.Code(err))
			expect.Equal(t, "arguments of kubectl", test.kubectl, passed)
			if err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want %q", err, test.want)
			}
		})
	}
}

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
