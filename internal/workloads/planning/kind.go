// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// Descriptor describes a kind of sets to the controller that all kinds share. S is a pointer to a set, and T its
// status. All fields except ClaimSizes and Slots are required.
type Descriptor[S, T any] struct {
	// GroupVersionKind is the kind of the owner of pods, claims and revisions.
	schema.GroupVersionKind
	// New returns an empty set.
	New func() S
	// Parts returns the parts of a set that pods and claims depend on.
	Parts func(set S) Parts
	// Status returns the status of a set.
	Status func(set S) *T
	// Conditions returns the conditions of a status.
	Conditions func(status *T) Conditions
	// SetConditions replaces them.
	SetConditions func(status *T, conditions Conditions)
	// Progress returns how far a set with the status is. The status need not be that of the set.
	Progress func(set S, status *T) Progress
	// FailedScale and FailedUpdate are the types of the conditions about writes that failed: True while
	// pods or claims cannot be created or deleted, or pods cannot be updated.
	FailedScale, FailedUpdate string
	// ClaimSizes makes the sizes of claims matter: a change plans the next step of their set.
	ClaimSizes bool
	// Slots are what is known about the nodes of the sets, for a kind that runs a pod per node. It is nil for others.
	Slots Slots
	// Plan returns the next step of a set. An error means that the set is invalid in a way that its CRD
	// does not reject, or that a revision cannot be decoded.
	Plan func(set S, in Input) (Output[T], error)
}

// Slots follow the pods and the nodes of all sets of a kind by their events, so that a step need not read the pods of
// the set again: a set has a pod on each of thousands of nodes. Methods are safe for concurrent use.
type Slots interface {
	// Pod follows a change of a pod: before is nil for a new one, and after for one that is gone.
	Pod(before, after *corev1.Pod)
	// Node follows a change of a node, as Pod does, and returns the sets for which it matters.
	Node(before, after *corev1.Node) []types.NamespacedName
	// Version returns the resource version up to which the pods are followed, empty if no pod has changed.
	Version() string
	// Unseen returns which of the pods that the set has deleted are not known to terminate yet.
	Unseen(set types.UID, deleted map[types.UID]bool) map[types.UID]bool
	// Size returns the number of nodes of a set.
	Size(set types.UID) int
	// Forget forgets a set that is gone.
	Forget(key types.NamespacedName)
}

// Parts are parts of a set.
type Parts struct {
	// Selector selects the pods.
	Selector *metav1.LabelSelector
	// Template is the template of the pods.
	Template *corev1.PodTemplateSpec
	// Claims are the templates of the claims.
	Claims []corev1.PersistentVolumeClaim
}

// Input is what a step of a set depends on besides the set. A planner does not change it.
type Input struct {
	// Pods are the pods that the set controls, including terminating and finished ones and those that
	// the selector does not match, and the pods of the namespace that the selector matches and that
	// have no controller. A kind with Slots gets only the latter.
	Pods []*corev1.Pod
	// Claims are the claims that the set owns, and those with names of its claims, including terminating
	// ones.
	Claims []*corev1.PersistentVolumeClaim
	// Revisions are the revisions that the set controls, those without a controller that the selector
	// matches, and those of others with names of its revisions.
	Revisions []*appsv1.ControllerRevision
	// PreDownload reports whether images are pulled before an update. Pulls are the ImagePullJobs that the set controls.
	PreDownload bool
	Pulls       []*v1alpha1.ImagePullJob
	// Encoder is that of the set. It may be nil.
	Encoder *revision.Encoder
	// Nodes are the labels of the pods' nodes by the name of the node. They are read only if the
	// template has topologySpreadConstraints.
	Nodes map[string]map[string]string
	// Markers is what is known about the markers that select pods of the set.
	Markers Markers
	// Guards are those of the namespace of the set.
	Guards guard.Guards
	// TakenNames are names of pods that the set must not use: a create failed because a pod that
	// does not belong to the set has the name. It may be nil.
	TakenNames map[string]bool
	// Now is the current time.
	Now time.Time
}

// Output is a step.
type Output[T any] struct {
	Actions
	// Outdated is the number of pods that the strategy updates and that are not updated, before the step. It is 0 for kinds whose
	// partition is only a number of pods, of which the counts of the status are enough. The ordered update of a StatefulSet also
	// decides which pods are updated: those below the partition may have the update revision while others do not.
	Outdated int32
	// Status is the whole status after the writes have succeeded. It equals the set's status if nothing
	// changed. See Descriptor.Failed.
	Status T
}

