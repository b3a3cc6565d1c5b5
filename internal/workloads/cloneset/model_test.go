// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/test/model"
)

const modelHook = "example.com/hook"

// modelPlanner returns the planner with what the controller passes to it.
func modelPlanner(marked, recreateForClaims bool) model.Planner {
	return model.PlannerOf[*v1alpha1.CloneSet, v1alpha1.CloneSetStatus]{
		Descriptor: Set(recreateForClaims),
		Input: func(view *model.State) planning.Input {
			in := model.InputOf(view)
			in.Pods, in.Claims = gathered(view), gatheredClaims(view)
			if marked {
				in.Markers = planning.Markers{Labels: sets.New("role")}
			}
			return in
		},
	}
}

// gathered returns the pods that the controller passes to Plan.
func gathered(view *model.State) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(view.Pods), func(pod *corev1.Pod) bool {
		if metav1.GetControllerOf(pod) == nil {
			return pod.Labels["app"] != "web"
		}
		return !metav1.IsControlledBy(pod, view.Set)
	})
}

func FuzzModel(f *testing.F) {
	model.Fuzz(f, 80, modelConfig, 706, 760, 2057, 2773, 3835)
}

func asSet(o model.Object) *v1alpha1.CloneSet { return o.(*v1alpha1.CloneSet) }

func modelSet(r *rand.Rand) *v1alpha1.CloneSet {
	set := &v1alpha1.CloneSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "CloneSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: model.Namespace},
	}
	spec := &set.Spec
	spec.Replicas = pointer(int32(r.IntN(6)))
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	spec.Template.Labels = map[string]string{"app": "web"}
	spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:1"}}
	spec.MinReadySeconds = model.OneOf[int32](r, 0, 0, 10)
	setStrategy(r, &spec.UpdateStrategy)
	if r.IntN(3) == 0 {
		spec.ScaleStrategy.MaxUnavailable = pointer(model.OneOf(r, intstr.FromInt32(1), intstr.FromString("50%")))
	}
	if r.IntN(3) == 0 {
		spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		spec.ScaleStrategy.DisablePVCReuse = r.IntN(2) == 0
	}
	if r.IntN(2) == 0 {
		set.Labels = map[string]string{v1alpha1.CloneSetScalingExcludePreparingDeleteKey: "true"}
	}
	if r.IntN(3) == 0 {
		spec.Template.Spec.Containers = append(spec.Template.Spec.Containers, model.Side())
	}
	switch r.IntN(3) {
	case 0:
		spec.UpdateStrategy.PriorityStrategy = &pub.UpdatePriorityStrategy{
			OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "role"}},
		}
	case 1:
		spec.UpdateStrategy.ScatterStrategy = v1alpha1.UpdateScatterStrategy{{Key: "role", Value: "b-1"}}
	}
	return set
}

// setStrategy sets the type and the budget.
func setStrategy(r *rand.Rand, s *v1alpha1.CloneSetUpdateStrategy) {
	s.Type = model.OneOf(r, v1alpha1.RecreateCloneSetUpdateStrategyType,
		v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType,
		v1alpha1.OnDeleteCloneSetUpdateStrategyType)
	s.MaxUnavailable = pointer(model.OneOf(r, intstr.FromInt32(1), intstr.FromString("20%"), intstr.FromString("50%")))
	s.MaxSurge = pointer(model.OneOf(r, intstr.FromInt32(0), intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("40%")))
	if s.MaxSurge.IntVal == 1 && r.IntN(2) == 0 {
		s.MaxUnavailable = pointer(intstr.FromInt32(0))
	}
	s.InPlaceUpdateStrategy = nil
	if r.IntN(3) == 0 {
		s.InPlaceUpdateStrategy = &pub.InPlaceUpdateStrategy{GracePeriodSeconds: 5}
	}
}

func modelConfig(seed uint64) model.Config {
	r := rand.New(rand.NewPCG(seed, 1))
	hook := func(w bool) *pub.LifecycleHook {
		if !w {
			return nil
		}
		return &pub.LifecycleHook{LabelsHandler: map[string]string{modelHook: "true"}, MarkPodNotReady: r.IntN(2) == 0}
	}
	hooks := &pub.Lifecycle{PreDelete: hook(r.IntN(3) > 0), InPlaceUpdate: hook(r.IntN(3) > 0), PreNormal: hook(r.IntN(2) > 0)}
	config := model.Config{
		Planner: modelPlanner(r.IntN(2) == 0, false),
		New: func(*rand.Rand) model.Object {
			set := modelSet(r)
			model.StayInService(seed, &set.Spec.Template)
			set.Spec.Lifecycle = hooks
			return set
		},
		Users: modelUsers(),
		Invariants: []model.Invariant{
			model.HooksHold(func(set model.Object) *pub.LifecycleHook { return asSet(set).Spec.Lifecycle.PreDelete }),
			model.NoOrphan(func(model.Object) labels.Selector { return labels.SelectorFromSet(labels.Set{"app": "web"}) }),
			model.Identity("instance ID", func(p *corev1.Pod) string { return p.Labels[v1alpha1.CloneSetInstanceID] }),
			model.ServingWrites(minimum, voluntary), model.InBatches, model.OutOfService, model.ClaimsAreKept,
			noExtraPods,
			preNormalHolds,
			onDeleteUpdatesNothing,
		},
		Steps: []func(*model.State, *model.Step) error{model.ServingSteps(minimum, voluntary)},
		Rest:  atRest,
	}
	if hooks.PreDelete != nil || hooks.InPlaceUpdate != nil || hooks.PreNormal != nil {
		config.HookLabel = modelHook
	}
	return config
}

