// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
	"github.com/seamark-dev/seamark/test/model"
)

const hookLabel = "example.com/hook"

// planner returns the planner with what the controller passes to it.
func planner() model.Planner {
	return model.PlannerOf[*appsv1beta1.StatefulSet, appsv1beta1.StatefulSetStatus]{
		Descriptor: statefulset.Set(),
		Input: func(view *model.State) planning.Input {
			in := model.InputOf(view)
			in.Markers = planning.Markers{Labels: sets.New("role")}
			return in
		},
	}
}

func setOf(view *model.State) *appsv1beta1.StatefulSet { return view.Set.(*appsv1beta1.StatefulSet) }

func rolling(set *appsv1beta1.StatefulSet) *appsv1beta1.RollingUpdateStatefulSetStrategy {
	return set.Spec.UpdateStrategy.RollingUpdate
}

func newSet(r *rand.Rand) model.Object {
	set := &appsv1beta1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1beta1.GroupVersion().String(), Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: model.Namespace, Name: "db"},
	}
	spec := &set.Spec
	spec.Replicas = new(int32(1 + r.IntN(5)))
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	spec.Template.Labels = map[string]string{"app": "db"}
	spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:1"}}
	spec.PodManagementPolicy = model.OneOf(r, appsv1.ParallelPodManagement, appsv1.OrderedReadyPodManagement)
	spec.UpdateStrategy.Type = model.OneOf(r, appsv1.RollingUpdateStatefulSetStrategyType,
		appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType)
	spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateStatefulSetStrategy{
		Partition: new(int32(0)), MaxUnavailable: new(intstr.FromInt32(1)),
		PodUpdatePolicy: model.OneOf(r, appsv1beta1.RecreatePodUpdateStrategyType,
			appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, appsv1beta1.InPlaceOnlyPodUpdateStrategyType),
		MinReadySeconds: new(model.OneOf(r, int32(0), 5)),
	}
	if r.IntN(2) == 0 {
		spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &pub.InPlaceUpdateStrategy{GracePeriodSeconds: 3}
	}
	if spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		if r.IntN(2) == 0 {
			spec.ScaleStrategy = &appsv1beta1.StatefulSetScaleStrategy{MaxUnavailable: new(intstr.FromInt32(2))}
		}
		spec.UpdateStrategy.RollingUpdate.UnorderedUpdate = model.OneOf(r, nil, &appsv1beta1.UnorderedUpdateStrategy{
			PriorityStrategy: rolePriority(),
		})
	}
	if r.IntN(3) == 0 {
		spec.Template.Spec.Containers = append(spec.Template.Spec.Containers, model.Side())
	}
	spec.ProgressDeadlineSeconds = model.OneOf(r, nil, new(int32(30)))
	if r.IntN(3) == 0 {
		spec.Ordinals = &appsv1beta1.StatefulSetOrdinals{Start: 2}
	}
	if r.IntN(2) == 0 {
		spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*claimOf("data", "1Gi", "")}
		spec.VolumeClaimTemplates[0].ResourceVersion = ""
		spec.VolumeClaimUpdateStrategy.Type = model.OneOf(r, appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType,
			appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType)
		spec.PersistentVolumeClaimRetentionPolicy = retention(r)
	}
	if r.IntN(2) == 0 {
		hook := &pub.LifecycleHook{LabelsHandler: map[string]string{hookLabel: "true"}, MarkPodNotReady: r.IntN(2) == 0}
		spec.Lifecycle = &pub.Lifecycle{}
		if r.IntN(3) > 0 {
			spec.Lifecycle.PreDelete = hook
		}
		if r.IntN(3) > 0 {
			spec.Lifecycle.InPlaceUpdate = hook
		}
		if r.IntN(2) == 0 {
			spec.Lifecycle.PreNormal = hook
		}
		if r.IntN(2) == 0 {
			spec.Template.Labels[hookLabel] = "true"
		}
	}
	return set
}

func retention(r *rand.Rand) *appsv1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	type policy = appsv1beta1.PersistentVolumeClaimRetentionPolicyType
	return &appsv1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: model.OneOf(r, policy("Retain"), "Delete"), WhenScaled: model.OneOf(r, policy("Retain"), "Delete"),
	}
}

// rolePriority updates pods with the label role=1 before those with role=0.
func rolePriority() *pub.UpdatePriorityStrategy {
	return &pub.UpdatePriorityStrategy{OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "role"}}}
}

