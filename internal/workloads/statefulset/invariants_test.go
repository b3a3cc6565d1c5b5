// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/test/model"
)

// minimum returns how many pods serve at least, whatever is updated.
func minimum(o model.Object) int {
	set := o.(*appsv1beta1.StatefulSet)
	replicas := int(*set.Spec.Replicas)
	unavailable, err := intstr.GetScaledValueFromIntOrPercent(rolling(set).MaxUnavailable, replicas, false)
	if err != nil {
		panic(err)
	}
	return replicas - max(unavailable, 1)
}

// onlyReplicas checks what happens to replicas: maxUnavailable does not apply to other pods, and these
// do not count as available. With minReadySeconds, a pod that serves may be unavailable still. So is one
// that waits for the hook preNormal: a pod that begins to wait for it still runs.
func onlyReplicas(check model.Invariant) model.Invariant {
	return func(before, after *model.State, w model.Write) error {
		if !w.Controller() || !isReplica(setOf(w.View), w.Name) || *rolling(setOf(w.View)).MinReadySeconds > 0 ||
			slices.ContainsFunc(after.Pods, func(p *corev1.Pod) bool { return p.Name == w.Name && !mayServe(setOf(after), p) }) {
			return nil
		}
		return check(replicasOf(before), replicasOf(after), w)
	}
}

func onlyReplicasOfStep(check func(*model.State, *model.Step) error) func(*model.State, *model.Step) error {
	return func(view *model.State, progress *model.Step) error {
		set, reduced := setOf(view), *progress
		if *rolling(set).MinReadySeconds > 0 {
			return nil
		}
		reduced.Patches = slices.DeleteFunc(slices.Clone(progress.Patches), func(p planning.PodPatch) bool {
			return !mayServe(set, p.Pod)
		})
		reduced.Deletes = slices.DeleteFunc(slices.Clone(progress.Deletes), func(d planning.PodDelete) bool {
			return !mayServe(set, d.Pod)
		})
		return check(replicasOf(view), &reduced)
	}
}

// mayServe reports whether the pod is a replica that does not wait for the hook preNormal.
func mayServe(set *appsv1beta1.StatefulSet, pod *corev1.Pod) bool {
	return isReplica(set, pod.Name) && lifecycle.State(pod) != pub.LifecycleStatePreparingNormal
}

// replicasOf returns the state without the pods that are not replicas, and those that do not serve yet.
func replicasOf(s *model.State) *model.State {
	if s.Set == nil {
		return s
	}
	reduced := *s
	reduced.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return !mayServe(setOf(s), p) })
	return &reduced
}

// voluntary reports whether maxUnavailable applies to a deletion.
func voluntary(reason string) bool { return reason == "Update" || reason == "SpecifiedDelete" }

// createdPodsHaveClaims checks that a pod is created only if its claims exist or are created before it.
func createdPodsHaveClaims(view *model.State, progress *model.Step) error {
	for _, pod := range progress.Creates {
		for _, template := range setOf(view).Spec.VolumeClaimTemplates {
			name := template.Name + "-" + pod.Name
			if !slices.ContainsFunc(slices.Concat(view.Claims, progress.CreateClaims), func(c *corev1.PersistentVolumeClaim) bool {
				return c.Name == name && c.DeletionTimestamp == nil
			}) {
				return fmt.Errorf("creates a pod before its claim %s", name)
			}
		}
	}
	return nil
}

// ordinals returns the ordinals of the replicas, computed in the simplest way.
func ordinals(set *appsv1beta1.StatefulSet) []int {
	reserved := map[int]bool{}
	for _, entry := range set.Spec.ReserveOrdinals {
		first, last, isRange := strings.Cut(entry.String(), "-")
		if !isRange {
			last = first
		}
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		for i := from; i <= to; i++ {
			reserved[i] = true
		}
	}
	var result []int
	next := 0
	if set.Spec.Ordinals != nil {
		next = int(set.Spec.Ordinals.Start)
	}
	for ; len(result) < int(*set.Spec.Replicas); next++ {
		if !reserved[next] {
			result = append(result, next)
		}
	}
	return result
}

func isReplica(set *appsv1beta1.StatefulSet, pod string) bool { return position(set, pod) >= 0 }

// position returns the position of the pod among the replicas, -1 if it is none.
func position(set *appsv1beta1.StatefulSet, pod string) int {
	return slices.IndexFunc(ordinals(set), func(n int) bool { return pod == fmt.Sprintf("%s-%d", set.Name, n) })
}

// replicasAreNotScaledDown checks that only pods with other ordinals are deleted to scale down, and
// that only pods with these ordinals are created.
func replicasAreNotScaledDown(view *model.State, progress *model.Step) error {
	for _, d := range progress.Deletes {
		if d.Reason == "ScaleDown" && isReplica(setOf(view), d.Pod.Name) {
			return fmt.Errorf("deletes the replica %s", d.Pod.Name)
		}
	}
	for _, pod := range progress.Creates {
		if !isReplica(setOf(view), pod.Name) {
			return fmt.Errorf("creates %s, which is not a replica", pod.Name)
		}
	}
	return nil
}

// claimsAreExpandedFirst checks that a step updates a pod only if its claims have the size of the template.
func claimsAreExpandedFirst(view *model.State, progress *model.Step) error {
	set := setOf(view)
	if set.Spec.VolumeClaimUpdateStrategy.Type != appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType {
		return nil
	}
	for _, d := range progress.Deletes {
		for _, claim := range view.Claims {
			template := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage()
			if d.Reason == "Update" && claim.Name == "data-"+d.Pod.Name && claim.DeletionTimestamp == nil &&
				claim.Status.Phase == corev1.ClaimBound && claim.Status.Capacity.Storage().Cmp(*template) < 0 {
				return fmt.Errorf("updates %s before %s is expanded to %s", d.Pod.Name, claim.Name, template)
			}
		}
	}
	return nil
}

