// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/update"
	"github.com/seamark-dev/seamark/test/builders"
)

// foreign is a namespace that the set does not select.
const foreign = "foreign"

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
	w.set.Status.InForce = &v1alpha1.SidecarSetInForce{Revision: rev.Name, Selector: w.set.Spec.Selector}
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
	setCondition(pod, corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(w.now)})
}

func setCondition(pod *corev1.Pod, condition corev1.PodCondition) {
	pod.Status.Conditions = append(slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == condition.Type }), condition)
}

// plan returns the next step.
func (w *world) plan() update.Output {
	w.Helper()
	out, err := update.Plan(update.Input{
		Set: w.set, Pods: w.pods, Revisions: w.revisions, Now: w.now, Selects: func(namespace string) bool { return namespace != foreign },
		Guards: func(string) guard.Guards { return builders.Guards() },
	})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// apply writes the patches. The kubelet stops the containers at once.
func (w *world) apply(out update.Output) {
	for _, patch := range out.Patches {
		pod := patch.Pod
		for _, condition := range patch.Conditions {
			setCondition(pod, condition)
		}
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
		if len(patch.Images)+len(patch.Resources) > 0 {
			pod.Generation++
		}
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