// voluntary reports whether a deletion is bound by maxUnavailable.
func voluntary(reason string) bool { return reason != ReasonPrepared }

func minimum(set model.Object) int {
	n, err := resolve(&asSet(set).Spec)
	if err != nil {
		panic(err)
	}
	return n.replicas - n.maxUnavailable
}

// noExtraPods checks that a process does not create more pods than replicas and the surge, whatever
// happens between its writes. A second process, or one that starts with an old view, may create a pod
// again that was deleted meanwhile.
func noExtraPods(before, after *model.State, w model.Write) error {
	if !w.Controller() || w.Kind != model.Pods || w.Verb != "create" || w.Faults.Stale || w.Faults.Two ||
		len(after.Pods) == len(before.Pods) {
		return nil
	}
	viewed, now := asSet(w.View.Set), asSet(after.Set)
	most := 0
	for _, set := range []*v1alpha1.CloneSet{viewed, now} {
		n, err := resolve(&set.Spec)
		if err != nil {
			return err
		}
		most = max(most, n.replicas+n.maxSurge)
	}
	n := 0
	for _, pod := range after.Pods {
		i := slices.IndexFunc(w.View.Pods, func(p *corev1.Pod) bool { return p.UID == pod.UID })
		if stays(viewed, pod) && stays(now, pod) && (i < 0 || stays(viewed, w.View.Pods[i])) {
			n++
		}
	}
	if n > most {
		return fmt.Errorf("creates pod %d, want at most %d", n, most)
	}
	return nil
}

// preNormalHolds checks that a new pod does not become Normal without the handler of the hook.
func preNormalHolds(before, after *model.State, w model.Write) error {
	hooks := asSet(after.Set).Spec.Lifecycle
	if !w.Controller() || w.Kind != model.Pods || hooks.PreNormal == nil {
		return nil
	}
	for _, pod := range after.Pods {
		i := slices.IndexFunc(before.Pods, func(old *corev1.Pod) bool { return old.UID == pod.UID })
		isNew := i < 0 || lifecycle.State(before.Pods[i]) == pub.LifecycleStatePreparingNormal
		if isNew && lifecycle.State(pod) == pub.LifecycleStateNormal && pod.Labels[modelHook] != "true" {
			return fmt.Errorf("pod %s becomes Normal without the handler of preNormal", pod.Name)
		}
	}
	return nil
}

// onDeleteUpdatesNothing checks that a set with the type OnDelete does not update a pod.
func onDeleteUpdatesNothing(_, after *model.State, w model.Write) error {
	onDelete := func(set model.Object) bool {
		return asSet(set).Spec.UpdateStrategy.Type == v1alpha1.OnDeleteCloneSetUpdateStrategyType
	}
	if w.Controller() && onDelete(w.View.Set) && onDelete(after.Set) && w.Kind == model.Pods && w.Reason == ReasonUpdate {
		return fmt.Errorf("updates pod %s", w.Name)
	}
	return nil
}

// stays reports whether the pod remains in the set, according to its spec.
func stays(set *v1alpha1.CloneSet, pod *corev1.Pod) bool {
	_, specified := pod.Labels[pub.SpecifiedDeleteKey]
	return planning.Active(pod) && metav1.IsControlledBy(pod, set) && !specified && pod.Labels["app"] == "web" &&
		lifecycle.State(pod) != pub.LifecycleStatePreparingDelete &&
		!slices.Contains(set.Spec.ScaleStrategy.PodsToDelete, pod.Name)
}

