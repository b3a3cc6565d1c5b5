// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package injector_test tests the injection of SidecarSets with a real API server, which calls the handler
// by the entries of the sets.
package injector_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/injector"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// server is the API server that the tests of this package share.
var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server) }

// world is a namespace, an injector, and the sets that it injects.
type world struct {
	*env.World
	server *httptest.Server
	asked  atomic.Int64

	mu   sync.Mutex
	sets map[string]*v1alpha1.SidecarSet
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: env.NewWorld(t, server), sets: map[string]*v1alpha1.SidecarSet{}}
	w.server = httptest.NewTLSServer(injector.New(w, func(injector.Result) {}))
	t.Cleanup(w.server.Close)
	return w
}

// Choose returns the set as it was installed.
func (w *world) Choose(_ context.Context, name string, _ *corev1.Pod, _ types.UID) (injector.Choice, error) {
	w.asked.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	set := w.sets[name]
	return injector.Choice{
		Set: name, Selects: true, Revision: revision(set), Optional: set != nil && set.Annotations[v1alpha1.InjectionFailurePolicyKey] == "Ignore",
	}, nil
}

// ChooseBound returns an error: the sets of groups are not known.
func (w *world) ChooseBound(context.Context, *corev1.Pod, types.UID, string) ([]injector.Choice, error) {
	return nil, errors.New("no set is known")
}

// Known returns the only revision of a set.
func (w *world) Known(_ context.Context, name, _ string) *inject.Revision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return revision(w.sets[name])
}

func revision(set *v1alpha1.SidecarSet) *inject.Revision {
	if set == nil {
		return nil
	}
	return &inject.Revision{
		Set: set.Name, Name: set.Name + "-1", Hash: "hash", HashWithoutImage: "hash",
		Containers: set.Spec.Containers, InitContainers: set.Spec.InitContainers, Volumes: set.Spec.Volumes,
		ImagePullSecrets: set.Spec.ImagePullSecrets, PatchPodMetadata: set.Spec.PatchPodMetadata,
	}
}

// install makes the API server call the injector for the sets, in this order.
func (w *world) install(sets ...*v1alpha1.SidecarSet) {
	w.Helper()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})
	config := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	at := entries.Server{
		Client: admissionregistrationv1.WebhookClientConfig{URL: &w.server.URL, CABundle: bundle}, Namespace: env.SystemNamespace,
	}
	w.mu.Lock()
	for _, set := range sets {
		set.Status.InForce = &v1alpha1.SidecarSetInForce{Selector: set.Spec.Selector, Namespace: w.Namespace}
		w.sets[set.Name] = set
		config.Webhooks = append(config.Webhooks, at.Entry(set))
	}
	w.mu.Unlock()
	w.Must(client.IgnoreNotFound(server.Client.Delete(w.Context(), config.DeepCopy())))
	// API servers learn of changes by a watch.
	w.await("no entry is served", 0)
	w.CreateFor(config)
	w.await("all entries are served", len(sets))
}

// await waits until the creation of a pod that all sets select asks as many of them.
func (w *world) await(what string, want int) {
	w.Helper()
	w.Until(what, func() error {
		before := w.asked.Load()
		if err := server.Client.Create(w.Context(), pod(w.Namespace, "probe"), client.DryRunAll); err != nil {
			return fmt.Errorf("create pod: %w", err)
		}
		asked := int(w.asked.Load() - before)
		return await.ErrorIf(asked < want || want == 0 && asked > 0, "%d sets were asked, want %d", asked, want)
	})
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "game"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "game:1", Env: []corev1.EnvVar{{Name: "PORT", Value: "80"}}}}},
	}
}

func sidecarSet(name string, edit func(*v1alpha1.SidecarSetSpec)) *v1alpha1.SidecarSet {
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SidecarSetSpec{
		Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}},
		Containers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: name, Image: name + ":1"}}},
	}}
	if edit != nil {
		edit(&set.Spec)
	}
	return set
}

func names(pod *corev1.Pod) string {
	var all []string
	for _, c := range pod.Spec.Containers {
		all = append(all, c.Name)
	}
	return strings.Join(all, " ")
}

// TestOnlySelectedPodsAreSent checks who depends on the injectors: with all of them down, other pods are
// created.
func TestOnlySelectedPodsAreSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(sidecarSet("logs", nil))
	create := func(edit func(*corev1.Pod)) (*corev1.Pod, error) {
		p := pod(w.Namespace, "")
		p.GenerateName = "game-"
		edit(p)
		return p, server.Client.Create(t.Context(), p)
	}
	other := server.Namespace(t)
	exempt := map[string]func(*corev1.Pod){
		"another label":     func(p *corev1.Pod) { p.Labels["app"] = "shop" },
		"another namespace": func(p *corev1.Pod) { p.Namespace = other },
		"pod of a pull":     func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{imagepull.Command} },
		"mirror pod": func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "file"}
			p.Spec.NodeName = "node"
		},
	}
	got, err := create(func(*corev1.Pod) {})
	if err != nil || names(got) != "logs server" || got.Annotations[v1alpha1.SidecarSetListKey] != "logs" {
		t.Fatalf("containers %s, annotations %v, error %v", names(got), got.Annotations, err)
	}
	// Changes of pods are not sent.
	before := w.asked.Load()
	w.Patch(got, `{"metadata":{"labels":{"a":"b"}}}`)
	w.server.Close()
	for name, edit := range exempt {
		if p, err := create(edit); err != nil || names(p) != "server" {
			t.Errorf("%s: containers %s, error %v, want it unchanged", name, names(p), err)
		}
	}
	if asked := w.asked.Load(); asked != before {
		t.Errorf("%d requests for exempt pods, want none", asked-before)
	}
	if _, err := create(func(p *corev1.Pod) {
		p.Spec.Containers[0].Command = []string{imagepull.Command}
		p.Spec.InitContainers = []corev1.Container{{Name: "runs", Image: "game:1"}}
	}); err == nil || !strings.Contains(err.Error(), "logs.sidecarsets.seamark.dev") {
		t.Errorf("a pod that is like a pull and runs an init container: error %v, want the name of the entry", err)
	}
	if _, err := create(func(*corev1.Pod) {}); err == nil || !strings.Contains(err.Error(), "logs.sidecarsets.seamark.dev") {
		t.Errorf("a selected pod without an injector: error %v, want the name of the entry", err)
	}
}

