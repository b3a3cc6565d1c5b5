// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// planner is a step while it is planned.
type planner struct {
	*step.Step
	out *Output
	set *appsv1beta1.StatefulSet

	ordered  bool
	strategy strategy
	minReady time.Duration
	claims   map[string]*corev1.PersistentVolumeClaim
	// deleteWithSet and deleteWhenScaled are persistentVolumeClaimRetentionPolicy.
	deleteWithSet, deleteWhenScaled bool

	// replicas are the pods that should exist, by ascending ordinal. excess are the other pods of the
	// set, by descending ordinal.
	replicas []replica
	excess   []*corev1.Pod

	// targets are the pods that the strategy permits to update, in the order of the update. target has
	// their UIDs. waiting are the pods that are not updated and whose update has not started.
	targets, waiting []*corev1.Pod
	target           map[types.UID]bool
	// blocker is the replica to repair, see findBlocker. It is nil if there is none.
	blocker *corev1.Pod
	// down is the number of replicas that are unavailable, -1 if it is not known yet, and serving how many of them are only
	// because they are being updated in place.
	down, serving int
	// refused is why a pod cannot be updated, and refusal the reason of the condition.
	refused, refusal string
	// expanding are pods whose claims the step expands, or whose volumes are being expanded.
	expanding map[types.UID]bool

	// patches are indexes of out.Patches. A pod in gone is deleted by this step.
	patches map[types.UID]int
	gone    map[types.UID]bool
}

// replica is a pod that should exist.
type replica struct {
	ordinal int
	name    string
	// pod is nil if it does not exist.
	pod *corev1.Pod
	// blocked reports whether a pod that the set does not own has the name.
	blocked bool
	// old reports whether the partition requires that the replica is created with the current revision.
	old bool
}

// newPlanner returns the planner with everything that can be computed before the pods are sorted.
func newPlanner(set *appsv1beta1.StatefulSet, in planning.Input, out *Output) (*planner, error) {
	p := &planner{
		out: out, set: set,
		ordered:  set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement,
		strategy: strategyOf(set),
		patches:  map[types.UID]int{}, gone: map[types.UID]bool{}, expanding: map[types.UID]bool{},
		claims: make(map[string]*corev1.PersistentVolumeClaim, len(in.Claims)),
		down:   -1,
	}
	p.minReady = p.strategy.minReady
	p.retain(set.Spec.PersistentVolumeClaimRetentionPolicy)
	if err := reversedRange(set.Spec.ReserveOrdinals); err != nil {
		return nil, err
	}
	for _, claim := range in.Claims {
		p.claims[claim.Name] = claim
	}
	var err error
	p.Step, err = step.New(step.Set{
		Parts: parts(set), Object: set, Kind: Kind(), Hooks: set.Spec.Lifecycle, InPlace: p.strategy.inPlaceParameters,
		RevisionHistoryLimit: set.Spec.RevisionHistoryLimit, CollisionCount: set.Status.CollisionCount,
		CurrentRevision: set.Status.CurrentRevision, FailedUpdate: string(appsv1beta1.FailedUpdatePod), Gated: p.strategy.inPlace,
	}, in, &out.Actions)
	return p, err
}

// arrange sorts the pods of the set into replicas and excess pods. It adopts pods without a controller
// that match, and releases those that no longer match.
func (p *planner) arrange() {
	ordinals := Ordinals(p.set)
	p.replicas = make([]replica, len(ordinals))
	for i, ordinal := range ordinals {
		p.replicas[i] = replica{ordinal: ordinal, name: podName(p.set.Name, ordinal)}
	}
	own, deleting := owner.Of(Kind(), p.set), p.set.DeletionTimestamp != nil
	for _, pod := range p.Pods {
		controller := metav1.GetControllerOfNoCopy(pod)
		if controller != nil && owner.Named(pod, controller) != own {
			continue
		}
		ordinal, member := ordinalOf(p.set.Name, pod.Name)
		matches := member && p.Selector.Matches(labels.Set(pod.Labels))
		i, isReplica := slices.BinarySearch(ordinals, ordinal)
		isReplica = isReplica && member
		switch {
		case controller == nil && (!matches || deleting || planning.Terminating(pod)),
			controller != nil && !matches:
			if controller != nil && !deleting {
				p.patch(pod, "Release").Controller = planning.Release
			}
			if isReplica {
				p.replicas[i].blocked = true
			}
			continue
		case controller == nil:
			p.patch(pod, "Adopt").Controller = planning.Adopt
		}
		if isReplica {
			p.replicas[i].pod = pod
		} else {
			p.excess = append(p.excess, pod)
		}
	}
	slices.SortFunc(p.excess, func(a, b *corev1.Pod) int { return p.ordinal(b) - p.ordinal(a) })
}

