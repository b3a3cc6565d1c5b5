// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	customizations "github.com/argoproj/argo-cd/v3/resource_customizations"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/follow"
	"github.com/seamark-dev/seamark/test/health/internal/script"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
	"github.com/seamark-dev/seamark/test/kubelet"
)

// server is the API server of the tests.
var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server) }

// The states of health.
const (
	healthy     = "Healthy"
	progressing = "Progressing"
	suspended   = "Suspended"
)

const template = `{metadata: {labels: {app: a}}, spec: {containers: [{name: main, image: "image:1"}]}}`

// update is a merge patch that changes the template.
const update = `{spec: {template: {spec: {containers: [{name: main, image: "image:2"}]}}}}`

// phase is a state of an object that its health script reports after a change.
type phase struct {
	// change is a merge patch. In the first phase, it is the specification.
	change, want string
}

// TestArgoCD runs the health checks of Argo CD with every stored version of objects in all phases: none ends with an error, and
// each phase has the health that its users expect.
func TestArgoCD(t *testing.T) {
	world := newWorld(t, nil)
	world.run(t)
	for name, test := range map[string]struct {
		kind, version string
		phases        []phase
	}{
		"CloneSet": {"CloneSet", "v1alpha1", []phase{
			{"{replicas: 3, template: " + template + "}", healthy}, {update, healthy}, {"{spec: {replicas: 5}}", healthy},
			{`{spec: {updateStrategy: {partition: 2}, template: {spec: {containers: [{name: main, image: "image:3"}]}}}}`, suspended},
			{"{spec: {updateStrategy: {partition: 0}}}", healthy}, {"{spec: {replicas: 0}}", healthy}, {"{spec: {replicas: 2}}", healthy},
			{"{spec: {updateStrategy: {paused: true}}}", suspended},
		}},
		"StatefulSet": {"StatefulSet", "v1beta1", []phase{
			{"{replicas: 3, template: " + template + "}", healthy}, {update, healthy}, {"{spec: {replicas: 4}}", healthy},
			{`{spec: {updateStrategy: {rollingUpdate: {partition: 2}}, template: {spec: {containers: [{name: main, image: "image:3"}]}}}}`, progressing},
			{"{spec: {updateStrategy: {rollingUpdate: {partition: 0}}}}", healthy}, {"{spec: {replicas: 0}}", healthy}, {"{spec: {replicas: 2}}", healthy},
			{"{spec: {updateStrategy: {rollingUpdate: {paused: true}}}}", suspended},
		}},
		"StatefulSet with OnDelete": {"StatefulSet", "v1beta1", []phase{
			{"{replicas: 2, updateStrategy: {type: OnDelete}, template: " + template + "}", healthy}, {"{spec: {replicas: 3}}", healthy},
		}},
		"DaemonSet": {"DaemonSet", "v1alpha1", []phase{
			{"{template: " + template + "}", healthy}, {update, healthy},
			{"{spec: {updateStrategy: {rollingUpdate: {paused: true}}}}", suspended},
		}},
		"DaemonSet with OnDelete": {"DaemonSet", "v1alpha1", []phase{{"{updateStrategy: {type: OnDelete}, template: " + template + "}", healthy}}},
		"AdvancedCronJob": {"AdvancedCronJob", "v1alpha1", []phase{
			{
				`{schedule: "0 0 1 1 *", paused: true, template: {jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "image:1"}]}}}}}}`,
				suspended,
			},
		}},
		"BroadcastJob": {"BroadcastJob", "v1alpha1", []phase{
			{`{paused: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "image:1"}]}}}`, suspended},
			{"{spec: {paused: false}}", progressing},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world.check(t, test.kind, test.version, test.phases)
		})
	}
}

type world struct{ *env.Env }