// TestConflict checks a pod that has a container with the name of one of the set's.
func TestConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	required, optional := sidecarSet("logs", nil), sidecarSet("metrics", nil)
	optional.Annotations = map[string]string{v1alpha1.InjectionFailurePolicyKey: "Ignore"}
	w.install(required, optional)
	p := pod(w.Namespace, "game")
	p.Spec.Containers[0].Name = "metrics"
	if err := server.Client.Create(t.Context(), p); err != nil || names(p) != "logs metrics" {
		t.Errorf("optional set: containers %s, error %v", names(p), err)
	}
	p = pod(w.Namespace, "other")
	p.Spec.Containers[0].Name = "logs"
	if err := server.Client.Create(t.Context(), p); err == nil || !strings.Contains(err.Error(), `SidecarSet logs: the pod has a container "logs" of its own`) {
		t.Errorf("error %v, want the name of the container", err)
	}
}

// TestOrderOfTheEntriesMakesNoDifference calls the entries of three sets in all orders.
func TestOrderOfTheEntriesMakesNoDifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mount := func(volume, path string) []corev1.VolumeMount {
		return []corev1.VolumeMount{{Name: volume, MountPath: path}}
	}
	sets := []*v1alpha1.SidecarSet{
		sidecarSet("a", func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].PodInjectPolicy = v1alpha1.AfterAppContainerType
			s.Containers[0].ShareVolumePolicy.Type = v1alpha1.ShareVolumePolicyEnabled
			s.Containers[0].VolumeMounts = mount("z", "/z")
			s.Volumes = []corev1.Volume{{
				Name: "z", VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "z"}},
				},
			}}
		}),
		sidecarSet("b", func(s *v1alpha1.SidecarSetSpec) {
			s.InitContainers = []v1alpha1.SidecarContainer{{
				Container: corev1.Container{Name: "y", Image: "y", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			}}
			s.Containers[0].TransferEnv = []v1alpha1.TransferEnvVar{{SourceContainerName: "server", EnvName: "PORT"}}
			s.PatchPodMetadata = []v1alpha1.SidecarSetPatchPodMetadata{{
				PatchPolicy: v1alpha1.SidecarSetMergePatchJSONPatchPolicy, Annotations: map[string]string{"json": `{"b":1}`},
			}}
			s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "y"}, {Name: "x"}}
		}),
		sidecarSet("c", func(s *v1alpha1.SidecarSetSpec) {
			s.InitContainers = []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "x", Image: "x"}}}
			s.Containers[0].PodInjectPolicy = v1alpha1.AfterAppContainerType
			s.Containers[0].VolumeMounts = mount("w", "/w")
			s.Volumes = []corev1.Volume{{Name: "w", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			s.PatchPodMetadata = []v1alpha1.SidecarSetPatchPodMetadata{{
				PatchPolicy: v1alpha1.SidecarSetMergePatchJSONPatchPolicy, Annotations: map[string]string{"json": `{"a":1}`},
			}}
			s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "w"}, {Name: "x"}}
		}),
	}
	var first *corev1.Pod
	random := rand.New(rand.NewPCG(1, 25))
	for i := range 4 {
		w.install(sets...)
		p := pod(w.Namespace, "game")
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		p.Spec.Containers[0].VolumeMounts = mount("data", "/data")
		expect.NoError(t, server.Client.Create(t.Context(), p, client.DryRunAll))
		if first == nil {
			first = p
		}
		hashes := func(text string) bool { return strings.Contains(text, "updateTimestamp") }
		if diff := cmp.Diff(first, p, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "CreationTimestamp", "ManagedFields"),
			cmp.FilterValues(func(a, b string) bool { return hashes(a) && hashes(b) }, cmp.Ignore())); diff != "" {
			t.Errorf("order %d makes a difference:\n%s", i, diff)
		}
		random.Shuffle(len(sets), func(a, b int) { sets[a], sets[b] = sets[b], sets[a] })
	}
	expect.Equal(t, "containers", "b server a c", names(first))
	if first.Annotations["json"] != `{"a":1,"b":1}` || first.Annotations[v1alpha1.SidecarSetListKey] != "a,b,c" {
		t.Errorf("annotations %v", first.Annotations)
	}
	shared := slices.ContainsFunc(first.Spec.Containers[2].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/data" })
	if env := first.Spec.Containers[0].Env; !shared || len(env) != 2 || env[1].Name != "PORT" {
		t.Errorf("mounts %v, variables %v", first.Spec.Containers[2].VolumeMounts, env)
	}
}
