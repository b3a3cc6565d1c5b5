// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/internal/workloads/template"
)

// random makes pods and sets of few names, so that they meet.
type random struct{ *rand.Rand }

func (r random) one(n int) bool { return r.IntN(n) == 0 }

func (r random) name() string { return string(rune('a' + r.IntN(5))) }

func (r random) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: "image"}
	for range r.IntN(3) {
		if variable := r.name(); !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == variable }) {
			c.Env = append(c.Env, corev1.EnvVar{Name: variable, Value: fmt.Sprintf("$(%s)$$(%s)", r.name(), r.name())})
		}
	}
	for range r.IntN(3) {
		mount := corev1.VolumeMount{Name: r.name(), MountPath: "/" + r.name()}
		if r.one(2) {
			mount.SubPathExpr = "$(" + r.name() + ")"
		}
		c.VolumeMounts = append(c.VolumeMounts, mount)
	}
	if r.one(3) {
		c.VolumeDevices = []corev1.VolumeDevice{{Name: r.name(), DevicePath: "/" + r.name()}}
	}
	return c
}

// volume has one content in all sets, as sets that overlap must have.
func (r random) volume(name string, content int) corev1.Volume {
	if content == 0 {
		return emptyDir(name)
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint(content)}}}}
}

func (r random) pod() *corev1.Pod {
	p := pod(r.container("app"))
	p.Labels = map[string]string{"main": []string{"app", "other", "none"}[r.IntN(3)]}
	if r.one(2) {
		p.Spec.Containers = append(p.Spec.Containers, r.container("other"))
	}
	if r.one(8) {
		p.Spec.Containers = append(p.Spec.Containers, r.container("s0-0"))
	}
	if r.one(2) {
		p.Spec.InitContainers = []corev1.Container{r.container("init")}
	}
	for _, name := range []string{"e", "c", "a"} {
		if r.one(2) {
			p.Spec.Volumes = append(p.Spec.Volumes, r.volume(name, r.IntN(2)))
		}
		if r.one(3) {
			p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
	}
	if r.one(2) {
		p.Annotations = map[string]string{"json": []string{"", "no JSON", `{"z":1,"s0":0}`}[r.IntN(3)], "text": "own"}
	}
	return p
}

// set returns a set that agrees with the others, as accepted ones do.
func (r random) set(number int) *inject.Revision {
	s := set(fmt.Sprint("s", number))
	for i := range 1 + r.IntN(3) {
		c := v1alpha1.SidecarContainer{Container: r.container(fmt.Sprintf("s%d-%d", number, i))}
		c.PodInjectPolicy = []v1alpha1.PodInjectPolicyType{"", v1alpha1.BeforeAppContainerType, v1alpha1.AfterAppContainerType}[r.IntN(3)]
		if r.one(2) {
			sharing(&c)
		}
		if r.one(2) {
			c.TransferEnv = []v1alpha1.TransferEnvVar{{SourceContainerName: "app", EnvName: r.name(), EnvNames: []string{r.name()}}}
		}
		if r.one(3) {
			c.TransferEnv = append(c.TransferEnv, v1alpha1.TransferEnvVar{EnvName: r.name(), SourceContainerNameFrom: &v1alpha1.SourceContainerNameSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['main']"},
			}})
		}
		if r.one(3) {
			s.InitContainers = append(s.InitContainers, c)
		} else {
			s.Containers = append(s.Containers, c)
		}
	}
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		s.Volumes = append(s.Volumes, r.volume(name, i%2))
		if r.one(3) {
			s.ImagePullSecrets = append(s.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
	}
	s.PatchPodMetadata = []v1alpha1.SidecarSetPatchPodMetadata{
		{PatchPolicy: v1alpha1.SidecarSetMergePatchJSONPatchPolicy, Annotations: map[string]string{"json": fmt.Sprintf(`{"s%d":%d}`, number, r.IntN(3))}},
		{PatchPolicy: v1alpha1.SidecarSetOverwritePatchPolicy, Annotations: map[string]string{"set-" + s.Set: "set"}},
	}
	return s
}

// defaulted returns the pod as the API server sends it to the next webhook.
func defaulted(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.Spec = template.WithDefaults(&corev1.PodTemplateSpec{Spec: p.Spec}).Spec
	return p
}

// FuzzInject injects three sets in all orders, with the API server's defaults in between.
func FuzzInject(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := random{rand.New(rand.NewPCG(seed, 25))}
		p := r.pod()
		sets := []*inject.Revision{r.set(0), r.set(1), r.set(2)}
		known := func(name, revision string) *inject.Revision {
			for _, s := range sets {
				if s.Set == name && s.Name == revision {
					return s
				}
			}
			return nil
		}
		var first *corev1.Pod
		for i, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			got, refused := p, 0
			for _, n := range order {
				next, _, err := inject.Inject(got, sets[n], known, at)
				if err != nil {
					refused++
					continue
				}
				got = defaulted(next)
			}
			if i == 0 {
				first = got
			}
			if diff := cmp.Diff(first, got); diff != "" {
				t.Fatalf("seed %d: the order %v makes a difference:\n%s", seed, order, diff)
			}
			for n := range sets[refused:] {
				again, _, err := inject.Inject(got, sets[n+refused], known, at)
				if err != nil || !cmp.Equal(got, again) {
					t.Fatalf("seed %d: a second injection of set %d, error %v:\n%s", seed, n+refused, err, cmp.Diff(got, again))
				}
			}
		}
		keeps(t, defaulted(p), first)
	})
}

// keeps checks that the containers, volumes and annotations of the pod are as they were.
func keeps(t *testing.T, before, after *corev1.Pod) {
	t.Helper()
	own := func(lists ...[]corev1.Container) (found []corev1.Container) {
		for _, list := range lists {
			for _, c := range list {
				if !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == v1alpha1.SidecarInjectedEnv }) {
					found = append(found, c)
				}
			}
		}
		return found
	}
	if diff := cmp.Diff(own(before.Spec.InitContainers, before.Spec.Containers), own(after.Spec.InitContainers, after.Spec.Containers)); diff != "" {
		t.Errorf("the pod's own containers changed:\n%s", diff)
	}
	for _, v := range before.Spec.Volumes {
		if !slices.ContainsFunc(after.Spec.Volumes, func(other corev1.Volume) bool { return cmp.Equal(v, other) }) {
			t.Errorf("the volume %+v of the pod changed", v)
		}
	}
	if text, found := before.Annotations["text"]; found && after.Annotations["text"] != text {
		t.Errorf("the annotation of the pod changed to %q", after.Annotations["text"])
	}
}
