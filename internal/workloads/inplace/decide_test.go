// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	podtemplate "github.com/seamark-dev/seamark/internal/workloads/template"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// template is a template with two containers. The second refers to a label and an annotation.
func template(image string) *corev1.PodTemplateSpec {
	ref := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Image: "init:1"}},
			Containers: []corev1.Container{
				{Name: "main", Image: image, Resources: corev1.ResourceRequirements{Requests: list("cpu", "1")}},
				{Name: "side", Image: "side:1", Env: []corev1.EnvVar{
					{Name: "ZONE", ValueFrom: ref("metadata.labels['zone']")},
					{Name: "NOTE", ValueFrom: ref("metadata.annotations['note']")},
				}},
			},
		},
	}
}

func pod(t *corev1.PodTemplateSpec) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	p.Name, p.Labels["controller-revision-hash"] = "web-0", "web-a"
	p.Annotations = map[string]string{}
	planning.AddGate(&p.Spec, pub.InPlaceUpdateReady)
	p.Spec.NodeName = "node"
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionTrue},
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: "id-" + c.Image, ContainerID: "c1-" + c.Name, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-1e9))}},
		})
	}
	return p
}

func text(s string) *string { return &s }

// refersTo adds a resource to the environment of the first container, with its resize policy for CPU.
func refersTo(name string, policy corev1.ResourceResizeRestartPolicy) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) {
		c := &p.Spec.Containers[0]
		c.Env = []corev1.EnvVar{{Name: "LIMIT", ValueFrom: &corev1.EnvVarSource{
			ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: name},
		}}}
		if policy != "" {
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: policy}}
		}
	}
}