// atRest checks that replicas, surge and partition are exact.
func atRest(s *model.State) error {
	set := asSet(s.Set)
	n, err := resolve(&set.Spec)
	if err != nil {
		return err
	}
	total, old := 0, 0
	for _, pod := range s.Pods {
		if !metav1.IsControlledBy(pod, set) || !planning.Active(pod) {
			continue
		}
		total++
		if !revision.Is(pod, set.Status.UpdateRevision) {
			old++
		}
		if state := lifecycle.State(pod); state != pub.LifecycleStateNormal && !set.Spec.UpdateStrategy.Paused {
			return fmt.Errorf("pod %s is in state %s", pod.Name, state)
		}
		if !planning.Ready(pod) && !set.Spec.UpdateStrategy.Paused {
			return fmt.Errorf("pod %s is not ready", pod.Name)
		}
		if _, ok := pod.Labels[pub.SpecifiedDeleteKey]; ok || slices.Contains(set.Spec.ScaleStrategy.PodsToDelete, pod.Name) {
			return fmt.Errorf("pod %s is named", pod.Name)
		}
	}
	if total != n.replicas || int(set.Status.Replicas) != total || int(set.Status.AvailableReplicas) != total {
		return fmt.Errorf("%d pods, want %d", total, n.replicas)
	}
	stuck := slices.ContainsFunc(set.Status.Conditions, func(c v1alpha1.CloneSetCondition) bool {
		return c.Type == v1alpha1.CloneSetConditionFailedUpdate && c.Status == corev1.ConditionTrue
	})
	if stuck && set.Spec.UpdateStrategy.Type != v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType {
		return fmt.Errorf("FailedUpdate is True")
	}
	onDelete := set.Spec.UpdateStrategy.Type == v1alpha1.OnDeleteCloneSetUpdateStrategyType
	if old > n.partition && !set.Spec.UpdateStrategy.Paused && !onDelete && !stuck {
		return fmt.Errorf("%d pods of old revisions, want at most %d", old, n.partition)
	}
	return claimsAtRest(s, set)
}

func modelUsers() []model.User {
	template := func(set *v1alpha1.CloneSet) *corev1.PodTemplateSpec { return &set.Spec.Template }
	return []model.User{
		model.Edit("scale", 4, func(w *model.World, set *v1alpha1.CloneSet) string {
			set.Spec.Replicas = pointer(int32(w.Rand.IntN(7)))
			return strconv.Itoa(int(*set.Spec.Replicas))
		}),
		model.EditImages(3, template), model.EditEnvironment(1, template), model.EditResources(2, template), model.Policy(1), model.Ungate(1),
		model.Edit("partition", 2, func(w *model.World, set *v1alpha1.CloneSet) string {
			set.Spec.UpdateStrategy.Partition = pointer(model.OneOf(w.Rand, intstr.FromInt32(0), intstr.FromInt32(0),
				intstr.FromInt32(2), intstr.FromString("50%"), intstr.FromString("100%")))
			return set.Spec.UpdateStrategy.Partition.String()
		}),
		model.Edit("pause", 1, func(w *model.World, set *v1alpha1.CloneSet) string {
			set.Spec.UpdateStrategy.Paused = w.Rand.IntN(3) == 0
			return strconv.FormatBool(set.Spec.UpdateStrategy.Paused)
		}),
		model.Edit("strategy", 1, func(w *model.World, set *v1alpha1.CloneSet) string {
			setStrategy(w.Rand, &set.Spec.UpdateStrategy)
			return string(set.Spec.UpdateStrategy.Type)
		}),
		model.Edit("minReadySeconds", 1, func(w *model.World, set *v1alpha1.CloneSet) string {
			set.Spec.MinReadySeconds = model.OneOf[int32](w.Rand, 0, 10)
			return fmt.Sprint(set.Spec.MinReadySeconds)
		}),
		model.Edit("podsToDelete", 2, func(w *model.World, set *v1alpha1.CloneSet) string {
			set.Spec.ScaleStrategy.PodsToDelete = nil
			if pods := w.State().Pods; len(pods) > 0 && w.Rand.IntN(3) > 0 {
				set.Spec.ScaleStrategy.PodsToDelete = []string{pods[w.Rand.IntN(len(pods))].Name}
			}
			return fmt.Sprint(set.Spec.ScaleStrategy.PodsToDelete)
		}),
		{Name: "remove hooks", Weight: 1, Do: func(w *model.World) string {
			if w.Rand.IntN(20) > 0 {
				return ""
			}
			w.EditSet(func(o model.Object) { asSet(o).Spec.Lifecycle = &pub.Lifecycle{} })
			return "lifecycle: {}"
		}},
		model.LabelPod(2, pub.SpecifiedDeleteKey, "true"),
		model.LabelPod(4, "role", "", "a-2", "b-1"),
		model.LabelPod(1, "app", "web", "other"), model.GuardPod(2),
		model.AnnotatePod(3, corev1.PodDeletionCost, "", "-5", "10", "x"),
		model.KillPod(2), model.EvictPod(1), model.Quota(1),
	}
}

func pointer[T any](v T) *T { return &v }
