// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	ownerKey    = "game.kruise.io/owner-gss"
	priorityKey = "game.kruise.io/gameserver-update-priority"
	opsStateKey = "game.kruise.io/gameserver-opsState"
)

// game makes the calls that OpenKruiseGame's controller of GameServerSets makes.
type game struct {
	*world
	set *v1beta1.StatefulSet
}

// newGame creates the set as OpenKruiseGame does for a new GameServerSet.
func newGame(w *world, name string, replicas int32) *game {
	w.Helper()
	g := &game{world: w, set: &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: name, Annotations: map[string]string{"game.kruise.io/asts-hash": "1"},
		},
		Spec: v1beta1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: name, PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{ownerKey: name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{ownerKey: name}},
				Spec: corev1.PodSpec{
					Containers:     []corev1.Container{{Name: "main", Image: "image:1"}},
					ReadinessGates: []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}},
				},
			},
			ScaleStrategy: &v1beta1.StatefulSetScaleStrategy{},
			UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{
					MaxUnavailable:  new(intstr.FromInt32(1)),
					PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType,
					UnorderedUpdate: &v1beta1.UnorderedUpdateStrategy{PriorityStrategy: &pub.UpdatePriorityStrategy{
						OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: priorityKey}},
					}},
				},
			},
		},
	}}
	w.Create(g.set)
	return g
}

// write changes the whole object.
func (g *game) write(what string, change func()) {
	g.Helper()
	g.Until(what, func() error {
		g.Get(g.set)
		change()
		return g.Client.Update(g.Context(), g.set)
	})
}

// scale updates replicas, reserveOrdinals and scaleStrategy together.
func (g *game) scale(replicas int32, reserved ...int32) {
	g.Helper()
	g.write("the set is scaled", func() {
		g.set.Spec.Replicas, g.set.Spec.ReserveOrdinals = &replicas, nil
		for _, ordinal := range reserved {
			g.set.Spec.ReserveOrdinals = append(g.set.Spec.ReserveOrdinals, intstr.FromInt32(ordinal))
		}
		g.set.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{}
	})
}

// has waits until exactly the pods with the ordinals exist, all ready and with the image, and the
// status is what OpenKruiseGame copies to the GameServerSet.
func (g *game) has(image string, ordinals ...int) map[string]*corev1.Pod {
	g.Helper()
	var want []string
	for _, ordinal := range ordinals {
		want = append(want, fmt.Sprintf("%s-%d", g.set.Name, ordinal))
	}
	slices.Sort(want)
	var pods map[string]*corev1.Pod
	g.Shows(g.set, fmt.Sprintf("pods %v with %s", want, image), func() error {
		pods = g.servers()
		if names := slices.Sorted(maps.Keys(pods)); !slices.Equal(names, want) {
			return fmt.Errorf("pods %v", names)
		}
		for name, pod := range pods {
			if pod.DeletionTimestamp != nil || !planning.Ready(pod) || pod.Spec.Containers[0].Image != image {
				return fmt.Errorf("%s is not ready with the image", name)
			}
		}
		if g.set.Status.LabelSelector != ownerKey+"="+g.set.Name || g.set.Status.UpdateRevision == "" {
			return fmt.Errorf("status %+v", g.set.Status)
		}
		return g.statusGap(g.set, int32(len(want))) //nolint:gosec // a small number
	})
	return pods
}

func (g *game) servers() map[string]*corev1.Pod {
	g.Helper()
	pods, err := g.labeled(g.Context(), ownerKey, g.set.Name)
	g.Must(err)
	return pods
}

func (g *game) label(ordinal int, key, value string) {
	g.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: fmt.Sprintf("%s-%d", g.set.Name, ordinal)}}
	g.Patch(pod, `{"metadata":{"labels":{%q:%q}}}`, key, value)
}

// update replaces the image of the template, as UpdateWorkload of OpenKruiseGame does with a whole object.
func (g *game) update(image string, partition int32) {
	g.Helper()
	g.write("the template is updated", func() {
		g.set.Spec.Template.Spec.Containers[0].Image = image
		g.set.Spec.UpdateStrategy.RollingUpdate.Partition = &partition
		g.set.Annotations["game.kruise.io/asts-hash"] = image
	})
}

// images returns which pods have the image, by their names.
func (g *game) images(image string) string {
	g.Helper()
	var with []string
	for name, pod := range g.servers() {
		if pod.Spec.Containers[0].Image == image {
			with = append(with, name)
		}
	}
	slices.Sort(with)
	return strings.Join(with, " ")
}

func TestOpenKruiseGameScales(t *testing.T) {
	w := newWorld(t)
	g := newGame(w, "minecraft", 3)
	g.has("image:1", 0, 1, 2)

	// A game server that waits to be deleted is deleted first: OpenKruiseGame reserves its ordinal.
	g.label(1, opsStateKey, "WaitToDelete")
	g.scale(2, 1)
	g.has("image:1", 0, 2)

	// Scaled up with the ordinal still reserved, then with the ordinal free again.
	g.scale(4, 1)
	before := g.has("image:1", 0, 2, 3, 4)
	g.scale(5)
	after := g.has("image:1", 0, 1, 2, 3, 4)
	for name, pod := range before {
		if after[name].UID != pod.UID {
			t.Errorf("pod %s was replaced while the set was scaled up", name)
		}
	}

	// Killed game servers are replaced by nothing: replicas is lowered and their ordinals are reserved.
	g.scale(3, 0, 3)
	g.has("image:1", 1, 2, 4)
	g.scale(0)
	g.has("image:1")
}

func TestOpenKruiseGameUpdatesInPlaceByPriority(t *testing.T) {
	w := newWorld(t)
	g := newGame(w, "minecraft", 4)
	before := g.has("image:1", 0, 1, 2, 3)
	for ordinal, priority := range []string{"5", "20", "0", "10"} {
		g.label(ordinal, priorityKey, priority)
	}
	// Two game servers keep the old version: those with the lowest priority.
	g.update("image:2", 2)
	g.Shows(g.set, "the two pods with the highest priority are updated", func() error {
		with, s := g.images("image:2"), g.set.Status
		return await.ErrorIf(with != "minecraft-1 minecraft-3" || s.UpdatedReadyReplicas != 2 || s.CurrentReplicas != 2, "updated: %q, status %+v", with, s)
	})
	g.update("image:2", 0)
	after := g.has("image:2", 0, 1, 2, 3)
	for name, pod := range before {
		if after[name].UID != pod.UID {
			t.Errorf("pod %s was recreated, want an update in place", name)
		}
	}
	expect.Equal(t, "current revision", g.set.Status.UpdateRevision, g.set.Status.CurrentRevision)
}