// partitionIsKept checks that a step does not update more pods than the partition permits.
func partitionIsKept(view *model.State, progress *model.Step) error {
	set := setOf(view)
	updated, starts := 0, 0
	latest := progress.Status(nil).(*appsv1beta1.StatefulSet).Status.UpdateRevision
	for _, pod := range view.Pods {
		if isReplica(set, pod.Name) && revision.Is(pod, latest) {
			updated++
		}
	}
	var started []string
	for _, d := range progress.Deletes {
		if d.Reason == "Update" {
			started = append(started, d.Pod.Name)
		}
	}
	for _, p := range progress.Patches {
		if value := p.Labels[appsv1.ControllerRevisionHashLabelKey]; value != nil && *value == latest {
			started = append(started, p.Pod.Name)
		}
	}
	if rolling(set).UnorderedUpdate == nil {
		for _, name := range started {
			if position(set, name) < int(*rolling(set).Partition) {
				return fmt.Errorf("updates %s, which the partition excludes", name)
			}
		}
		return nil
	}
	starts = len(started)
	if most := int(*set.Spec.Replicas - *rolling(set).Partition); starts > 0 && updated+starts > most {
		return fmt.Errorf("updates %d pods in addition to %d, want at most %d", starts, updated, most)
	}
	return nil
}

// exactAtRest checks the state in which nothing changes any more.
func exactAtRest(s *model.State) error {
	set := setOf(s)
	replicas := ordinals(set)
	if len(s.Pods) != len(replicas) {
		return fmt.Errorf("%d pods, want %d", len(s.Pods), len(replicas))
	}
	updated, old := 0, 0
	var problems []error
	for _, pod := range s.Pods {
		n, _ := strconv.Atoi(strings.TrimPrefix(pod.Name, set.Name+"-"))
		position := slices.Index(replicas, n)
		if position < 0 || !model.Serving(pod) || pod.Labels[appsv1.StatefulSetPodNameLabel] != pod.Name ||
			pod.Labels[appsv1.PodIndexLabel] != strconv.Itoa(n) {
			problems = append(problems, fmt.Errorf("pod %s is not a replica that serves", pod.Name))
		}
		if _, ok := pod.Labels[pub.SpecifiedDeleteKey]; ok {
			problems = append(problems, fmt.Errorf("pod %s is not deleted", pod.Name))
		}
		if revision.Is(pod, set.Status.UpdateRevision) {
			updated++
		} else {
			old++
			if !rolling(set).Paused && lifecycle.State(pod) != pub.LifecycleStateNormal {
				problems = append(problems, fmt.Errorf("pod %s is in state %s", pod.Name, lifecycle.State(pod)))
			}
			if rolling(set).UnorderedUpdate == nil && position >= int(*rolling(set).Partition) && follows(set) {
				problems = append(problems, fmt.Errorf("pod %s is not updated", pod.Name))
			}
		}
		for _, template := range set.Spec.VolumeClaimTemplates {
			if !slices.ContainsFunc(s.Claims, func(c *corev1.PersistentVolumeClaim) bool {
				return c.Name == template.Name+"-"+pod.Name
			}) {
				problems = append(problems, fmt.Errorf("pod %s does not have its claim", pod.Name))
			}
			if set.Spec.VolumeClaimUpdateStrategy.Type == "OnPodRollingUpdate" && follows(set) && *rolling(set).Partition == 0 &&
				slices.ContainsFunc(s.Claims, func(c *corev1.PersistentVolumeClaim) bool {
					return c.Name == template.Name+"-"+pod.Name &&
						c.Status.Capacity.Storage().Cmp(*template.Spec.Resources.Requests.Storage()) < 0
				}) {
				problems = append(problems, fmt.Errorf("the claim of pod %s is not expanded", pod.Name))
			}
		}
	}
	if most := int(*rolling(set).Partition); old > most && follows(set) {
		problems = append(problems, fmt.Errorf("%d pods are not updated, want at most %d", old, most))
	}
	return errors.Join(append(problems, statusAtRest(set, len(replicas), updated))...)
}

// follows reports whether the pods are updated when the template changes.
func follows(set *appsv1beta1.StatefulSet) bool {
	return set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && !rolling(set).Paused &&
		rolling(set).PodUpdatePolicy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType
}

func statusAtRest(set *appsv1beta1.StatefulSet, replicas, updated int) error {
	got, n, u := set.Status, int32(replicas), int32(updated)
	if got.Replicas != n || got.ReadyReplicas != n || got.AvailableReplicas != n || got.UpdatedReplicas != u ||
		got.UpdatedReadyReplicas != u || got.UpdatedAvailableReplicas != u ||
		got.ObservedGeneration != set.Generation || got.LabelSelector != "app=db" {
		return fmt.Errorf("status %+v, want %d replicas, %d updated", got, n, u)
	}
	canary := n == 0 && set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && *rolling(set).Partition > 0
	if n == u && !canary && (got.CurrentRevision != got.UpdateRevision || got.CurrentReplicas != n) {
		return fmt.Errorf("status %+v, want the current revision to be the update revision", got)
	}
	for _, c := range got.Conditions {
		if c.Status == corev1.ConditionTrue && c.Reason == "WriteFailed" {
			return fmt.Errorf("condition %+v is still True", c)
		}
	}
	return nil
}
