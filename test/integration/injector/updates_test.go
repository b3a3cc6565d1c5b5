// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/kubelet"
)

// testUpdate changes the image of a container and of a native sidecar in running pods, one after the other.
func testUpdate(t *testing.T, i *installation) {
	set := newSet(t, i, "updated", func(s *v1alpha1.SidecarSetSpec) {
		s.InitContainers = []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "proxy", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}}
	})
	env.RunKubelets(t, kubelet.Options{Config: i.Config, Failed: func(err error) { t.Error(err) }, Namespace: set.Spec.Namespace})
	i.apply(set)
	i.injects(t, set)
	p := pod(set.Spec.Namespace, "game")
	i.eventually(t, "the set is injected", p, has("updated server"))
	const count = 5
	for n := range count {
		created := p.DeepCopy()
		created.Name = fmt.Sprint("game-", n)
		i.Create(created)
	}
	status := func(want v1alpha1.SidecarSetStatus) {
		t.Helper()
		i.eventually(t, fmt.Sprintf("status %+v", want), p, func(*corev1.Pod, error) error {
			i.Get(set)
			got := v1alpha1.SidecarSetStatus{
				MatchedPods: set.Status.MatchedPods, UpdatedPods: set.Status.UpdatedPods, ReadyPods: set.Status.ReadyPods, UpdatedReadyPods: set.Status.UpdatedReadyPods,
				NotUpgradablePods: set.Status.NotUpgradablePods,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	}
	status(v1alpha1.SidecarSetStatus{MatchedPods: count, UpdatedPods: count, ReadyPods: count, UpdatedReadyPods: count})
	i.edit(set, func(s *v1alpha1.SidecarSet) {
		s.Spec.Containers[0].Image, s.Spec.InitContainers[0].Image = "updated:2", "proxy:2"
		s.Spec.UpdateStrategy.Partition = new(intstr.FromInt32(2))
	})
	status(v1alpha1.SidecarSetStatus{MatchedPods: count, UpdatedPods: 3, ReadyPods: count, UpdatedReadyPods: 3})
	i.edit(set, func(s *v1alpha1.SidecarSet) { s.Spec.UpdateStrategy.Partition = nil })
	status(v1alpha1.SidecarSetStatus{MatchedPods: count, UpdatedPods: count, ReadyPods: count, UpdatedReadyPods: count})
	pods := &corev1.PodList{}
	expect.NoError(t, i.Client.List(t.Context(), pods, client.InNamespace(set.Spec.Namespace)))
	for _, each := range pods.Items {
		if each.Spec.Containers[0].Image != "updated:2" || each.Spec.InitContainers[0].Image != "proxy:2" || each.Status.ContainerStatuses[1].RestartCount != 0 ||
			inject.Of(&each, set.Name).Revision != set.Status.LatestRevision {
			t.Errorf("pod %s: %+v, annotations %v", each.Name, each.Spec.Containers, each.Annotations)
		}
	}
	// What cannot change in place is reported, and nothing changes.
	i.edit(set, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Args = []string{"-v"} })
	status(v1alpha1.SidecarSetStatus{MatchedPods: count, ReadyPods: count, NotUpgradablePods: count})
	condition := i.await(t, set, v1alpha1.SidecarSetUpgradable, metav1.ConditionFalse, "MustBeRecreated")
	if want := "game-0: spec.containers[updated].args changes"; !strings.Contains(condition.Message, want) {
		t.Errorf("message %q, want %q", condition.Message, want)
	}
}

// testUninjected counts the pods that a set selects and that run without it.
func testUninjected(t *testing.T, i *installation) {
	set := newSet(t, i, "late", nil)
	for n := range 3 {
		i.Create(pod(set.Spec.Namespace, fmt.Sprint("game-", n)))
	}
	i.apply(set)
	i.injects(t, set)
	counts := func(want int32) {
		t.Helper()
		i.eventually(t, fmt.Sprintf("%d pods run without the set", want), pod(set.Spec.Namespace, "x"), func(*corev1.Pod, error) error {
			i.Get(set)
			got := set.Status.UninjectedPods
			return await.ErrorIf(got != want, "%d", got)
		})
	}
	counts(3)
	i.Delete(pod(set.Spec.Namespace, "game-0"), client.GracePeriodSeconds(0))
	counts(2)
}

// testTogether lets two sets and the CloneSet that owns the pods change their images at the same time.
func testTogether(t *testing.T, i *installation) {
	first := i.apply(newSet(t, i, "first", nil))
	second := sidecarSet("second", nil)
	second.Spec.Namespace = first.Spec.Namespace
	i.apply(second)
	i.injects(t, first)
	i.injects(t, second)
	template := pod(first.Spec.Namespace, "game")
	i.eventually(t, "both sets are injected", template, has("first second server"))
	env.RunKubelets(t, kubelet.Options{Config: i.Config, Failed: func(err error) { t.Error(err) }, Namespace: first.Spec.Namespace})
	owner := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: first.Spec.Namespace, Name: "games"}, Spec: v1alpha1.CloneSetSpec{
		Replicas: new(int32(4)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
	}}
	owner.Spec.UpdateStrategy.Type = v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
	i.Create(owner)
	pods := func(images ...string) map[types.UID]bool {
		t.Helper()
		found := map[types.UID]bool{}
		i.eventually(t, fmt.Sprintf("all pods run %v", images), template, func(*corev1.Pod, error) error {
			list := &corev1.PodList{}
			expect.NoError(t, i.Client.List(t.Context(), list, client.InNamespace(first.Spec.Namespace)))
			clear(found)
			for _, each := range list.Items {
				found[each.UID] = true
				for n, container := range each.Spec.Containers {
					if container.Image != images[n] || len(each.Status.ContainerStatuses) <= n || each.Status.ContainerStatuses[n].Image != images[n] {
						return fmt.Errorf("pod %s: %+v", each.Name, each.Status.ContainerStatuses)
					}
				}
			}
			return await.ErrorIf(len(found) != 4, "%d pods", len(found))
		})
		return found
	}
	before := pods("first:1", "second:1", "game:1")
	i.edit(first, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Image = "first:2" })
	i.edit(second, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Image = "second:2" })
	base := owner.DeepCopy()
	owner.Spec.Template.Spec.Containers[0].Image = "game:2"
	expect.NoError(t, i.Client.Patch(t.Context(), owner, client.MergeFrom(base)))
	after := pods("first:2", "second:2", "game:2")
	expect.Equal(t, before, after, "pods were replaced")
	for _, set := range []*v1alpha1.SidecarSet{first, second} {
		i.eventually(t, set.Name+" reports all pods as updated", template, func(*corev1.Pod, error) error {
			i.Get(set)
			return await.ErrorIf(set.Status.UpdatedReadyPods != 4, "%+v", set.Status)
		})
	}
}
