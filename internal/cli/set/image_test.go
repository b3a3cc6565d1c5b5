// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package set

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/target"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// TestImage changes images in a cluster with the CloneSets arena and lobby, and the SidecarSet agents.
func TestImage(t *testing.T) {
	t.Parallel()
	const before = "init=init:1 main=main:1 side=side:1"
	for name, test := range map[string]struct {
		args []string
		code int
		want string
		// arena, lobby and agents are their images after the command. Empty is that they have not changed.
		arena, lobby, agents string
	}{
		"one container": {
			args: []string{"cloneset/arena", "main=main:2"}, arena: "init=init:1 main=main:2 side=side:1",
			want: "cloneset.apps.kruise.io/arena image updated\n",
		},
		"containers and an init container": {
			args:  []string{"clone", "arena", "side=s", "init=i"},
			arena: "init=i main=main:1 side=s", want: "cloneset.apps.kruise.io/arena image updated\n",
		},
		"all containers": {args: []string{"cloneset", "arena", "*=x"}, arena: "init=x main=x side=x", want: "arena image updated"},
		"several objects": {
			args: []string{"cloneset/arena", "cloneset/lobby", "main=main:2"}, arena: "init=init:1 main=main:2 side=side:1", lobby: "main=main:2",
			want: "cloneset.apps.kruise.io/arena image updated\ncloneset.apps.kruise.io/lobby image updated\n",
		},
		"labels":        {args: []string{"cloneset", "-l", "app=lobby", "main=main:2"}, lobby: "main=main:2", want: "lobby image updated\n"},
		"all objects":   {args: []string{"cloneset", "--all", "main=x"}, arena: "init=init:1 main=x side=side:1", lobby: "main=x", want: "lobby image"},
		"a SidecarSet":  {args: []string{"sidecarset/agents", "log=log:2"}, agents: "log=log:2", want: "sidecarset.apps.kruise.io/agents image updated\n"},
		"no change":     {args: []string{"cloneset/arena", "main=main:1"}},
		"a digest":      {args: []string{"cloneset/arena", "main=a:1@sha256:b=c"}, arena: "init=init:1 main=a:1@sha256:b=c side=side:1", want: "updated"},
		"the name only": {args: []string{"cloneset/lobby", "main=x", "-o", "name"}, lobby: "main=x", want: "cloneset.apps.kruise.io/lobby\n"},
		"a template": {
			args: []string{"cloneset/lobby", "main=x", "-o", "jsonpath={.spec.template.spec.containers[0].image}"}, lobby: "main=x", want: "x",
		},
		"dry run": {
			args: []string{"cloneset/lobby", "main=x", "--dry-run=client", "-o", "jsonpath={.spec.template.spec.containers[0].image}"}, want: "x",
		},
		"dry run of the server": {
			args: []string{"cloneset/lobby", "main=x", "--dry-run=server"}, want: "cloneset.apps.kruise.io/lobby image updated (server dry run)\n",
		},
		"no such container": {
			args: []string{"cloneset/arena", "main=x", "mian=x"}, code: exit.Failed,
			want: `cloneset.apps.kruise.io/arena: container "mian" not found: its containers are init, main, side`,
		},
		"one object has no such container": {
			args: []string{"cloneset/arena", "cloneset/lobby", "side=x"}, code: exit.Failed, arena: "init=init:1 main=main:1 side=x",
			want: `cloneset.apps.kruise.io/lobby: container "side" not found: its containers are main`,
		},
		"no such object": {args: []string{"cloneset/area", "main=x"}, code: exit.Failed, want: "cloneset.apps.kruise.io/area not found"},
		"a job": {
			args: []string{"broadcastjob/a", "main=x"}, code: exit.Failed, want: "set image supports only CloneSet, StatefulSet, DaemonSet, SidecarSet",
		},
		"another group":     {args: []string{"deployment/a", "main=x", "--dry-run=client"}, want: "kubectl set image --dry-run=client -- deployment/a main=x"},
		"no equals sign":    {args: []string{"cloneset/arena", "main"}, code: exit.Failed, want: `an image is required: "main" is not CONTAINER=IMAGE`},
		"no image":          {args: []string{"cloneset/arena"}, code: exit.Failed, want: "an image is required: CONTAINER=IMAGE"},
		"an empty image":    {args: []string{"cloneset/arena", "main="}, code: exit.Failed, want: `"main=" is invalid: must be CONTAINER=IMAGE`},
		"an image twice":    {args: []string{"cloneset/arena", "main=a", "main=b"}, code: exit.Failed, want: `"main=b" is invalid: the container main has`},
		"all and another":   {args: []string{"cloneset/arena", "*=a", "main=b"}, code: exit.Failed, want: "*=IMAGE is invalid"},
		"a name at the end": {args: []string{"cloneset/arena", "main=a", "cloneset/b"}, code: exit.Failed, want: `"cloneset/b" is invalid: must be`},
		"no object":         {args: []string{"main=a"}, code: exit.Failed, want: "an object is required"},
		"bad dry run":       {args: []string{"cloneset/arena", "main=a", "--dry-run=x"}, code: exit.Failed, want: `--dry-run: "x" is invalid`},
		"bad output":        {args: []string{"cloneset/arena", "main=a", "-o", "x"}, code: exit.Failed, want: "--output: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			output, code := c.run(t, test.args...)
			expect.Equal(t, "exit code", test.code, code)
			if !strings.Contains(output, test.want) || test.want == "" && output != "" {
				t.Errorf("output %q, want %q", output, test.want)
			}
			for set, want := range map[string]string{"arena": test.arena, "lobby": test.lobby, "agents": test.agents} {
				if want == "" {
					want = map[string]string{"arena": before, "lobby": "main=main:1", "agents": "log=log:1"}[set]
				}
				expect.Equal(t, "images of "+set, want, c.images(t, set))
			}
		})
	}
}

