// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

var at = metav1.NewTime(time.Unix(1_700_000_000, 0).UTC())

// container returns a container of a set with edits.
func container(name string, edits ...func(*v1alpha1.SidecarContainer)) v1alpha1.SidecarContainer {
	c := v1alpha1.SidecarContainer{Container: corev1.Container{Name: name, Image: name + ":1"}}
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

func after(c *v1alpha1.SidecarContainer)  { c.PodInjectPolicy = v1alpha1.AfterAppContainerType }
func before(c *v1alpha1.SidecarContainer) { c.PodInjectPolicy = v1alpha1.BeforeAppContainerType }
func native(c *v1alpha1.SidecarContainer) {
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
}
func sharing(c *v1alpha1.SidecarContainer) {
	c.ShareVolumePolicy.Type = v1alpha1.ShareVolumePolicyEnabled
	c.ShareVolumeDevicePolicy = &v1alpha1.ShareVolumePolicy{Type: v1alpha1.ShareVolumePolicyEnabled}
}

func mounts(volume, path string) func(*v1alpha1.SidecarContainer) {
	return func(c *v1alpha1.SidecarContainer) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
	}
}

func transfers(transfer v1alpha1.TransferEnvVar) func(*v1alpha1.SidecarContainer) {
	return func(c *v1alpha1.SidecarContainer) { c.TransferEnv = append(c.TransferEnv, transfer) }
}

func set(name string, containers ...v1alpha1.SidecarContainer) *inject.Revision {
	return &inject.Revision{Set: name, Name: name + "-1", Hash: "hash", HashWithoutImage: "hash-without-image", Containers: containers}
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

func pod(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"main": "app"}}, Spec: corev1.PodSpec{Containers: containers}}
}

func app() corev1.Container {
	return corev1.Container{Name: "app", Image: "app:1", Env: []corev1.EnvVar{
		{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)/$$(C)"}, {Name: "C", Value: "3"},
	}, VolumeMounts: []corev1.VolumeMount{
		{Name: "data", MountPath: "/data", SubPathExpr: "x/$(B)"}, {Name: "logs", MountPath: "/logs"},
	}, VolumeDevices: []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/disk"}}}
}

// injectAll injects the sets in this order, and returns all warnings.
func injectAll(t *testing.T, p *corev1.Pod, sets ...*inject.Revision) (*corev1.Pod, []string, error) {
	t.Helper()
	known := func(name, revision string) *inject.Revision {
		for _, s := range sets {
			if s.Set == name && s.Name == revision {
				return s
			}
		}
		return nil
	}
	var all []string
	for _, s := range sets {
		original := p.DeepCopy()
		next, warnings, err := inject.Inject(p, s, known, at)
		if diff := cmp.Diff(original, p); diff != "" {
			t.Fatalf("the argument changed:\n%s", diff)
		}
		all = append(all, warnings...)
		if err != nil {
			return p, all, err
		}
		p = next
	}
	return p, all, nil
}

func names(containers []corev1.Container) string {
	var all []string
	for _, c := range containers {
		all = append(all, c.Name)
	}
	return strings.Join(all, " ")
}

func TestPositions(t *testing.T) {
	first, second := set("a", container("a2"), container("a1"), container("a3", after)), set("b", container("b1"), container("b2", after))
	first.InitContainers = []v1alpha1.SidecarContainer{container("z", native), container("x", before)}
	second.InitContainers = []v1alpha1.SidecarContainer{container("y"), container("w", before)}
	p := pod(corev1.Container{Name: "app"}, corev1.Container{Name: "other"})
	p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
	for name, sets := range map[string][]*inject.Revision{"a first": {first, second}, "b first": {second, first}} {
		got, warnings, err := injectAll(t, p, sets...)
		if err != nil || warnings != nil {
			t.Fatalf("%s: warnings %q, error %v", name, warnings, err)
		}
		if got, want := names(got.Spec.Containers), "a2 a1 b1 app other a3 b2"; got != want {
			t.Errorf("%s: containers %s, want %s", name, got, want)
		}
		if got, want := names(got.Spec.InitContainers), "w x init y z"; got != want {
			t.Errorf("%s: init containers %s, want %s", name, got, want)
		}
		if got, want := got.Annotations[v1alpha1.SidecarSetListKey], "a,b"; got != want {
			t.Errorf("%s: list %s, want %s", name, got, want)
		}
		const hashes = `{"a":{"updateTimestamp":"2023-11-14T22:13:20Z","hash":"hash","sidecarSetName":"a","sidecarList":["a1","a2","a3","z"],"controllerRevision":"a-1"},` +
			`"b":{"updateTimestamp":"2023-11-14T22:13:20Z","hash":"hash","sidecarSetName":"b","sidecarList":["b1","b2"],"controllerRevision":"b-1"}}`
		if got := got.Annotations[v1alpha1.SidecarSetHashKey]; got != hashes {
			t.Errorf("%s: hashes %s, want %s", name, got, hashes)
		}
		if got, want := got.Annotations[v1alpha1.SidecarSetHashWithoutImageKey], strings.ReplaceAll(hashes, `"hash":"hash"`, `"hash":"hash-without-image"`); got != want {
			t.Errorf("%s: hashes without images %s, want %s", name, got, want)
		}
	}
}

func TestConflicts(t *testing.T) {
	injected := corev1.Container{Name: "log", Image: "log:0", Env: []corev1.EnvVar{{Name: v1alpha1.SidecarInjectedEnv, Value: "true"}}}
	listed := func(p *corev1.Pod) *corev1.Pod {
		p.Annotations = map[string]string{v1alpha1.SidecarSetListKey: "other,logs", v1alpha1.SidecarSetHashKey: "{"}
		return p
	}
	inits := pod(app())
	inits.Spec.InitContainers = []corev1.Container{{Name: "log"}}
	for name, test := range map[string]struct {
		pod      *corev1.Pod
		want     string
		conflict bool
	}{
		"container of the pod":            {pod: pod(app(), corev1.Container{Name: "log"}), conflict: true},
		"init container of the pod":       {pod: inits, conflict: true},
		"injected, not listed":            {pod: pod(app(), injected), conflict: true},
		"listed, not injected":            {pod: listed(pod(app(), corev1.Container{Name: "log"})), conflict: true},
		"the other container has no sets": {pod: pod(app()), want: "log:1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := injectAll(t, test.pod, set("logs", container("log", after)))
			var conflict *inject.RefusedError
			if errors.As(err, &conflict) != test.conflict {
				t.Fatalf("error %v, want a conflict: %t", err, test.conflict)
			}
			if test.conflict {
				if conflict.Set != "logs" || !strings.Contains(conflict.Error(), `a container "log" of its own`) {
					t.Errorf("conflict %v", conflict)
				}
				return
			}
			if last := got.Spec.Containers[len(got.Spec.Containers)-1]; len(got.Spec.Containers) != 2 || last.Image != test.want {
				t.Errorf("containers %+v, want one with image %s", got.Spec.Containers, test.want)
			}
		})
	}
}

