// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/core"
	k8scorev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	kubeprobe "k8s.io/kubernetes/pkg/probe"
	"sigs.k8s.io/randfill"

	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/workloads/template"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// images are valid names of images.
func images() []string {
	return []string{
		"nginx", "nginx:latest", "nginx:1.27", "library/nginx", "registry.example:5000/a/nginx", "registry.example:5000/a/nginx:1",
		"registry.example:5000/a/nginx:latest", "nginx@sha256:1234567890123456789012345678901234567890123456789012345678901234",
		"nginx:latest@sha256:1234567890123456789012345678901234567890123456789012345678901234", "",
	}
}

// byTheAPIServer returns the template of a pod as the API server stores it.
func byTheAPIServer(t *testing.T, wanted *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: wanted.ObjectMeta, Spec: *wanted.Spec.DeepCopy()}
	k8scorev1.SetObjectDefaults_Pod(pod)
	var internal core.Pod
	var stored corev1.Pod
	expect.NoError(t, k8scorev1.Convert_v1_Pod_To_core_Pod(pod, &internal, nil))
	expect.NoError(t, k8scorev1.Convert_core_Pod_To_v1_Pod(&internal, &stored, nil))
	return &corev1.PodTemplateSpec{ObjectMeta: stored.ObjectMeta, Spec: stored.Spec}
}

// templates returns random templates. Each field is unset in about half of them, so that its default
// applies.
func templates(seed int64) *randfill.Filler {
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	return randfill.NewWithSeed(seed).NilChance(0.5).NumElements(1, 3).MaxDepth(20).Funcs(
		func(q *resource.Quantity, _ randfill.Continue) {
			*q = *resource.NewScaledQuantity(random.Int64N(100_000), resource.Micro)
		},
		func(s *string, c randfill.Continue) {
			if random.IntN(2) == 0 {
				*s = c.String(8)
			}
		},
		func(n *int32, _ randfill.Continue) { *n = random.Int32N(3) },
		func(c *corev1.Container, f randfill.Continue) {
			f.FillNoCustom(c)
			c.Image = images()[random.IntN(len(images()))]
		},
		func(v *corev1.ImageVolumeSource, f randfill.Continue) {
			f.FillNoCustom(v)
			v.Reference = images()[random.IntN(len(images()))]
		},
		func(v *corev1.VolumeSource, f randfill.Continue) {
			f.FillNoCustom(v)
			onlyOne(v, random)
		},
		func(s *corev1.PodSpec, f randfill.Continue) {
			f.FillNoCustom(s)
			// A template cannot have them, and the requests of the pod are not derived.
			s.EphemeralContainers, s.Resources = nil, nil
		},
	)
}

// onlyOne keeps one source of a volume, or none.
func onlyOne(v *corev1.VolumeSource, random *rand.Rand) {
	sources := reflect.ValueOf(v).Elem()
	kept := random.IntN(sources.NumField() + 1)
	for i := range sources.NumField() {
		if i != kept {
			sources.Field(i).SetZero()
		} else if sources.Field(i).IsNil() {
			sources.Field(i).Set(reflect.New(sources.Field(i).Type().Elem()))
		}
	}
}

func TestDefaultsOfTemplatesAreThoseOfTheAPIServer(t *testing.T) {
	t.Parallel()
	changed := 0
	for seed := range int64(3000) {
		var wanted corev1.PodTemplateSpec
		templates(seed).Fill(&wanted)
		wanted.ObjectMeta = *new(corev1.PodTemplateSpec).ObjectMeta.DeepCopy()
		stored, got := byTheAPIServer(t, &wanted), template.WithDefaults(&wanted)
		if !equality.Semantic.DeepEqual(stored, got) {
			t.Fatalf("seed %d: defaults (-API server +Seamark):\n%s", seed, cmp.Diff(stored, got))
		}
		if !equality.Semantic.DeepEqual(got, &wanted) {
			changed++
		}
		if again := template.WithDefaults(got); !equality.Semantic.DeepEqual(again, got) {
			t.Fatalf("seed %d: defaults of defaults (-once +twice):\n%s", seed, cmp.Diff(got, again))
		}
	}
	if changed < 2900 {
		t.Errorf("defaults changed %d of 3000 templates: the test compares little", changed)
	}
}

func TestEmptyTemplateHasDefaultsOfTheAPIServer(t *testing.T) {
	t.Parallel()
	wanted := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a:1"}}}}
	expect.Equal(t, "defaults (-API server +Seamark)", byTheAPIServer(t, wanted), template.WithDefaults(wanted))
}

// TestPorts resolves named and numbered ports.
func TestPorts(t *testing.T) {
	ports := []corev1.ContainerPort{
		{Name: "web", ContainerPort: 8080}, {Name: "web", ContainerPort: 8081}, {Name: "udp", ContainerPort: 53, Protocol: corev1.ProtocolUDP},
		{Name: "7070", ContainerPort: 7071}, {Name: "odd", ContainerPort: 70000}, {Name: "zero"}, {ContainerPort: 9090},
		{Name: "host", ContainerPort: 80, HostPort: 8000},
	}
	for name, port := range map[string]intstr.IntOrString{
		"number": intstr.FromInt32(80), "minimum": intstr.FromInt32(1), "maximum": intstr.FromInt32(65535),
		"zero": intstr.FromInt32(0), "negative": intstr.FromInt32(-1), "too large": intstr.FromInt32(65536),
		"name": intstr.FromString("web"), "UDP": intstr.FromString("udp"), "host port": intstr.FromString("host"),
		"unknown name": intstr.FromString("nope"), "different case": intstr.FromString("Web"),
		"number as string": intstr.FromString("9000"), "name that is a number": intstr.FromString("7070"),
		"too large as string": intstr.FromString("65536"), "more than 64 bits": intstr.FromString("99999999999999999999"),
		"more than 32 bits": intstr.FromString("4294967376"), "negative as string": intstr.FromString("-1"), "signed": intstr.FromString("+80"),
		"padded": intstr.FromString(" 80"), "hexadecimal": intstr.FromString("0x50"), "octal": intstr.FromString("0080"), "grouped": intstr.FromString("8_0"),
		"name of an invalid port": intstr.FromString("odd"), "name of port 0": intstr.FromString("zero"),
	} {
		t.Run(name, func(t *testing.T) {
			want, err := kubeprobe.ResolveContainerPort(port, &corev1.Container{Ports: ports})
			if err != nil {
				want = 0
			}
			if got := plannedPort(t, ports, port); got != want {
				t.Errorf("the kubelet resolves %s to %d, Seamark to %d", port.String(), want, got)
			}
		})
	}
}

// plannedPort returns the port in the plan of a pod, or 0 if the probe is not planned.
func plannedPort(t *testing.T, ports []corev1.ContainerPort, port intstr.IntOrString) int {
	t.Helper()
	pod := builders.Pod("ns", "pod").Node("node").Build()
	pod.Spec.Containers[0].Ports = ports
	pod.Labels = map[string]string{"app": "game"}
	marker := builders.Marker("ns", "m").Selector("app", "game").
		Probe(builders.Probe("p").Container(pod.Spec.Containers[0].Name)).Build()
	marker.Spec.Probes[0].Probe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
	compiled, err := plan.Compile(marker)
	expect.NoError(t, err)
	spec := plan.Node([]*corev1.Pod{pod}, []*plan.Marker{compiled}, plan.KubernetesDefaults())
	if len(spec.PodProbes) == 0 {
		return 0
	}
	return spec.PodProbes[0].Probes[0].Probe.TCPSocket.Port.IntValue()
}
