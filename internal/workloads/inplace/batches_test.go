// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// The grace period is before the first batch only, and batches follow it.
func TestGracePeriodBeforeBatches(t *testing.T) {
	one := prioritized("", "1", "")
	n := newNode(pod(one))
	n.write(start(t, n, one, images(one, "2", "2", "1"), "web-b", 5*time.Second, now), all)
	if progress := inplace.Next(n.pod, now); progress.Patch != nil || progress.After != 5*time.Second {
		t.Fatalf("step %+v, want to wait for 5 s", progress)
	}
	at := now.Add(6 * time.Second)
	for i, want := range []string{"side", "main"} {
		progress := inplace.Next(n.pod, at)
		if changed(progress.Patch) != want || progress.After != 0 {
			t.Fatalf("batch %d: step %+v, want %s", i, progress, want)
		}
		n.write(progress.Patch, all)
		n.sync(at)
	}
	finish(t, n, at)
}

// Images and resources of a container change together. A crash between both writes is not the next
// batch.
func TestResourcesInBatches(t *testing.T) {
	one := prioritized("", "1", "")
	two := images(one, "2", "2", "1")
	two.Spec.Containers[0].Resources.Requests = list("cpu", "2")
	two.Spec.Containers[1].Resources.Requests = list("cpu", "1")
	for name, writes := range map[string]int{"all writes": all, "crash before the resize": 2} {
		t.Run(name, func(t *testing.T) {
			n := newNode(pod(one))
			n.write(start(t, n, one, two, "web-b", 0, now), writes)
			if writes == 2 {
				n.write(inplace.Next(n.pod, now).Patch, all)
			}
			if cpu := n.pod.Spec.Containers[1].Resources.Requests["cpu"]; cpu.String() != "1" {
				t.Errorf("first batch: cpu of side %s, want 1", cpu.String())
			}
			s := state(t, n.pod)
			if cpu := s.NextContainerResources["main"].Requests["cpu"]; cpu.String() != "2" ||
				!slices.Equal(s.PreCheckBeforeNext.ContainersRequiredReady, []string{"side"}) {
				t.Errorf("state %+v, want resources of main", s)
			}
			if cpu := n.pod.Spec.Containers[0].Resources.Requests["cpu"]; cpu.String() != "1" {
				t.Errorf("first batch: cpu of main %s, want 1", cpu.String())
			}
			n.sync(now)
			patch := inplace.Next(n.pod, now).Patch
			if cpu := patch.Resources["main"].Requests["cpu"]; changed(patch) != "main" || cpu.String() != "2" {
				t.Fatalf("second batch %+v, want image and resources of main", patch)
			}
			n.write(patch, writes)
			finish(t, n, now)
			if cpu := n.pod.Spec.Containers[0].Resources.Requests["cpu"]; cpu.String() != "2" {
				t.Errorf("cpu of main %s, want 2", cpu.String())
			}
			if s := state(t, n.pod); len(s.NextContainerResources) > 0 || s.PreCheckBeforeNext != nil {
				t.Errorf("state after the update: %+v", s)
			}
		})
	}
}

// The node has no room for the larger container, but the next batch makes room.
func TestResizeThatWaitsForTheNextBatch(t *testing.T) {
	one := prioritized("", "1", "")
	one.Spec.Containers[1].Resources.Requests = list("cpu", "1")
	two := one.DeepCopy()
	two.Spec.Containers[0].Resources.Requests = list("cpu", "500m")
	two.Spec.Containers[1].Resources.Requests = list("cpu", "1500m")
	n := newNode(pod(one))
	n.write(start(t, n, one, two, "web-b", 0, now), all)
	pending := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: "Deferred"}
	n.pod.Status.Conditions = append(n.pod.Status.Conditions, pending)
	patch := inplace.Next(n.pod, now).Patch
	if changed(patch) != "main" {
		t.Fatalf("got %v, want the resources of main", patch)
	}
	n.write(patch, all)
	if inplace.Done(n.pod) {
		t.Error("done before the resize")
	}
	n.pod.Status.Conditions = n.pod.Status.Conditions[:2]
	finish(t, n, now)
}