// TestHostilePods injects into pods that the API server has not validated.
func TestHostilePods(t *testing.T) {
	many := func(edit func(p *corev1.Pod, c *corev1.Container)) *corev1.Pod {
		p := pod(app())
		for range 10_000 {
			edit(p, &p.Spec.Containers[0])
		}
		return p
	}
	for part, p := range map[string]*corev1.Pod{
		"containers": many(func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{})
		}),
		"volumes": many(func(p *corev1.Pod, _ *corev1.Container) { p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{}) }),
		"imagePullSecrets": many(func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{})
		}),
		"variables, mounts and devices": many(func(_ *corev1.Pod, c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{}) }),
	} {
		var refused *inject.RefusedError
		if _, _, err := injectAll(t, p, set("logs", container("log", sharing))); !errors.As(err, &refused) || !strings.Contains(err.Error(), " "+part+", and at most ") {
			t.Errorf("%s: error %v", part, err)
		}
	}
	p := pod(app())
	p.Annotations = map[string]string{v1alpha1.SidecarSetListKey: strings.Repeat("logs,", 10_000)}
	got, _, err := injectAll(t, p, set("logs", container("log")))
	if err != nil || got.Annotations[v1alpha1.SidecarSetListKey] != "logs" {
		t.Errorf("list of %d bytes, error %v, want logs", len(got.Annotations[v1alpha1.SidecarSetListKey]), err)
	}
}

