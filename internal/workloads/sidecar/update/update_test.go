// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/update"
)

// world is a set with its revisions and pods, and nodes that are simulated.
type world struct {
	*testing.T
	set       *v1alpha1.SidecarSet
	revisions []*appsv1.ControllerRevision
	pods      []*corev1.Pod
	now       time.Time
	started   int
}

// newWorld returns a set with a container and a native sidecar, and pods that have its first revision.
func newWorld(t *testing.T, pods int) *world {
	t.Helper()
	w := &world{T: t, now: time.Unix(1_800_000_000, 0)}
	w.set = &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "set"}, Spec: v1alpha1.SidecarSetSpec{
		Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}},
		Containers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "agent", Image: "agent:1"}}},
		InitContainers: []v1alpha1.SidecarContainer{
			{Container: corev1.Container{Name: "proxy", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
			{Container: corev1.Container{Name: "setup", Image: "setup:1"}},
		},
	}}
	w.accept(func(*v1alpha1.SidecarSetSpec) {})
	for i := range pods {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: fmt.Sprintf("game-%02d", i), UID: types.UID(fmt.Sprint(i)), Generation: 1, Labels: map[string]string{"app": "game"}},
			Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "server", Image: "server:1"}}},
		}
		injected, _, err := inject.Inject(pod, w.latest(), unknown(), metav1.NewTime(w.now))
		if err != nil {
			t.Fatal(err)
		}
		w.pods = append(w.pods, injected)
		w.run(injected)
	}
	return w
}

// unknown knows no other sets.
func unknown() inject.Known { return func(_, _ string) *inject.Revision { return nil } }

// accept changes the set and records the revision.
func (w *world) accept(change func(*v1alpha1.SidecarSetSpec)) {
	w.Helper()
	change(&w.set.Spec)
	rev, err := history.New(w.set, "system", int64(len(w.revisions)+1), 0)
	if err != nil {
		w.Fatal(err)
	}
	w.revisions = append(w.revisions, rev)
	w.set.Status.LatestRevision = rev.Name
	w.set.Status.InForce = &v1alpha1.SidecarSetInForce{Selector: w.set.Spec.Selector}
}

func (w *world) latest() *inject.Revision {
	w.Helper()
	parsed, err := history.Parse(w.revisions[len(w.revisions)-1])
	if err != nil {
		w.Fatal(err)
	}
	return parsed
}

// run starts the containers whose image differs, as the kubelet does, and makes the pod ready.
func (w *world) run(pod *corev1.Pod) {
	start := func(all []corev1.Container, statuses *[]corev1.ContainerStatus) {
		before := *statuses
		*statuses = nil
		for i := range all {
			status := corev1.ContainerStatus{Name: all[i].Name}
			for _, old := range before {
				if old.Name == status.Name {
					status = old
				}
			}
			if status.Image != all[i].Image {
				w.started++
				status.Image, status.ImageID = all[i].Image, "sha256:"+all[i].Image
				status.ContainerID = fmt.Sprintf("containerd://%d", w.started)
				status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}
			}
			status.Ready = true
			*statuses = append(*statuses, status)
		}
	}
	start(pod.Spec.Containers, &pod.Status.ContainerStatuses)
	start(pod.Spec.InitContainers, &pod.Status.InitContainerStatuses)
	pod.Status.Phase, pod.Status.ObservedGeneration = corev1.PodRunning, pod.Generation
	w.setReady(pod, corev1.ConditionTrue)
}

func (w *world) setReady(pod *corev1.Pod, status corev1.ConditionStatus) {
	if c := planning.Condition(pod, corev1.PodReady); c != nil && c.Status == status {
		return
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(w.now)}}
}