// A label to which a container of a later batch refers changes with that container: if it is restarted
// before, it has the old image and the old value.
func TestLabelsInBatches(t *testing.T) {
	one := prioritized("1", "", "")
	two := images(one, "2", "2", "1")
	two.Labels["zone"], two.Labels["tier"], two.Annotations = "b", "gold", map[string]string{"note": "x"}
	three := two.DeepCopy()
	three.Spec.Containers[0].Env = append(three.Spec.Containers[0].Env, corev1.EnvVar{
		Name: "ZONE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['zone']"}},
	})
	for name, test := range map[string]struct {
		to    *corev1.PodTemplateSpec
		first map[string]string
		meta  metav1.ObjectMeta
	}{
		"only the later container refers to it": {
			two, map[string]string{"tier": "gold"},
			metav1.ObjectMeta{Labels: map[string]string{"zone": "b"}, Annotations: map[string]string{"note": "x"}},
		},
		"both containers refer to it": {
			three, map[string]string{"tier": "gold", "zone": "b"},
			metav1.ObjectMeta{Annotations: map[string]string{"note": "x"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := images(test.to, "1", "1", "1")
			from.Labels, from.Annotations = map[string]string{"app": "web"}, nil
			n := newNode(pod(from))
			n.write(start(t, n, from, test.to, "web-b", 0, now), all)
			got := maps.Clone(n.pod.Labels)
			maps.DeleteFunc(got, func(key, _ string) bool { return key != "zone" && key != "tier" })
			if diff := cmp.Diff(test.first, got); diff != "" || n.pod.Annotations["note"] != "" {
				t.Errorf("labels after the first batch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]metav1.ObjectMeta{"side": test.meta}, state(t, n.pod).NextContainerRefMetadata); diff != "" {
				t.Errorf("nextContainerRefMetadata (-want +got):\n%s", diff)
			}
			n.sync(now)
			n.write(inplace.Next(n.pod, now).Patch, all)
			if n.pod.Labels["zone"] != "b" || n.pod.Annotations["note"] != "x" {
				t.Errorf("labels %v, annotations %v after the second batch", n.pod.Labels, n.pod.Annotations)
			}
			finish(t, n, now)
		})
	}
}

// In these cases, batches make impossible what is possible at once.
func TestChangesThatBatchesPrevent(t *testing.T) {
	limits := func(p *corev1.PodTemplateSpec, i int, cpu string) {
		p.Spec.Containers[i].Resources.Limits = list("cpu", cpu, "memory", "1Gi")
		p.Spec.Containers[i].Resources.Requests = list("cpu", "1", "memory", "1Gi")
	}
	for name, test := range map[string]struct {
		priority string
		to       func(from, to *corev1.PodTemplateSpec)
		why      string
	}{
		"a restarted container refers to a resource that changes later": {
			"1", func(from, to *corev1.PodTemplateSpec) {
				env := corev1.EnvVar{Name: "CPU", ValueFrom: &corev1.EnvVarSource{
					ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "requests.cpu", ContainerName: "main"},
				}}
				for _, each := range []*corev1.PodTemplateSpec{from, to} {
					each.Spec.Containers[1].Env = append(each.Spec.Containers[1].Env, env)
				}
				to.Spec.Containers[0].Resources.Requests, to.Spec.Containers[1].Image = list("cpu", "2"), "side:2"
			},
			"container side refers to requests.cpu of container main, which changes after its restart",
		},
		"the QoS class between the batches": {
			"1", func(from, to *corev1.PodTemplateSpec) {
				for i := range from.Spec.Containers {
					limits(from, i, "1")
					limits(to, i, "1")
				}
				from.Spec.InitContainers, to.Spec.InitContainers = nil, nil
				limits(from, 1, "2")
				limits(to, 0, "2")
			},
			"the QoS class changes from Burstable to Guaranteed",
		},
	} {
		for _, priority := range []string{"", test.priority} {
			from := prioritized("", priority, "")
			to, want := from.DeepCopy(), ""
			test.to(from, to)
			if priority != "" {
				want = test.why
			}
			if _, why := inplace.Between(from, to).Decide(pod(from)); why != want {
				t.Errorf("%s, priority %q: why %q, want %q", name, priority, why, want)
			}
		}
	}
}