// newWorld runs the kubelet of a node whose pods become ready as the function says, all of them if it is nil.
func newWorld(t *testing.T, ready func(*corev1.Pod) bool) *world {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	expect.NoError(t, server.Client.Create(t.Context(), node))
	t.Cleanup(func() { expect.NoError(t, server.Client.Delete(context.Background(), node)) })
	env.RunKubelets(t, kubelet.Options{Config: server.Config, Ready: ready, Failed: func(err error) { t.Error(err) }})
	return &world{server}
}

// run runs the program.
func (w *world) run(t *testing.T) {
	t.Helper()
	cfg := program.Install(t, w.Env, "config/daemonsets/rbac.yaml", "config/broadcastjobs/rbac.yaml", "config/cronjobs/rbac.yaml")
	program.Start(t, cfg, func(_ *workloads.Options, enabled *configv1alpha1.WorkloadControllers) {
		enabled.DaemonSet.Enabled, enabled.BroadcastJob.Enabled, enabled.AdvancedCronJob.Enabled = new(true), new(true), new(true)
	})
}

// object returns a new object with the specification in a namespace of its own.
func (w *world) object(t *testing.T, kind, version, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	expect.NoError(t, yaml.Unmarshal([]byte("spec: "+spec), &object.Object))
	object.SetAPIVersion("apps.kruise.io/" + version)
	object.SetKind(kind)
	object.SetNamespace(w.Namespace(t))
	object.SetName("a")
	if kind != "AdvancedCronJob" && kind != "BroadcastJob" {
		expect.NoError(t, unstructured.SetNestedField(object.Object, "a", "spec", "selector", "matchLabels", "app"))
	}
	return object
}

// check creates the object and takes it through its phases.
func (w *world) check(t *testing.T, kind, version string, phases []phase) {
	t.Helper()
	text, err := customizations.Embedded.ReadFile("apps.kruise.io/" + kind + "/health.lua")
	expect.NoError(t, err)
	object := w.object(t, kind, version, phases[0].change)
	versions := w.follow(t, object, func(stored *unstructured.Unstructured) error {
		_, err := script.Run(string(text), stored.Object)
		return err
	})
	expect.NoError(t, w.Client.Create(t.Context(), object))
	w.reaches(t, object, string(text), phases[0].want)
	for _, phase := range phases[1:] {
		patch, err := yaml.YAMLToJSON([]byte(phase.change))
		expect.NoError(t, err)
		expect.NoError(t, w.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
		w.reaches(t, object, string(text), phase.want)
	}
	t.Logf("%d versions", versions.Load())
}

// follow calls see with every stored version of the object until the test ends.
func (w *world) follow(t *testing.T, object *unstructured.Unstructured, see func(stored *unstructured.Unstructured) error) *atomic.Int32 {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(object.GroupVersionKind().GroupVersion().WithKind(object.GetKind() + "List"))
	versions := &atomic.Int32{}
	var once sync.Once
	ctx, cancel := context.WithCancel(context.Background())
	wait, err := follow.Objects(ctx, w.Client, list, func(event watch.Event) {
		stored, is := event.Object.(*unstructured.Unstructured)
		if !is || stored.GetNamespace() != object.GetNamespace() {
			return
		}
		versions.Add(1)
		if err := see(stored); err != nil {
			once.Do(func() { t.Errorf("stored version %+v: %v", stored.Object, err) })
		}
	})
	expect.NoError(t, err)
	t.Cleanup(func() { cancel(); expect.NoError(t, wait()) })
	return versions
}

// reaches waits until the health is the wanted one, for the observed generation and the pods of the whole set.
func (w *world) reaches(t *testing.T, object *unstructured.Unstructured, text, want string) {
	t.Helper()
	env.WorldOf(t, w.Env, object.GetNamespace()).Shows(object, "the health is "+want, func() error {
		got, err := script.Run(text, object.Object)
		observed, has, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		if err == nil && (got.Status != want || has && observed != object.GetGeneration()) {
			return fmt.Errorf("health %+v", got)
		}
		return err
	})
}