// plan returns the next step.
func (w *world) plan() update.Output {
	w.Helper()
	out, err := update.Plan(update.Input{Set: w.set, Pods: w.pods, Revisions: w.revisions, Now: w.now})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// apply writes the patches. The kubelet stops the containers at once.
func (w *world) apply(out update.Output) {
	for _, patch := range out.Patches {
		pod := patch.Pod
		for key, value := range patch.Annotations {
			if value == nil {
				delete(pod.Annotations, key)
			} else {
				pod.Annotations[key] = *value
			}
		}
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				c := &list[i]
				if image, found := patch.Images[c.Name]; found {
					c.Image = image
				}
				if wanted, found := patch.Resources[c.Name]; found {
					c.Resources = wanted
				}
			}
		}
		pod.Generation++
		if len(patch.Images) > 0 {
			w.setReady(pod, corev1.ConditionFalse)
		}
	}
}

func images(pod *corev1.Pod) string {
	var all []string
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			all = append(all, c.Image)
		}
	}
	return strings.Join(all, " ")
}

// TestRollout updates pods while the nodes are as slow as a random number says.
func TestRollout(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 25))
		w := newWorld(t, 10)
		w.accept(func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image, s.InitContainers[0].Image = "agent:2", "proxy:2"
			s.UpdateStrategy.Partition = new(intstr.FromString("25%")) // 3 of 10
			s.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(2))
		})
		for range 100 {
			w.now = w.now.Add(time.Second)
			out := w.plan()
			w.apply(out)
			disturbed, updated := 0, 0
			for _, pod := range w.pods {
				if !planning.Ready(pod) {
					disturbed++
				}
				if strings.Contains(images(pod), "agent:2") {
					updated++
				}
			}
			if disturbed > 2 || updated > 7 {
				t.Fatalf("seed %d: %d pods are unavailable, %d updated", seed, disturbed, updated)
			}
			for _, pod := range w.pods {
				if !planning.Ready(pod) && random.IntN(3) == 0 {
					w.run(pod)
				}
			}
		}
		out := w.plan()
		if out.Matched != 10 || out.Updated != 7 || out.Ready != 10 || out.UpdatedReady != 7 || !out.Empty() || out.NotUpgradable != 0 {
			t.Fatalf("seed %d: %+v", seed, out)
		}
		for _, pod := range w.pods {
			if got := images(pod); got != "proxy:2 setup:1 agent:2 server:1" && got != "proxy:1 setup:1 agent:1 server:1" {
				t.Fatalf("seed %d: images %s", seed, got)
			}
			got := inject.Of(pod, "logs")
			if updated := strings.Contains(images(pod), "agent:2"); updated != (got.Revision == w.latest().Name) || updated != (got.Hash == w.latest().Hash) {
				t.Fatalf("seed %d: updated %t, revision %+v", seed, updated, got)
			}
		}
	}
}