// openKruise continues an update by the rules of OpenKruise 1.9: a container is updated when its image
// ID differs, or when its status has the image of the specification; containers of the highest
// priority that the webhook has written change when those of the last batch are ready.
func openKruise(t *testing.T, n *node) {
	t.Helper()
	s := state(t, n.pod)
	for i := range n.pod.Spec.Containers {
		spec, status := &n.pod.Spec.Containers[i], &n.pod.Status.ContainerStatuses[i]
		if old, ok := s.LastContainerStatuses[spec.Name]; ok && old.ImageID == status.ImageID && spec.Image != status.Image {
			return
		}
		if s.PreCheckBeforeNext != nil && slices.Contains(s.PreCheckBeforeNext.ContainersRequiredReady, spec.Name) && !status.Ready {
			return
		}
	}
	if len(s.NextContainerImages) == 0 {
		planning.Condition(n.pod, pub.InPlaceUpdateReady).Status = corev1.ConditionTrue
		return
	}
	order := slices.SortedFunc(maps.Keys(s.NextContainerImages), func(a, b string) int {
		return strings.Compare(level(n.pod, b), level(n.pod, a))
	})
	for i := range n.pod.Spec.Containers {
		if spec := &n.pod.Spec.Containers[i]; spec.Name == order[0] {
			spec.Image, n.pod.Generation = s.NextContainerImages[spec.Name], n.pod.Generation+1
			s.LastContainerStatuses[spec.Name] = pub.InPlaceUpdateContainerStatus{ImageID: n.pod.Status.ContainerStatuses[i].ImageID}
		}
	}
	delete(s.NextContainerImages, order[0])
	s.PreCheckBeforeNext = nil
	if len(s.NextContainerImages) > 0 {
		s.PreCheckBeforeNext = &pub.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: order[:1]}
	}
	s.ContainerBatchesRecord = append(s.ContainerBatchesRecord, pub.InPlaceUpdateContainerBatch{Containers: order[:1]})
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	n.pod.Annotations[pub.InPlaceUpdateStateKey] = string(text)
}

// level returns the key that OpenKruise's webhook has written to the container.
func level(p *corev1.Pod, name string) string {
	i := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	env := p.Spec.Containers[i].Env
	return env[len(env)-1].ValueFrom.ConfigMapKeyRef.Key
}

// Either program continues the batches of the other, after each of them.
func TestTakeOverBetweenBatches(t *testing.T) {
	one := prioritized("5", "9", "7")
	two := images(one, "2", "2", "2")
	for switched := range 8 {
		n := newNode(pod(one))
		barrier(n.pod, 0, "p_5")
		barrier(n.pod, 1, "p_9")
		barrier(n.pod, 2, "p_7")
		n.write(start(t, n, one, two, "web-b", 0, now), all)
		var order []string
		for i := range 4 {
			before := maps.Clone(n.runs)
			n.sync(now.Add(time.Duration(i) * time.Minute))
			for _, name := range []string{"side", "last", "main"} {
				if n.runs[name] != before[name] {
					order = append(order, name)
				}
			}
			if switched>>i&1 == 1 {
				openKruise(t, n)
			} else {
				n.write(inplace.Next(n.pod, now.Add(time.Duration(i)*time.Minute)).Patch, all)
			}
		}
		if diff := cmp.Diff([]string{"side", "last", "main"}, order); diff != "" {
			t.Errorf("batches of OpenKruise %03b: (-want +got):\n%s", switched, diff)
		}
		finish(t, n, now.Add(time.Hour))
	}
}

// A batch may change only resources. OpenKruise does not wait for it before the pod is ready.
func TestResourcesThatWaitAlone(t *testing.T) {
	one := prioritized("", "1", "")
	refersTo("requests.cpu", corev1.RestartContainer)(one)
	n := newNode(pod(one))
	n.pod.Annotations[pub.InPlaceUpdateStateKey] = `{"revision":"web-a","updateTimestamp":"2026-11-21T12:00:00Z",` +
		`"lastContainerStatuses":{"side":{"imageID":"id-side:0"}},"updateResources":true,"updateImages":true,` +
		`"nextContainerImages":{"none":"x","last":""},"nextContainerResources":{"main":{"requests":{"cpu":"2"}}},` +
		`"preCheckBeforeNext":{"containersRequiredReady":["side"]},` +
		`"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":["side"]}]}`
	n.sync(now)
	n.write(inplace.Next(n.pod, now).Patch, all)
	if cpu := n.pod.Spec.Containers[0].Resources.Requests["cpu"]; !cpu.Equal(resource.MustParse("2")) {
		t.Errorf("cpu %s, want 2", cpu.String())
	}
	if condition(n.pod, pub.InPlaceUpdateReady) != corev1.ConditionFalse {
		t.Error("the pod is ready while a container is restarted")
	}
	finish(t, n, now)
	if n.pod.Spec.Containers[2].Image != "last:1" {
		t.Errorf("image %q, want the old one", n.pod.Spec.Containers[2].Image)
	}
}
