// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/model"
)

// database is a replicated database with one primary, together with the marker that labels its pods. A
// primary that does not serve for a second loses its role to another pod. A pod that does not serve
// has no label, and gets it one second after it is ready.
type database struct {
	primary types.UID
	lost    time.Time
	// switches are how often an update has taken down the primary, by the image of the update.
	switches map[string]int
	updates  int
}

func (d *database) run(w *model.World) {
	var serving []*corev1.Pod
	for _, pod := range w.State().Pods {
		if model.Serving(pod) {
			serving = append(serving, pod)
		}
	}
	switch {
	case slices.ContainsFunc(serving, func(p *corev1.Pod) bool { return p.UID == d.primary }):
		d.lost = time.Time{}
	case d.lost.IsZero():
		d.lost = w.Now()
	case w.Now().Sub(d.lost) >= time.Second && len(serving) > 0:
		d.primary, d.lost = serving[w.Rand.IntN(len(serving))].UID, time.Time{}
	}
	d.mark(w)
}

// mark writes the labels that are not what they should be.
func (d *database) mark(w *model.World) {
	for _, pod := range w.State().Pods {
		role := ""
		if model.Serving(pod) {
			ready := planning.Condition(pod, corev1.PodReady).LastTransitionTime
			switch {
			case pod.Labels["role"] == "" && w.Now().Sub(ready.Time) < time.Second:
			case pod.UID == d.primary:
				role = "primary"
			default:
				role = "secondary"
			}
		}
		if pod.Labels["role"] != role {
			w.EditPod(pod.Name, func(p *corev1.Pod) {
				if p.Labels["role"] = role; role == "" {
					delete(p.Labels, "role")
				}
			})
		}
	}
}

// oneSwitch is the invariant that an update takes down the primary at most once. It does not apply to
// a leader that has not seen the newest template yet: for it, a newer update looks like an older one.
func (d *database) oneSwitch(before, after *model.State, w model.Write) error {
	if !w.Controller() || w.Kind != model.Pods {
		return nil
	}
	served := func(s *model.State) bool {
		return slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool {
			return p.Name == w.Name && p.UID == d.primary && model.Serving(p)
		})
	}
	if !served(before) || served(after) {
		return nil
	}
	image := setOf(w.View).Spec.Template.Spec.Containers[0].Image
	if image != setOf(before).Spec.Template.Spec.Containers[0].Image {
		return nil
	}
	if d.switches[image]++; d.switches[image] > 1 {
		return fmt.Errorf("the update to %s takes down the primary a second time", image)
	}
	return nil
}

// users change the image, move the role, and kill pods.
func (d *database) users() []model.User {
	return []model.User{
		model.Edit("image", 1, func(_ *model.World, set *appsv1beta1.StatefulSet) string {
			d.updates++
			set.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("db:%d", d.updates)
			return set.Spec.Template.Spec.Containers[0].Image
		}),
		{Name: "move role", Weight: 4, Do: func(w *model.World) string {
			pods := w.State().Pods
			if len(pods) == 0 {
				return ""
			}
			if pod := pods[w.Rand.IntN(len(pods))]; model.Serving(pod) {
				d.primary = pod.UID
				d.mark(w)
				return pod.Name
			}
			return ""
		}},
		model.KillPod(1), model.EvictPod(1),
	}
}

func (d *database) config(strategy *pub.UpdatePriorityStrategy) model.Config {
	return model.Config{
		Planner: planner(), Users: d.users(), Program: d.run, Pace: 100 * time.Millisecond, Chaos: 2500,
		New: func(r *rand.Rand) model.Object {
			return &appsv1beta1.StatefulSet{
				TypeMeta:   metav1.TypeMeta{APIVersion: appsv1beta1.GroupVersion().String(), Kind: "StatefulSet"},
				ObjectMeta: metav1.ObjectMeta{Namespace: model.Namespace, Name: "db"},
				Spec: appsv1beta1.StatefulSetSpec{
					Replicas: new(int32(3)), PodManagementPolicy: appsv1.ParallelPodManagement,
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}},
						Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db:0"}}},
					},
					UpdateStrategy: appsv1beta1.StatefulSetUpdateStrategy{
						Type: appsv1.RollingUpdateStatefulSetStrategyType,
						RollingUpdate: &appsv1beta1.RollingUpdateStatefulSetStrategy{
							Partition: new(int32(0)), MaxUnavailable: new(intstr.FromInt32(1)), MinReadySeconds: new(int32(0)),
							PodUpdatePolicy: model.OneOf(r, appsv1beta1.RecreatePodUpdateStrategyType,
								appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType),
							UnorderedUpdate: &appsv1beta1.UnorderedUpdateStrategy{PriorityStrategy: strategy},
						},
					},
				},
			}
		},
		Invariants: []model.Invariant{d.oneSwitch},
		Rest:       exactAtRest,
	}
}

func secondariesFirst() *pub.UpdatePriorityStrategy {
	role := func(value string, weight int32) pub.UpdatePriorityWeightTerm {
		return pub.UpdatePriorityWeightTerm{
			Weight: weight, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"role": value}},
		}
	}
	return &pub.UpdatePriorityStrategy{
		WeightPriority: []pub.UpdatePriorityWeightTerm{role("secondary", 100), role("primary", 1)},
	}
}

// FuzzOneSwitch plays updates of a database whose role moves and whose pods crash, with a controller
// that is killed at any write.
func FuzzOneSwitch(f *testing.F) {
	model.Fuzz(f, 30, func(uint64) model.Config {
		return (&database{switches: map[string]int{}}).config(secondariesFirst())
	})
}

// TestSwitchesAreCounted checks that the model finds a second switch if pods are updated in the order
// of their ordinals, or primaries first.
func TestSwitchesAreCounted(t *testing.T) {
	primaryFirst := secondariesFirst()
	primaryFirst.WeightPriority[0].Weight, primaryFirst.WeightPriority[1].Weight = 1, 100
	for name, strategy := range map[string]*pub.UpdatePriorityStrategy{
		"no priority": nil, "primary first": primaryFirst,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(50) {
				err := model.Run(seed, (&database{switches: map[string]int{}}).config(strategy))
				if err != nil && strings.Contains(err.Error(), "takes down the primary a second time") {
					return
				}
			}
			t.Error("the model does not find a second switch in 50 seeds")
		})
	}
}