// Converged reports whether all pods that the set should have exist and are available, and the step
// writes nothing: the status stays as it is until something changes.
func (k *Descriptor[S, T]) Converged(set S, out *Output[T]) bool {
	n := k.Progress(set, &out.Status)
	return out.Empty() && n.Full()
}

// The reasons of the conditions about steps that failed.
const (
	// PlanFailed is that of a set whose next step cannot be planned.
	PlanFailed  = "PlanFailed"
	writeFailed = "WriteFailed"
	// openKruiseFailed is that of OpenKruise's conditions of both types, which are True after a take-over.
	openKruiseFailed = ""
)

// Decided reports whether the reason of a condition about updates is one of a planner, not that of a failed write.
func Decided(c *SetCondition) bool { return c.Reason != writeFailed && c.Reason != openKruiseFailed }

// Unplanned sets the conditions of a set for which Plan returned the error: FailedScale is True, because
// pods are neither created nor deleted. Failed sets it to False after the next step that is planned. The
// observed generation does not change: the counts are not those of the current spec.
func (k *Descriptor[S, T]) Unplanned(status *T, err error, now time.Time) {
	conditions := k.Conditions(status)
	conditions.Set(k.FailedScale, PlanFailed, err.Error(), now)
	k.SetConditions(status, conditions)
}

// Failed sets the conditions FailedScale and FailedUpdate of the status of a step to its failed writes:
// True with the first error of the kind, or False if the condition was True because of a write, or of OpenKruise, and no
// write of the kind failed. It is called after the writes of every step. A conflict is not a failure: the
// step was decided from an old cache, and the next one is not.
func (k *Descriptor[S, T]) Failed(status *T, failures []Failure, now time.Time) {
	conditions := k.Conditions(status)
	conditions.Set(k.FailedScale, openKruiseFailed, "", now)
	conditions.Set(k.FailedUpdate, openKruiseFailed, "", now)
	conditions.Set(k.FailedScale, PlanFailed, "", now)
	conditions.Set(k.FailedScale, writeFailed, first(failures, false), now)
	conditions.Set(k.FailedUpdate, writeFailed, first(failures, true), now)
	if i := slices.IndexFunc(failures, func(f Failure) bool { return f.Pull }); i >= 0 {
		conditions.Put(SetCondition{
			Type: PreDownloading, Status: corev1.ConditionFalse, Reason: PullsRefused, Message: text.Message(failures[i].Error()),
		}, now)
	}
	k.SetConditions(status, conditions)
}

// Markers is what a planner knows about the markers that select pods of the set. It is empty if no
// marker does.
type Markers struct {
	// Labels are the label keys that the markers write. A set whose selector contains one of them
	// loses its pods. A pod without such a key may get it when the next result is reported.
	Labels sets.Set[string]
	// Conditions are the condition types that the markers write. While one of them is Unknown in a
	// pod, labels that the marker wrote are about to return.
	Conditions sets.Set[corev1.PodConditionType]
}

// Failure is a write of a step that the API server refused. A conflict is not a failure: the step is
// planned again. The planners turn failures into conditions of the set.
type Failure struct {
	// Update reports whether the write was a patch of a pod or the expansion of a claim. All other
	// writes of a step create or delete revisions, claims or pods.
	Update bool
	// Pull reports whether the write was one of an ImagePullJob, without which the update goes on.
	Pull bool
	// Object is the kind and the name of the object, for example "pod db-0", with its namespace if the set belongs to none.
	Object string
	// Pod is the pod that was not patched, empty after other writes.
	Pod types.UID
	// Err is the error of the API server.
	Err error
}

// Error returns the object and the error.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Object, f.Err) }

const (
	// PreDownloading is the type of the condition of a set that is True while images of its update revision are pulled before
	// the update, and otherwise says why they are not.
	PreDownloading = "PreDownloading"
	// PullsRefused is the reason of the condition if the API server has refused a job or a pod that pulls.
	PullsRefused = "PullsRefused"
)

// PodsGuarded is the type of the condition of a set that is True while guards protect pods that the set would delete or update.
const PodsGuarded = "PodsGuarded"

// SelectorMarked is the type of the condition of a set that is True while a marker writes a label key
// of the set's selector: the set releases a pod, and replaces it, when the marker changes the label.
const SelectorMarked = "SelectorMarked"

// MarkedKeys returns the label keys of the selector that markers write, sorted.
func MarkedKeys(selector *metav1.LabelSelector, markers Markers) []string {
	if selector == nil || len(markers.Labels) == 0 {
		return nil
	}
	keys := sets.KeySet(selector.MatchLabels)
	for i := range selector.MatchExpressions {
		keys.Insert(selector.MatchExpressions[i].Key)
	}
	return sets.List(keys.Intersection(markers.Labels))
}