func TestDecide(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	image := func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "main:2" }
	cpu := func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources.Requests = list("cpu", "2") }
	newImage := inplace.Change{Images: map[string]string{"main": "main:2"}}
	twoCPUs := inplace.Change{Resources: map[string]corev1.ResourceRequirements{"main": {Requests: list("cpu", "2")}}}
	for name, test := range map[string]struct {
		from func(*corev1.PodTemplateSpec)
		to   func(*corev1.PodTemplateSpec)
		pod  func(*corev1.Pod)
		want inplace.Change
		why  string
	}{
		"nothing": {},
		"image":   {to: image, want: newImage},
		"image that a webhook replaced in the pod": {
			to:   image,
			pod:  func(p *corev1.Pod) { p.Spec.Containers[1].Image = "mirror/side:1" },
			want: newImage,
		},
		"labels and annotations": {
			from: func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"old": "1", "same": "1"} },
			to: func(p *corev1.PodTemplateSpec) {
				p.Labels["tier"], p.Annotations = "gold", map[string]string{"same": "1", "new": ""}
			},
			want: inplace.Change{
				Labels:      map[string]*string{"tier": text("gold")},
				Annotations: map[string]*string{"old": nil, "new": text("")},
			},
		},
		"label in the environment": {
			to:  func(p *corev1.PodTemplateSpec) { p.Labels["zone"] = "b" },
			why: "container side refers to metadata.labels['zone']",
		},
		"a restart of the rollout": {
			from: func(p *corev1.PodTemplateSpec) {
				p.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z"}
			},
			to: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Image = "main:2"
				p.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-02T03:05:05Z"}
			},
			why: "the annotation kubectl.kubernetes.io/restartedAt requests new pods",
		},
		"a restart of the rollout is undone": {
			from: func(p *corev1.PodTemplateSpec) {
				p.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z"}
			},
			to:   func(p *corev1.PodTemplateSpec) { p.Annotations = nil },
			want: inplace.Change{Annotations: map[string]*string{"kubectl.kubernetes.io/restartedAt": nil}},
		},
		"annotation in the environment": {
			to:  func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"note": "b"} },
			why: "container side refers to metadata.annotations['note']",
		},
		"label in the environment of a container that restarts": {
			to: func(p *corev1.PodTemplateSpec) { p.Labels["zone"], p.Spec.Containers[1].Image = "b", "side:2" },
			want: inplace.Change{
				Images: map[string]string{"side": "side:2"}, Labels: map[string]*string{"zone": text("b")},
			},
		},
		"resources":                   {to: cpu, want: twoCPUs},
		"resource in the environment": {from: refersTo("requests.cpu", ""), to: cpu, why: "container main refers to requests.cpu of container main"},
		"resource in the environment of another container": {
			from: func(p *corev1.PodTemplateSpec) {
				refersTo("requests.cpu", "")(p)
				env := &p.Spec.Containers[0].Env
				(*env)[0].ValueFrom.ResourceFieldRef.ContainerName = "main"
				p.Spec.Containers[1].Env, *env = *env, nil
			},
			to:  cpu,
			why: "container side refers to requests.cpu of container main",
		},
		"other resource in the environment": {from: refersTo("limits.memory", ""), to: cpu, want: twoCPUs},
		"resource in the environment of a container that its resize policy restarts": {
			from: refersTo("requests.cpu", corev1.RestartContainer),
			to:   cpu,
			want: twoCPUs,
		},
		"resource in the environment of a container that its resize policy does not restart": {
			from: refersTo("requests.cpu", corev1.NotRequired),
			to:   cpu,
			why:  "container main refers to requests.cpu of container main",
		},
		"resources keep what a LimitRange added": {
			to:   cpu,
			pod:  func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = list("memory", "1Gi") },
			want: twoCPUs,
		},
		"resource added": {
			to: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Requests = list("cpu", "1", "memory", "1Gi")
			},
			want: inplace.Change{Resources: map[string]corev1.ResourceRequirements{
				"main": {Requests: list("memory", "1Gi")},
			}},
		},
		"resource removed": {
			to:  func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources.Requests = nil },
			why: "resource cpu of container main is removed",
		},
		"resource that cannot be resized": {
			to: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Requests["ephemeral-storage"] = resource.MustParse("1Gi")
			},
			why: "resource ephemeral-storage of container main changes",
		},
		"QoS class": {
			to: func(p *corev1.PodTemplateSpec) {
				for i := range p.Spec.Containers {
					p.Spec.Containers[i].Resources.Limits = list("cpu", "1", "memory", "1Gi")
				}
				p.Spec.InitContainers[0].Resources.Limits = list("cpu", "1", "memory", "1Gi")
			},
			from: func(p *corev1.PodTemplateSpec) {
				p.Spec.InitContainers[0].Resources.Limits = list("cpu", "1", "memory", "1Gi")
			},
			why: "the QoS class changes from Burstable to Guaranteed",
		},
		"other field": {to: func(p *corev1.PodTemplateSpec) { p.Spec.HostNetwork = true }, why: "spec.hostNetwork changes"},
		"other field of a container": {
			to:  func(p *corev1.PodTemplateSpec) { p.Spec.Containers[1].Args = []string{"x"} },
			why: "spec.containers[side].args changes",
		},
		"image of an init container": {
			to:  func(p *corev1.PodTemplateSpec) { p.Spec.InitContainers[0].Image = "init:2" },
			why: "spec.initContainers changes",
		},
		"image of a sidecar, which the kubelet does not restart": {
			from: func(p *corev1.PodTemplateSpec) { p.Spec.InitContainers[0].RestartPolicy = &always },
			to: func(p *corev1.PodTemplateSpec) {
				p.Spec.InitContainers[0].RestartPolicy, p.Spec.InitContainers[0].Image = &always, "init:2"
			},
			why: "spec.initContainers changes",
		},
		"container added": {
			to: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "x", Image: "x"})
			},
			why: "the number of containers changes",
		},
		"order of containers": {
			to: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0], p.Spec.Containers[1] = p.Spec.Containers[1], p.Spec.Containers[0]
			},
			why: "container side is not at the same place",
		},
		"defaults in the old template only": {
			from: func(p *corev1.PodTemplateSpec) { *p = *podtemplate.WithDefaults(p) },
			to:   func(p *corev1.PodTemplateSpec) { *p = *template("main:2") },
			want: newImage,
		},
		"defaults in the new template only": {
			to: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Image = "main:2"
				*p = *podtemplate.WithDefaults(p)
			},
			want: newImage,
		},
		"pull policy that follows from the tag": {
			to:   func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "main:latest" },
			want: inplace.Change{Images: map[string]string{"main": "main:latest"}},
		},
		"pull policy that OpenKruise's webhook has set": {
			from: func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways },
			to:   func(p *corev1.PodTemplateSpec) { *p = *template("main:2") },
			want: newImage,
		},
		"pull policy": {
			to: func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "main:2", corev1.PullAlways
			},
			why: "spec.containers[main].imagePullPolicy changes",
		},
		"image removed": {to: func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "" }, why: "container main has no image"},
		"container missing in the pod": {
			to:  image,
			pod: func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[1:] },
			why: "the pod does not have container main",
		},
		"finalizer in the template": {
			to:  func(p *corev1.PodTemplateSpec) { p.Finalizers = []string{"a/b"} },
			why: "metadata other than labels and annotations changes",
		},
		"previous update waits for its grace period": {
			to: func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "main:3" },
			pod: func(p *corev1.Pod) {
				p.Annotations[pub.InPlaceUpdateGraceKey] = `{"revision":"web-a",` +
					`"containerImages":{"main":"main:2","side":"side:2"},"graceSeconds":5,` +
					`"metaDataPatch":"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsiYSI6IjEiLCJiIjpudWxsfX19"}`
			},
			want: inplace.Change{
				Images: map[string]string{"main": "main:3", "side": "side:1"},
				Labels: map[string]*string{"a": text("1"), "b": nil},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := template("main:1")
			if test.from != nil {
				test.from(from)
			}
			to := from.DeepCopy()
			if test.to != nil {
				test.to(to)
			}
			p := pod(from)
			if test.pod != nil {
				test.pod(p)
			}
			before, was, wanted := p.DeepCopy(), from.DeepCopy(), to.DeepCopy()
			change, why := inplace.Between(from, to).Decide(trim.Pod(nil)(p))
			if why != test.why || (change == nil) != (why != "") {
				t.Fatalf("why %q, want %q", why, test.why)
			}
			if cmp.Diff(before, p)+cmp.Diff(was, from)+cmp.Diff(wanted, to) != "" {
				t.Error("the input is changed")
			}
			if change == nil {
				return
			}
			if diff := cmp.Diff(&test.want, change, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