// TestCopiedPod injects a newer revision into a pod that was copied from an injected one. It has the earlier
// revision, unless a container was removed.
func TestCopiedPod(t *testing.T) {
	revision := func(number string) *inject.Revision {
		s := set("logs", container("log"), container("ship"))
		s.Name = "logs-" + number
		for i := range s.Containers {
			s.Containers[i].Image = "log:" + number
		}
		return s
	}
	images := func(p *corev1.Pod) (all []string) {
		for _, c := range p.Spec.Containers {
			all = append(all, c.Image)
		}
		return all
	}
	copied, _, err := injectAll(t, pod(app()), revision("1"))
	if err != nil {
		t.Fatal(err)
	}
	first := revision("1")
	known := func(_, name string) *inject.Revision { return map[string]*inject.Revision{"logs-1": first}[name] }
	got, _, err := inject.Inject(copied, revision("2"), known, at)
	if err != nil || !cmp.Equal(copied, got) {
		t.Errorf("error %v, change of a copied pod:\n%s", err, cmp.Diff(copied, got))
	}
	copied.Spec.Containers = copied.Spec.Containers[1:]
	got, _, err = injectAll(t, copied, revision("2"))
	if diff := cmp.Diff([]string{"log:2", "log:2", "app:1"}, images(got)); err != nil || diff != "" || !strings.Contains(got.Annotations[v1alpha1.SidecarSetHashKey], `"logs-2"`) {
		t.Errorf("error %v, annotations %v, images (-want +got):\n%s", err, got.Annotations, diff)
	}
}

func TestVolumesAndSecrets(t *testing.T) {
	logs := set("logs", container("log", mounts("spool", "/spool"), mounts("data", "/data"), mounts("logs", "/logs")))
	logs.Volumes = []corev1.Volume{emptyDir("spool"), emptyDir("unused"), emptyDir("data"),
		{Name: "logs", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}}}}
	logs.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "b"}, {Name: "c"}}
	other := set("a", container("a", mounts("b", "/b")))
	other.Volumes = []corev1.Volume{emptyDir("b")}
	p := pod(app())
	p.Spec.Volumes = []corev1.Volume{emptyDir("logs"), emptyDir("data"), emptyDir("zzz")}
	p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "c"}, {Name: "z"}}
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	got, warnings, err := injectAll(t, p, logs, other)
	if err != nil {
		t.Fatal(err)
	}
	var volumes, secrets []string
	for _, v := range got.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, s := range got.Spec.ImagePullSecrets {
		secrets = append(secrets, s.Name)
	}
	if diff := cmp.Diff("logs zzz b data spool | z b c", strings.Join(volumes, " ")+" | "+strings.Join(secrets, " ")); diff != "" {
		t.Errorf("volumes and secrets (-want +got):\n%s", diff)
	}
	const ends = "the pod has restartPolicy Never, and ends only when its containers do: use init containers with restartPolicy Always"
	if diff := cmp.Diff([]string{"SidecarSet logs: " + ends, `SidecarSet logs: the pod has another volume "logs", which the containers of the set mount instead`, "SidecarSet a: " + ends}, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestMetadata(t *testing.T) {
	patch := func(policy v1alpha1.SidecarSetPatchPolicyType, key, value string) v1alpha1.SidecarSetPatchPodMetadata {
		return v1alpha1.SidecarSetPatchPodMetadata{PatchPolicy: policy, Annotations: map[string]string{key: value}}
	}
	const overwrite, merge = v1alpha1.SidecarSetOverwritePatchPolicy, v1alpha1.SidecarSetMergePatchJSONPatchPolicy
	for name, test := range map[string]struct {
		patch        v1alpha1.SidecarSetPatchPodMetadata
		before, want string
		warnings     int
	}{
		"retain":            {patch: patch(v1alpha1.SidecarSetRetainPatchPolicy, "k", "new"), before: "old", want: "old"},
		"retain by default": {patch: patch("", "k", "new"), before: "old", want: "old"},
		"retain, absent":    {patch: patch("", "k", "new"), before: "-", want: "new"},
		"retain, empty":     {patch: patch("", "k", "new"), before: "", want: ""},
		"overwrite":         {patch: patch(overwrite, "k", "new"), before: "old", want: "new"},
		"merge":             {patch: patch(merge, "k", `{"b":2,"c":null}`), before: `{"c":3,"a":1}`, want: `{"a":1,"b":2}`},
		"merge, absent":     {patch: patch(merge, "k", `{"b":2}`), before: "-", want: `{"b":2}`},
		"merge, empty":      {patch: patch(merge, "k", `{"b":2}`), before: "", want: `{"b":2}`},
		"merge, no JSON":    {patch: patch(merge, "k", `{"b":2}`), before: "old", want: "old", warnings: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(app())
			if test.before != "-" {
				p.Annotations = map[string]string{"k": test.before}
			}
			s := set("logs", container("log"))
			s.PatchPodMetadata = []v1alpha1.SidecarSetPatchPodMetadata{test.patch}
			got, warnings, err := injectAll(t, p, s)
			if err != nil || got.Annotations["k"] != test.want || len(warnings) != test.warnings {
				t.Errorf("annotation %q, warnings %q, error %v, want %q and %d warnings", got.Annotations["k"], warnings, err, test.want, test.warnings)
			}
		})
	}
}