// TestImageOfAnotherContainer changes the containers of the set between the read and the patch: no image changes.
func TestImageOfAnotherContainer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.beforePatch = func(ctx context.Context) error {
		var set v1alpha1.CloneSet
		err := c.api.Get(ctx, client.ObjectKey{Namespace: "games", Name: "arena"}, &set)
		containers := set.Spec.Template.Spec.Containers
		containers[0], containers[1] = containers[1], containers[0]
		return errors.Join(err, c.api.Update(ctx, &set))
	}
	output, code := c.run(t, "cloneset/arena", "main=main:2", "--field-manager=ci")
	expect.Equal(t, "field manager", "ci", c.manager)
	expect.Equal(t, "exit code", exit.Failed, code)
	if want := "cloneset.apps.kruise.io/arena has changed since it was read: run the command again"; !strings.Contains(output, want) {
		t.Errorf("output %q, want %q", output, want)
	}
	expect.Equal(t, "images", "init=init:1 side=side:1 main=main:1", c.images(t, "arena"))
}

type fakeCluster struct {
	api         client.WithWatch
	beforePatch func(ctx context.Context) error
	// manager is that of the last patch.
	manager string
}

func newCluster(t *testing.T) *fakeCluster {
	t.Helper()
	container := func(name string) corev1.Container { return corev1.Container{Name: name, Image: name + ":1"} }
	cloneSet := func(name string, init []corev1.Container, containers ...corev1.Container) *v1alpha1.CloneSet {
		return &v1alpha1.CloneSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: name, Labels: map[string]string{"app": name}},
			Spec:       v1alpha1.CloneSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{InitContainers: init, Containers: containers}}},
		}
	}
	c := &fakeCluster{}
	c.api = fakeapi.Client(t,
		cloneSet("arena", []corev1.Container{container("init")}, container("main"), container("side")),
		cloneSet("lobby", nil, container("main")),
		&v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "agents"}, Spec: v1alpha1.SidecarSetSpec{
			Containers: []v1alpha1.SidecarContainer{{Container: container("log")}},
		}},
	).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, api client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			c.manager = (&client.PatchOptions{}).ApplyOptions(options).FieldManager
			if c.beforePatch != nil {
				if err := c.beforePatch(ctx); err != nil {
					return err
				}
			}
			err := api.Patch(ctx, o, patch, options...)
			if err != nil && c.beforePatch != nil { // This is how the API server answers a test that fails.
				return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, o.GetName(), err.Error(), 0, false)
			}
			return err
		},
	}).Build()
	return c
}

// run runs the command, and returns its output and its exit code.
func (c *fakeCluster) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	flags := target.NewFlags(streams, "test", "set", "image")
	flags.Connect = func() (cluster.Connection, error) { return cluster.Connection{Client: c.api, Namespace: "games"}, nil }
	flags.Kubectl = func(_ context.Context, args []string) error {
		_, err := out.WriteString("kubectl " + strings.Join(args, " ") + "\n")
		return err
	}
	command := newCommand(flags, "seamark")
	command.SetArgs(append([]string{"image"}, args...))
	command.SilenceUsage = true
	command.SetOut(out)
	command.SetErr(out)
	err := command.ExecuteContext(t.Context())
	return out.String(), exit.Code(err)
}

// images returns the containers of an object with their images.
func (c *fakeCluster) images(t *testing.T, name string) string {
	t.Helper()
	var containers []corev1.Container
	if name == "agents" {
		var set v1alpha1.SidecarSet
		expect.NoError(t, c.api.Get(t.Context(), client.ObjectKey{Name: name}, &set))
		for i := range set.Spec.Containers {
			containers = append(containers, set.Spec.Containers[i].Container)
		}
	} else {
		var set v1alpha1.CloneSet
		expect.NoError(t, c.api.Get(t.Context(), client.ObjectKey{Namespace: "games", Name: name}, &set))
		containers = append(set.Spec.Template.Spec.InitContainers, set.Spec.Template.Spec.Containers...)
	}
	var images []string
	for i := range containers {
		images = append(images, containers[i].Name+"="+containers[i].Image)
	}
	return strings.Join(images, " ")
}