func TestChanges(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.SidecarSetSpec)
		// prepare changes the pod.
		prepare func(*corev1.Pod)
		// patches are the images and the resources of the first patch, why is why there is none.
		images, why string
		// updated is whether the pod counts as updated before.
		updated bool
	}{
		"image":             {change: func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Image = "agent:2" }, images: "map[agent:agent:2]"},
		"native sidecar":    {change: func(s *v1alpha1.SidecarSetSpec) { s.InitContainers[0].Image = "proxy:2" }, images: "map[proxy:proxy:2]"},
		"init container":    {change: func(s *v1alpha1.SidecarSetSpec) { s.InitContainers[1].Args = []string{"x"} }, images: "map[]"},
		"unmounted volume":  {change: func(s *v1alpha1.SidecarSetSpec) { s.Volumes = []corev1.Volume{{Name: "v"}} }, updated: true},
		"variable":          {change: func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Env = []corev1.EnvVar{{Name: "A"}} }, why: "games/game-00: spec.containers[agent].env changes"},
		"another container": {change: func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Name = "other" }, why: "games/game-00: container other is not at the same place"},
		"one more": {
			change: func(s *v1alpha1.SidecarSetSpec) {
				s.Containers = append(s.Containers, v1alpha1.SidecarContainer{Container: corev1.Container{Name: "zz"}})
			},
			why: "games/game-00: the number of containers changes",
		},
		"sharing": {change: func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].ShareVolumePolicy.Type = "enabled" }, why: "games/game-00: what container agent gets of the pod's containers changes"},
		"paused":  {change: func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Image, s.UpdateStrategy.Paused = "agent:2", true }},
		"no update": {change: func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image, s.UpdateStrategy.Type = "agent:2", v1alpha1.NotUpdateSidecarSetStrategyType
		}},
		"not selected": {change: func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image = "agent:2"
			s.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "true"}}
		}},
		"selected": {change: func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image = "agent:2"
			s.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
		}, images: "map[agent:agent:2]"},
		"all keep the old one": {change: func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image, s.UpdateStrategy.Partition = "agent:2", new(intstr.FromString("100%"))
		}},
		"99 percent keep it": {change: func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image, s.UpdateStrategy.Partition = "agent:2", new(intstr.FromString("99%"))
		}, images: "map[agent:agent:2]"},
		"a revision that is gone": {
			change:  func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Image = "agent:2" },
			prepare: func(p *corev1.Pod) { rename(p) }, images: "map[agent:agent:2]",
		},
		"a revision that is gone, other variables": {
			change: func(s *v1alpha1.SidecarSetSpec) {
				s.Containers[0].Image, s.Containers[0].Env = "agent:2", []corev1.EnvVar{{Name: "A"}}
			},
			prepare: func(p *corev1.Pod) { rename(p) }, why: `games/game-00: its revision "logs-gone" does not exist`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			if test.prepare != nil {
				test.prepare(w.pods[0])
			}
			w.accept(test.change)
			out := w.plan()
			if out.Why != test.why || (out.NotUpgradable == 1) != (test.why != "") || (out.Updated == 1) != test.updated {
				t.Errorf("%d pods not upgradable: %s; want %s", out.NotUpgradable, out.Why, test.why)
			}
			if got := len(out.Patches); (got == 1) != (test.images != "") {
				t.Fatalf("%d patches", got)
			}
			if test.images != "" && fmt.Sprint(out.Patches[0].Images) != test.images {
				t.Errorf("images %v, want %s", out.Patches[0].Images, test.images)
			}
		})
	}
}

// rename makes the pod one of a revision that does not exist.
func rename(pod *corev1.Pod) {
	name := inject.Of(pod, "logs").Revision
	for _, key := range []string{v1alpha1.SidecarSetHashKey, v1alpha1.SidecarSetHashWithoutImageKey} {
		pod.Annotations[key] = strings.ReplaceAll(pod.Annotations[key], name, "logs-gone")
	}
}

// TestResources checks that resources follow the other changes, and what a refusal means.
func TestResources(t *testing.T) {
	w := newWorld(t, 1)
	limits := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}, Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
	}
	pod := w.pods[0]
	w.accept(func(s *v1alpha1.SidecarSetSpec) { s.InitContainers[0].Resources = limits("1") })
	if out := w.plan(); out.NotUpgradable != 1 || !strings.Contains(out.Why, "QoS class changes from BestEffort to Burstable") {
		t.Errorf("%+v", out)
	}
	pod.Spec.Containers[1].Resources = limits("2")
	out := w.plan()
	if len(out.Patches) != 1 || !out.Patches[0].Resources["proxy"].Limits["cpu"].Equal(resource.MustParse("1")) {
		t.Fatalf("%+v", out)
	}
	// The program ends between the two writes of the patch.
	delete(out.Patches[0].Resources, "proxy")
	w.apply(out)
	out = w.plan()
	if out.Updated != 1 || out.UpdatedReady != 0 || len(out.Patches) != 1 || out.Patches[0].Reason != "Resize" {
		t.Fatalf("%+v", out)
	}
	pod.Annotations[pub.ResizeRefusedKey] = "no room"
	if out = w.plan(); len(out.Patches) != 0 || out.NotUpgradable != 1 || out.Why != "games/game-00: no room" {
		t.Errorf("%+v", out)
	}
}