func (p *planner) replica(pod *corev1.Pod) bool {
	ordinal := p.ordinal(pod)
	_, found := slices.BinarySearchFunc(p.replicas, ordinal, func(r replica, n int) int { return r.ordinal - n })
	return found
}

func (p *planner) ordinal(pod *corev1.Pod) int {
	ordinal, _ := ordinalOf(p.set.Name, pod.Name)
	return ordinal
}

// available reports whether the pod runs, has been ready for minReadySeconds, and is not held by the hook
// preNormal. It plans again when the pod becomes available.
func (p *planner) available(pod *corev1.Pod) bool {
	if pod == nil || pod.Status.Phase != corev1.PodRunning || planning.Terminating(pod) ||
		lifecycle.State(pod) == pub.LifecycleStatePreparingNormal {
		return false
	}
	available, left := planning.Available(pod, p.minReady, p.Now)
	p.After(left)
	return available
}

func (p *planner) updated(pod *corev1.Pod) bool { return revision.Is(pod, p.History.Update.Name) }

// busy reports whether the step writes the pod already. A further change waits for the next step.
func (p *planner) busy(pod *corev1.Pod) bool {
	_, patched := p.patches[pod.UID]
	return patched || p.gone[pod.UID]
}

// patch returns the patch of the pod. The reason is that of its first change.
func (p *planner) patch(pod *corev1.Pod, reason string) *planning.PodPatch {
	i, ok := p.patches[pod.UID]
	if !ok {
		i = len(p.out.Patches)
		p.patches[pod.UID] = i
		p.out.Patches = append(p.out.Patches, planning.PodPatch{Pod: pod, Reason: reason})
	}
	return &p.out.Patches[i]
}

// addPatch adds the patch that another package decided about. It does nothing if it is nil.
func (p *planner) addPatch(patch *planning.PodPatch) {
	if patch == nil {
		return
	}
	if _, ok := p.patches[patch.Pod.UID]; ok {
		return
	}
	p.patches[patch.Pod.UID] = len(p.out.Patches)
	p.out.Patches = append(p.out.Patches, *patch)
}

func setLabel(patch *planning.PodPatch, key, value string) {
	if patch.Labels == nil {
		patch.Labels = map[string]*string{}
	}
	patch.Labels[key] = &value
}

// strategy is updateStrategy with its defaults.
type strategy struct {
	// rolling is false for the type OnDelete.
	rolling, paused bool
	// partition is the number of replicas that keep the old revision.
	partition int
	// maxUnavailable is at least one.
	maxUnavailable int
	minReady       time.Duration

	unordered bool
	priority  *pub.UpdatePriorityStrategy

	inPlace, inPlaceOnly bool
	grace                time.Duration
	// inPlaceParameters are those of updates in place, nil if the set has none.
	inPlaceParameters *pub.InPlaceUpdateStrategy

	// claimsFollow reports whether claims follow changes of their templates.
	claimsFollow bool
}

func strategyOf(set *appsv1beta1.StatefulSet) strategy {
	s := strategy{
		rolling:        set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType,
		maxUnavailable: 1,
		claimsFollow:   set.Spec.VolumeClaimUpdateStrategy.Type == appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType,
	}
	spec := set.Spec.UpdateStrategy.RollingUpdate
	if spec == nil {
		return s
	}
	s.paused = spec.Paused
	if spec.Partition != nil {
		s.partition = int(*spec.Partition)
	}
	if spec.MaxUnavailable != nil {
		s.maxUnavailable = atLeastOne(spec.MaxUnavailable, replicasOf(set))
	}
	if spec.MinReadySeconds != nil {
		s.minReady = time.Duration(*spec.MinReadySeconds) * time.Second
	}
	if spec.UnorderedUpdate != nil {
		s.unordered, s.priority = true, spec.UnorderedUpdate.PriorityStrategy
	}
	s.inPlaceOnly = spec.PodUpdatePolicy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	s.inPlace = s.inPlaceOnly || spec.PodUpdatePolicy == appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
	if s.inPlaceParameters = spec.InPlaceUpdateStrategy; s.inPlaceParameters != nil {
		s.grace = time.Duration(s.inPlaceParameters.GracePeriodSeconds) * time.Second
	}
	return s
}
