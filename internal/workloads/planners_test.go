// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
	"github.com/seamark-dev/seamark/internal/workloads/model"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
)

// comparing plans each step with whole pods and with the pods of the cache. It fails if the steps
// differ: then a planner reads a field that the cache does not keep.
type comparing struct{}

// Plan returns the step that is planned with the pods of the cache.
func (comparing) Plan(view *model.State) (model.Step, error) {
	cached := make([]*corev1.Pod, len(view.Pods))
	for i, pod := range view.Pods {
		cached[i] = trimPod(ownKinds())(pod)
	}
	whole, wholeStatus, _, err := plan(view, view.Pods)
	if err != nil {
		return model.Step{}, err
	}
	trimmed, trimmedStatus, step, err := plan(view, cached)
	if err != nil {
		return model.Step{}, err
	}
	if diff := cmp.Diff(wholeStatus, trimmedStatus) + cmp.Diff(withoutPods(whole), withoutPods(trimmed)); diff != "" {
		return model.Step{}, fmt.Errorf("the step differs if pods are trimmed (-whole +trimmed):\n%s", diff)
	}
	return step, nil
}

// withoutPods returns the actions with only the names of the pods that they change.
func withoutPods(actions workload.Actions) workload.Actions {
	name := func(pod *corev1.Pod) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}} }
	changed := actions
	changed.Patches, changed.Deletes = nil, nil
	for _, patch := range actions.Patches {
		patch.Pod = name(patch.Pod)
		changed.Patches = append(changed.Patches, patch)
	}
	for _, each := range actions.Deletes {
		each.Pod = name(each.Pod)
		changed.Deletes = append(changed.Deletes, each)
	}
	return changed
}

func plan(view *model.State, pods []*corev1.Pod) (workload.Actions, any, model.Step, error) {
	if set, ok := view.Set.(*v1alpha1.CloneSet); ok {
		out, err := cloneset.Plan(cloneset.Input{Set: set, Pods: pods, Claims: view.Claims, Revisions: view.Revisions, Now: view.Now})
		return out.Actions, out.Status, model.Step{Actions: out.Actions, Status: func(failures []workload.Failure) model.Object {
			next := set.DeepCopy()
			next.Status = *out.Status.DeepCopy()
			cloneset.Failed(&next.Status, failures, view.Now)
			return next
		}}, err
	}
	set, ok := view.Set.(*v1beta1.StatefulSet)
	if !ok {
		return workload.Actions{}, nil, model.Step{}, fmt.Errorf("plan a %T", view.Set)
	}
	out, err := statefulset.Plan(statefulset.Input{Set: set, Pods: pods, Claims: view.Claims, Revisions: view.Revisions, Now: view.Now})
	return out.Actions, out.Status, model.Step{Actions: out.Actions, Status: func(failures []workload.Failure) model.Object {
		next := set.DeepCopy()
		next.Status = statefulset.Failed(set, *out.Status.DeepCopy(), failures, view.Now)
		return next
	}}, err
}

// richTemplate has what planners may read in pods.
func richTemplate() corev1.PodTemplateSpec {
	always := corev1.ContainerRestartPolicyAlways
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "set"}, Annotations: map[string]string{"example.com/a": "1"}},
		Spec: corev1.PodSpec{
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}, {ConditionType: "KruisePodReady"}},
			InitContainers: []corev1.Container{{Name: "side", Image: "side:1", RestartPolicy: &always}, {Name: "init", Image: "init:1"}},
			Containers: []corev1.Container{{
				Name: "main", Image: "image:1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}, {Name: "other", Image: "other:1", Env: []corev1.EnvVar{{Name: pub.ContainerLaunchPriorityEnv, Value: "1"}}}},
		},
	}
}

