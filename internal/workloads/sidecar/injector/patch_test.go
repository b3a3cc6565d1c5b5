// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
)

// patched applies the difference of the pods to the JSON of the first one.
func patched(t *testing.T, raw []byte, before, after *corev1.Pod) []byte {
	t.Helper()
	operations, err := difference(before, after)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	if len(operations) == 0 {
		return raw
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err == nil {
		raw, err = patch.Apply(raw)
	}
	if err != nil {
		t.Fatalf("%s: %v", encoded, err)
	}
	return raw
}

// randomList returns up to five elements, with fields that later versions of Kubernetes may have in those that begin with an o.
func randomList(r *rand.Rand, kinds string) []corev1.Container {
	var list []corev1.Container
	for _, i := range r.Perm(5)[:r.IntN(6)] {
		list = append(list, corev1.Container{Name: fmt.Sprintf("%c%d", kinds[i%len(kinds)], i), Image: fmt.Sprint(r.IntN(3))})
	}
	return list
}

// TestPatchesOfLists changes lists of containers at random: the pod becomes what it must, and fields that this version does not
// know stay in their containers.
func TestPatchesOfLists(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 25))
		before, after := &corev1.Pod{}, &corev1.Pod{}
		before.Spec.Containers, after.Spec.Containers = randomList(r, "oi"), randomList(r, "oi")
		before.Spec.InitContainers, after.Spec.InitContainers = randomList(r, "oi"), randomList(r, "oi")
		for _, c := range after.Spec.Containers {
			after.Spec.Volumes = append(after.Spec.Volumes, corev1.Volume{Name: c.Name})
			after.Spec.ImagePullSecrets = append(after.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: c.Name})
		}
		raw, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		got := patched(t, []byte(strings.ReplaceAll(string(raw), `{"name":"o`, `{"later":{"of":"this"},"name":"o`)), before, after)
		pod := &corev1.Pod{}
		if err := json.Unmarshal(got, pod); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(after.Spec, pod.Spec, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: pod (-want +got):\n%s", seed, diff)
		}
		var later struct {
			Spec struct {
				Containers []struct {
					Name  string
					Later map[string]string
				}
			}
		}
		if err := json.Unmarshal(got, &later); err != nil {
			t.Fatal(err)
		}
		stayed, _ := json.Marshal(before.Spec.Containers)
		for _, c := range later.Spec.Containers {
			if want := c.Name[0] == 'o' && strings.Contains(string(stayed), `"`+c.Name+`"`); (c.Later["of"] == "this") != want {
				t.Fatalf("seed %d: the container %s has the fields %v of a later version, want them: %t", seed, c.Name, c.Later, want)
			}
		}
	}
}

// TestPatchesOfPods patches pods that differ in one part.
func TestPatchesOfPods(t *testing.T) {
	for name, change := range map[string]func(p *corev1.Pod){
		"nothing":            func(*corev1.Pod) {},
		"annotation":         func(p *corev1.Pod) { p.Annotations["a~b/c"] = "" },
		"changed annotation": func(p *corev1.Pod) { p.Annotations["prometheus.io/scrape"] = "false" },
		"mount":              func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts = p.Spec.Containers[0].VolumeMounts[:1] },
		"image, and in front": func(p *corev1.Pod) {
			p.Spec.Containers[0].Image = "other"
			p.Spec.Containers = append([]corev1.Container{{Name: "agent", Image: "agent"}}, p.Spec.Containers...)
		},
		"volumes in another order": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "first"}, p.Spec.Volumes[1], p.Spec.Volumes[0]}
		},
		"a name twice": func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0], corev1.Container{Name: "x"})
		},
		"no field": func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} },
	} {
		t.Run(name, func(t *testing.T) {
			before := fullPod()
			after := before.DeepCopy()
			change(after)
			raw, err := json.Marshal(before)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := json.Marshal(after)
			var expected, got any
			if json.Unmarshal(want, &expected) != nil || json.Unmarshal(patched(t, raw, before, after), &got) != nil {
				t.Fatal("no JSON")
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
		})
	}
	plain := fullPod()
	plain.Annotations = nil
	if got, err := difference(plain, fullPod()); err != nil || len(got) != 1 || got[0].Path != "/metadata/annotations" {
		t.Errorf("a pod without annotations: %v, error %v", got, err)
	}
}