// TestAnnotationsOfAnUpdate checks that an update sets what it overwrites or merges, and nothing that it retains.
func TestAnnotationsOfAnUpdate(t *testing.T) {
	w := newWorld(t, 1)
	w.pods[0].Annotations["merged"], w.pods[0].Annotations["text"] = `{"a":1}`, "no JSON"
	w.accept(func(s *v1alpha1.SidecarSetSpec) {
		s.Containers[0].Image = "agent:2"
		s.PatchPodMetadata = []v1alpha1.SidecarSetPatchPodMetadata{
			{PatchPolicy: "Retain", Annotations: map[string]string{"retained": "1"}},
			{PatchPolicy: "Overwrite", Annotations: map[string]string{"overwritten": "2"}},
			{PatchPolicy: "MergePatchJson", Annotations: map[string]string{"merged": `{"b":2}`, "text": "{}"}},
		}
	})
	out := w.plan()
	w.apply(out)
	got := w.pods[0].Annotations
	if _, retained := got["retained"]; retained || got["overwritten"] != "2" || got["merged"] != `{"a":1,"b":2}` || got["text"] != "no JSON" {
		t.Errorf("annotations %v", got)
	}
	if len(out.Events) != 1 || out.Events[0].Message() != "Annotation text of pod game-00 stays as it is: it is no JSON object." {
		t.Errorf("events %+v", out.Events)
	}
}

// TestOrderOfAnUpdate checks that pods that are not ready come first, and that the pods of one owner are apart.
func TestOrderOfAnUpdate(t *testing.T) {
	w := newWorld(t, 6)
	for i, pod := range w.pods {
		owner := fmt.Sprint("set-", i/3)
		pod.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(owner), Name: owner, Controller: new(true)}}
	}
	w.setReady(w.pods[5], corev1.ConditionFalse)
	w.accept(func(s *v1alpha1.SidecarSetSpec) {
		s.Containers[0].Image = "agent:2"
		s.UpdateStrategy.MaxUnavailable = new(intstr.FromString("100%"))
	})
	var order []string
	for _, patch := range w.plan().Patches {
		order = append(order, patch.Pod.Name)
	}
	if got, want := strings.Join(order, " "), "game-05 game-00 game-03 game-01 game-04 game-02"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

// TestRevisionsThatNothingNeeds checks which revisions are deleted.
func TestRevisionsThatNothingNeeds(t *testing.T) {
	w := newWorld(t, 1)
	w.set.Spec.UpdateStrategy.Paused, w.set.Spec.RevisionHistoryLimit = true, new(int32(2))
	for i := range 6 {
		w.accept(func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Image = fmt.Sprint("agent:", i+2) })
	}
	w.set.Status.InForce.NamedRevision = w.revisions[1].Name
	var deleted []string
	for _, rev := range w.plan().DeleteRevisions {
		deleted = append(deleted, rev.Name)
	}
	if want := []string{w.revisions[2].Name, w.revisions[3].Name}; fmt.Sprint(deleted) != fmt.Sprint(want) {
		t.Errorf("deleted %v, want %v", deleted, want)
	}
}

// BenchmarkPlan plans a step of a set with 3,000 pods, half of which are updated.
func BenchmarkPlan(b *testing.B) {
	t := &testing.T{}
	w := newWorld(t, 3000)
	w.accept(func(s *v1alpha1.SidecarSetSpec) {
		s.Containers[0].Image = "agent:2"
		s.UpdateStrategy.MaxUnavailable = new(intstr.FromString("50%"))
	})
	w.apply(w.plan())
	w.now = w.now.Add(time.Minute)
	for _, pod := range w.pods {
		w.run(pod)
	}
	b.ReportAllocs()
	for b.Loop() {
		w.plan()
	}
}