func changeTemplate(r *rand.Rand, template *corev1.PodTemplateSpec) {
	value := fmt.Sprint(1 + r.IntN(3))
	switch main := &template.Spec.Containers[0]; r.IntN(6) {
	case 0:
		main.Image = "image:" + value
	case 1:
		main.Image, template.Spec.Containers[1].Image = "image:"+value, "other:"+value
	case 2:
		template.Annotations["example.com/a"] = value
	case 3:
		main.Resources.Requests[corev1.ResourceCPU] = resource.MustParse(value)
	case 4:
		template.Spec.InitContainers[0].Image = "side:" + value
	default:
		main.Env[0].Value = value
	}
}

func richLifecycle() *pub.Lifecycle {
	hook := &pub.LifecycleHook{
		LabelsHandler: map[string]string{"example.com/hook": "true"}, FinalizersHandler: []string{"example.com/hold"}, MarkPodNotReady: true,
	}
	return &pub.Lifecycle{PreDelete: hook, InPlaceUpdate: hook}
}

func claimTemplates() []corev1.PersistentVolumeClaim {
	return []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
}

func richCloneSet() *v1alpha1.CloneSet {
	set := &v1alpha1.CloneSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "CloneSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "set", Namespace: model.Namespace},
	}
	spec := &set.Spec
	spec.Replicas, spec.Template = new(int32(3)), richTemplate()
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "set"}}
	spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
	spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(2))
	spec.UpdateStrategy.InPlaceUpdateStrategy = &pub.InPlaceUpdateStrategy{GracePeriodSeconds: 5}
	spec.MinReadySeconds, spec.Lifecycle, spec.VolumeClaimTemplates = 10, richLifecycle(), claimTemplates()
	return set
}

func richStatefulSet() *v1beta1.StatefulSet {
	set := &v1beta1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "set", Namespace: model.Namespace},
	}
	spec := &set.Spec
	spec.Replicas, spec.Template, spec.PodManagementPolicy = new(int32(3)), richTemplate(), "Parallel"
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "set"}}
	spec.UpdateStrategy.Type = "RollingUpdate"
	spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{
		PodUpdatePolicy: "InPlaceIfPossible", MaxUnavailable: new(intstr.FromInt32(2)),
		InPlaceUpdateStrategy: &pub.InPlaceUpdateStrategy{GracePeriodSeconds: 5},
	}
	spec.Lifecycle, spec.VolumeClaimTemplates = richLifecycle(), claimTemplates()
	return set
}

func TestPlannersReadOnlyWhatTheCacheKeeps(t *testing.T) {
	template := func(o model.Object) (*corev1.PodTemplateSpec, *int32) {
		if set, ok := o.(*v1alpha1.CloneSet); ok {
			return &set.Spec.Template, set.Spec.Replicas
		}
		set := o.(*v1beta1.StatefulSet) //nolint:forcetypeassert // one of two kinds
		return &set.Spec.Template, set.Spec.Replicas
	}
	users := []model.User{
		{Name: "change template", Weight: 4, Do: func(w *model.World) string {
			w.EditSet(func(set model.Object) { each, _ := template(set); changeTemplate(w.Rand, each) })
			return "changed"
		}},
		{Name: "scale", Weight: 3, Do: func(w *model.World) string {
			w.EditSet(func(set model.Object) { _, replicas := template(set); *replicas = int32(w.Rand.IntN(5)) }) //nolint:gosec // small
			return "scaled"
		}},
		model.KillPod(1), model.EvictPod(1), model.LabelPod(1, pub.SpecifiedDeleteKey, "true", ""),
		model.AnnotatePod(1, corev1.PodDeletionCost, "5", ""),
	}
	for name, set := range map[string]model.Object{"CloneSet": richCloneSet(), "StatefulSet": richStatefulSet()} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(25) {
				err := model.Run(seed, model.Config{
					Planner: comparing{}, New: func(*rand.Rand) model.Object { return set.DeepCopyObject().(model.Object) }, //nolint:forcetypeassert // a copy
					Rest: func(*model.State) error { return nil }, Users: users, HookLabel: "example.com/hook", HookFinalizer: "example.com/hold",
				})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}
