// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// defaultHistory is the default of revisionHistoryLimit.
const defaultHistory = 10

// planner is a step while it is planned.
type planner struct {
	in  *Input
	out *Output
	set *appsv1beta1.StatefulSet

	ordered   bool
	strategy  strategy
	retention retention
	minReady  time.Duration
	selector  labels.Selector

	revisions revision.Result
	templates map[string]*corev1.PodTemplateSpec
	claims    map[string]*corev1.PersistentVolumeClaim
	// differences are those of two templates, by the names of their revisions.
	differences map[[2]string]*inplace.Difference

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
	// down is the number of replicas that are unavailable, -1 if it is not known yet.
	down int
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
func newPlanner(in *Input, out *Output) (*planner, error) {
	p := &planner{
		in: in, out: out, set: in.Set,
		ordered:   in.Set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement,
		retention: retentionOf(in.Set),
		templates: map[string]*corev1.PodTemplateSpec{}, differences: map[[2]string]*inplace.Difference{},
		patches:   map[types.UID]int{},
		gone:      map[types.UID]bool{},
		expanding: map[types.UID]bool{},
		down:      -1,
	}
	p.strategy = strategyOf(in.Set)
	p.minReady = p.strategy.minReady
	var err error
	if err := reversedRange(in.Set.Spec.ReserveOrdinals); err != nil {
		return nil, err
	}
	if p.selector, err = metav1.LabelSelectorAsSelector(in.Set.Spec.Selector); err != nil {
		return nil, fmt.Errorf("parse spec.selector of StatefulSet %s/%s: %w", in.Set.Namespace, in.Set.Name, err)
	}
	if len(in.Set.Spec.VolumeClaimTemplates) > 0 {
		p.claims = make(map[string]*corev1.PersistentVolumeClaim, len(in.Claims))
		for _, claim := range in.Claims {
			p.claims[claim.Name] = claim
		}
	}
	return p, p.planRevisions()
}

// planRevisions decides about the history. Revisions of all pods are kept, also of pods that are about
// to be released.
func (p *planner) planRevisions() error {
	inUse := make(map[string]bool, 2)
	for _, pod := range p.in.Pods {
		inUse[pod.Labels[appsv1.ControllerRevisionHashLabelKey]] = true
	}
	limit := defaultHistory
	if p.set.Spec.RevisionHistoryLimit != nil {
		limit = int(*p.set.Spec.RevisionHistoryLimit)
	}
	collisions := int32(0)
	if p.set.Status.CollisionCount != nil {
		collisions = *p.set.Status.CollisionCount
	}
	var err error
	p.revisions, err = revision.Plan(revision.Owner{
		Object: p.set, Kind: Kind(), Template: &p.set.Spec.Template, Encoder: p.in.Encoder,
		CollisionCount: collisions, CurrentRevision: p.set.Status.CurrentRevision, Now: p.in.Now,
	}, p.in.Revisions, limit, inUse)
	if err != nil || p.set.DeletionTimestamp != nil {
		return err
	}
	p.out.CreateRevision = p.revisions.Create
	p.out.UpdateRevisions = p.revisions.UpdateRevisions
	p.out.DeleteRevisions = p.revisions.Delete
	return nil
}

// arrange sorts the pods of the set into replicas and excess pods. It adopts pods without a controller
// that match, and releases those that no longer match.
func (p *planner) arrange() {
	ordinals := Ordinals(p.set)
	p.replicas = make([]replica, len(ordinals))
	for i, ordinal := range ordinals {
		p.replicas[i] = replica{ordinal: ordinal, name: podName(p.set.Name, ordinal)}
	}
	deleting := p.set.DeletionTimestamp != nil
	for _, pod := range p.in.Pods {
		controller := metav1.GetControllerOfNoCopy(pod)
		if controller != nil && controller.UID != p.set.UID {
			continue
		}
		ordinal, member := ordinalOf(p.set.Name, pod.Name)
		matches := member && p.selector.Matches(labels.Set(pod.Labels))
		i, isReplica := slices.BinarySearch(ordinals, ordinal)
		isReplica = isReplica && member
		switch {
		case controller == nil && (!matches || deleting || workload.Terminating(pod)),
			controller != nil && !matches:
			if controller != nil && !deleting {
				p.patch(pod, "Release").Controller = workload.Release
			}
			if isReplica {
				p.replicas[i].blocked = true
			}
			continue
		case controller == nil:
			p.patch(pod, "Adopt").Controller = workload.Adopt
		}
		if isReplica {
			p.replicas[i].pod = pod
		} else {
			p.excess = append(p.excess, pod)
		}
	}
	slices.SortFunc(p.excess, func(a, b *corev1.Pod) int { return p.ordinal(b) - p.ordinal(a) })
}

// replica reports whether the pod of the set is a replica.
func (p *planner) replica(pod *corev1.Pod) bool {
	ordinal := p.ordinal(pod)
	_, found := slices.BinarySearchFunc(p.replicas, ordinal, func(r replica, n int) int { return r.ordinal - n })
	return found
}

// ordinal returns the ordinal of a pod of the set.
func (p *planner) ordinal(pod *corev1.Pod) int {
	ordinal, _ := ordinalOf(p.set.Name, pod.Name)
	return ordinal
}

// available reports whether the pod runs, has been ready for minReadySeconds, and is not held by the hook
// preNormal. It plans again when the pod becomes available.
func (p *planner) available(pod *corev1.Pod) bool {
	if pod == nil || pod.Status.Phase != corev1.PodRunning || workload.Terminating(pod) ||
		lifecycle.State(pod) == pub.LifecycleStatePreparingNormal {
		return false
	}
	available, left := workload.Available(pod, p.minReady, p.in.Now)
	p.requeue(left)
	return available
}

// updated reports whether the pod has the update revision.
func (p *planner) updated(pod *corev1.Pod) bool { return revision.Is(pod, p.revisions.Update.Name) }

// requeue plans again after the time, if it is positive.
func (p *planner) requeue(after time.Duration) {
	if after > 0 && (p.out.RequeueAfter == 0 || after < p.out.RequeueAfter) {
		p.out.RequeueAfter = after
	}
}

// busy reports whether the step writes the pod already. A further change waits for the next step.
func (p *planner) busy(pod *corev1.Pod) bool {
	_, patched := p.patches[pod.UID]
	return patched || p.gone[pod.UID]
}

// patch returns the patch of the pod. The reason is that of its first change.
func (p *planner) patch(pod *corev1.Pod, reason string) *workload.PodPatch {
	i, ok := p.patches[pod.UID]
	if !ok {
		i = len(p.out.Patches)
		p.patches[pod.UID] = i
		p.out.Patches = append(p.out.Patches, workload.PodPatch{Pod: pod, Reason: reason})
	}
	return &p.out.Patches[i]
}

// addPatch adds the patch that another package decided about. It does nothing if it is nil.
func (p *planner) addPatch(patch *workload.PodPatch) {
	if patch == nil {
		return
	}
	if _, ok := p.patches[patch.Pod.UID]; ok {
		return
	}
	p.patches[patch.Pod.UID] = len(p.out.Patches)
	p.out.Patches = append(p.out.Patches, *patch)
}

func setLabel(patch *workload.PodPatch, key, value string) {
	if patch.Labels == nil {
		patch.Labels = map[string]*string{}
	}
	patch.Labels[key] = &value
}

// event adds an event about the pod.
func (p *planner) event(reason, pod, one, many string) {
	p.out.Events = workload.AddEvent(p.out.Events, workload.PodEvent(reason, one, many, pod))
}