func users() []model.User {
	template := func(set *appsv1beta1.StatefulSet) *corev1.PodTemplateSpec { return &set.Spec.Template }
	return []model.User{
		model.Edit("scale", 4, func(w *model.World, set *appsv1beta1.StatefulSet) string {
			set.Spec.Replicas = new(int32(w.Rand.IntN(6)))
			return fmt.Sprint(*set.Spec.Replicas)
		}),
		model.Edit("reserve", 2, func(w *model.World, set *appsv1beta1.StatefulSet) string {
			set.Spec.ReserveOrdinals = model.OneOf(w.Rand, nil, []intstr.IntOrString{intstr.FromInt32(1)},
				[]intstr.IntOrString{intstr.FromString("2-3"), intstr.FromInt32(0)})
			return fmt.Sprint(set.Spec.ReserveOrdinals)
		}),
		model.EditImages(6, template), model.EditEnvironment(1, template), model.EditResources(2, template), model.Policy(1), model.Ungate(1),
		model.Edit("size", 1, func(w *model.World, set *appsv1beta1.StatefulSet) string {
			if len(set.Spec.VolumeClaimTemplates) == 0 {
				return ""
			}
			size := resource.MustParse(model.OneOf(w.Rand, "1Gi", "2Gi", "3Gi"))
			set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
			return size.String()
		}),
		model.Edit("partition", 2, func(w *model.World, set *appsv1beta1.StatefulSet) string {
			rolling(set).Partition = new(int32(w.Rand.IntN(5)))
			return fmt.Sprint(*rolling(set).Partition)
		}),
		model.Edit("paused", 1, func(_ *model.World, set *appsv1beta1.StatefulSet) string {
			rolling(set).Paused = !rolling(set).Paused
			return strconv.FormatBool(rolling(set).Paused)
		}),
		model.Edit("maxUnavailable", 1, func(w *model.World, set *appsv1beta1.StatefulSet) string {
			rolling(set).MaxUnavailable = new(model.OneOf(w.Rand, intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("60%")))
			return rolling(set).MaxUnavailable.String()
		}),
		model.Edit("policy", 1, func(w *model.World, set *appsv1beta1.StatefulSet) string {
			rolling(set).PodUpdatePolicy = model.OneOf(w.Rand, appsv1beta1.RecreatePodUpdateStrategyType,
				appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, appsv1beta1.InPlaceOnlyPodUpdateStrategyType)
			return string(rolling(set).PodUpdatePolicy)
		}),
		model.Edit("type", 1, func(w *model.World, set *appsv1beta1.StatefulSet) string {
			set.Spec.UpdateStrategy.Type = model.OneOf(w.Rand, appsv1.RollingUpdateStatefulSetStrategyType,
				appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType)
			return string(set.Spec.UpdateStrategy.Type)
		}),
		model.Edit("minReadySeconds", 1, func(w *model.World, set *appsv1beta1.StatefulSet) string {
			rolling(set).MinReadySeconds = new(model.OneOf(w.Rand, int32(0), 5))
			return fmt.Sprint(*rolling(set).MinReadySeconds)
		}),
		model.Edit("retention", 1, func(w *model.World, set *appsv1beta1.StatefulSet) string {
			if len(set.Spec.VolumeClaimTemplates) == 0 {
				return ""
			}
			set.Spec.PersistentVolumeClaimRetentionPolicy = retention(w.Rand)
			return fmt.Sprint(*set.Spec.PersistentVolumeClaimRetentionPolicy)
		}),
		model.KillPod(1), model.EvictPod(1), model.Quota(1),
		model.LabelPod(3, "role", "", "0", "1"),
		model.LabelPod(1, pub.SpecifiedDeleteKey, "true"),
		model.LabelPod(1, appsv1.StatefulSetPodNameLabel, "other"), model.GuardPod(2),
	}
}

func config(seed uint64) model.Config {
	return model.Config{
		Planner: planner(), Users: users(), HookLabel: hookLabel,
		New: func(r *rand.Rand) model.Object {
			set := newSet(r).(*appsv1beta1.StatefulSet)
			model.StayInService(seed, &set.Spec.Template)
			return set
		},
		Invariants: []model.Invariant{
			model.HooksHold(func(set model.Object) *pub.LifecycleHook {
				if hooks := set.(*appsv1beta1.StatefulSet).Spec.Lifecycle; hooks != nil {
					return hooks.PreDelete
				}
				return nil
			}),
			model.NoOrphan(func(model.Object) labels.Selector { return labels.SelectorFromSet(labels.Set{"app": "db"}) }),
			onlyReplicas(model.ServingWrites(minimum, voluntary)), model.InBatches, model.OutOfService, model.ClaimsAreKept,
		},
		Steps: []func(*model.State, *model.Step) error{
			onlyReplicasOfStep(model.ServingSteps(minimum, voluntary)), partitionIsKept, replicasAreNotScaledDown,
			createdPodsHaveClaims, claimsAreExpandedFirst,
		},
		Rest: exactAtRest,
	}
}

func FuzzModel(f *testing.F) { model.Fuzz(f, 80, config, 283, 1874, 4258, 4487, 4870) }
