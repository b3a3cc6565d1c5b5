// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
)

// maxCollisions is the number of names that Plan tries.
const maxCollisions = 1000

// Owner is the set that has the revisions.
type Owner struct {
	// Object is the set. Its name, namespace, UID and annotations are read.
	Object metav1.Object
	// Kind is the kind of the set, for the owner reference of its revisions.
	Kind schema.GroupVersionKind
	// Template is the pod template of the set.
	Template *corev1.PodTemplateSpec
	// Encoder is that of the set, nil if it has none.
	Encoder *Encoder
	// CollisionCount is that of the set's status, zero if it is not set.
	CollisionCount int32
	// CurrentRevision is the name of the current revision in the set's status, empty if it has none.
	CurrentRevision string
	// Labeled reports whether new revisions have the label controller-revision-hash with their hash, as those of DaemonSets:
	// OpenKruise and kubectl compare it with that of the pods.
	Labeled bool
	// Now is the time. It is recorded when an earlier revision becomes the update revision again.
	Now time.Time
}

// Begun returns when the update to the revision began: when the revision was created, or when it became
// the update revision again. It is zero for a revision that does not exist yet.
func Begun(rev *appsv1.ControllerRevision) time.Time {
	again, err := time.Parse(time.RFC3339, rev.Annotations[pub.UpdateBegunKey])
	if err == nil && again.After(rev.CreationTimestamp.Time) {
		return again
	}
	return rev.CreationTimestamp.Time
}

// Result is what becomes of the revisions of a set. Its revisions are copies where they change.
type Result struct {
	// Update is the revision of the template. It is Create if it does not exist yet.
	Update *appsv1.ControllerRevision
	// Current is the revision that the status names as current, Update if there is no such revision.
	Current *appsv1.ControllerRevision
	// All are the revisions that exist after the writes, including Update, the newest last.
	All []*appsv1.ControllerRevision

	// Create is Update if it must be created, otherwise nil.
	Create *appsv1.ControllerRevision
	// UpdateRevisions are the revisions to update: adopted, or with a new number after a rollback.
	UpdateRevisions []*appsv1.ControllerRevision
	// Delete are the revisions beyond the limit, the oldest first.
	Delete []*appsv1.ControllerRevision
	// CollisionCount is the new value for the set's status.
	CollisionCount int32
}

// Plan returns what becomes of the revisions. The revisions are those of the set and those without a
// controller that match its selector, which are adopted. Revisions with other controllers only
// prevent that their names are used. A revision is in use if the map has its name or its hash: pass
// the labels controller-revision-hash of all pods. At most limit revisions that are neither in use,
// nor current, nor the update revision are kept.
func Plan(set Owner, revisions []*appsv1.ControllerRevision, limit int, inUse map[string]bool) (Result, error) {
	content, err := set.Encoder.encode(set.Template)
	if err != nil {
		return Result{}, err
	}
	own, taken := split(set, revisions)
	slices.SortFunc(own, compare)

	result := Result{CollisionCount: set.CollisionCount}
	number := int64(1)
	if len(own) > 0 {
		number = own[len(own)-1].Revision + 1
	}
	for i := len(own) - 1; i >= 0 && result.Update == nil; i-- {
		if !Equal(own[i], content) {
			continue
		}
		result.Update = own[i]
		set.Encoder.storeContent(own[i])
		if i < len(own)-1 {
			result.Update = own[i].DeepCopy()
			result.Update.Revision = number
			metav1.SetMetaDataAnnotation(&result.Update.ObjectMeta, pub.UpdateBegunKey, set.Now.UTC().Format(time.RFC3339))
			own = append(slices.Delete(own, i, i+1), result.Update)
		}
	}
	if result.Update == nil {
		wanted := build(&set, content, result.CollisionCount, number)
		for ; taken[wanted.Name]; wanted = build(&set, content, result.CollisionCount, number) {
			if result.CollisionCount-set.CollisionCount >= maxCollisions {
				return Result{}, fmt.Errorf("name the revision of %s: %d names are taken", wanted.Name, maxCollisions)
			}
			result.CollisionCount++
		}
		result.Create, result.Update = wanted, wanted
		own = append(own, wanted)
	}
	result.adopt(set, own, revisions)
	result.truncate(set, limit, inUse)
	return result, nil
}

// split returns the revisions that the set has or can adopt, and the names of all.
func split(set Owner, revisions []*appsv1.ControllerRevision) ([]*appsv1.ControllerRevision, map[string]bool) {
	key := owner.Of(set.Kind, set.Object)
	own := make([]*appsv1.ControllerRevision, 0, len(revisions)+1)
	taken := make(map[string]bool, len(revisions))
	for _, rev := range revisions {
		taken[rev.Name] = true
		if metav1.GetControllerOfNoCopy(rev) == nil && rev.DeletionTimestamp == nil && rev.Namespace == set.Object.GetNamespace() || key.Controls(rev) {
			own = append(own, rev)
		}
	}
	return own, taken
}

// adopt completes All and UpdateRevisions: revisions of own without a controller become the set's.
func (r *Result) adopt(set Owner, own, before []*appsv1.ControllerRevision) {
	for i, rev := range own {
		changed := rev != r.Create && !slices.Contains(before, rev)
		if metav1.GetControllerOfNoCopy(rev) == nil {
			if !changed {
				rev = rev.DeepCopy()
			}
			rev.OwnerReferences = owner.Add(rev.OwnerReferences, *metav1.NewControllerRef(set.Object, set.Kind))
			if own[i] == r.Update {
				r.Update = rev
			}
			own[i], changed = rev, true
		}
		if changed {
			r.UpdateRevisions = append(r.UpdateRevisions, rev)
		}
		if rev.Name == set.CurrentRevision {
			r.Current = rev
		}
	}
	r.All = own
	if r.Current == nil {
		r.Current = r.Update
	}
}

// truncate moves the oldest revisions that nothing uses from All to Delete.
func (r *Result) truncate(owner Owner, limit int, inUse map[string]bool) {
	used := func(rev *appsv1.ControllerRevision) bool {
		return rev == r.Update || rev == r.Current || rev.Name == owner.CurrentRevision ||
			inUse[rev.Name] || inUse[Hash(rev.Name)]
	}
	surplus := -max(limit, 0)
	for _, rev := range r.All {
		if !used(rev) {
			surplus++
		}
	}
	r.All = slices.DeleteFunc(r.All, func(rev *appsv1.ControllerRevision) bool {
		if surplus <= 0 || used(rev) {
			return false
		}
		surplus--
		r.Delete = append(r.Delete, rev)
		return true
	})
	r.UpdateRevisions = slices.DeleteFunc(r.UpdateRevisions, func(rev *appsv1.ControllerRevision) bool {
		return slices.Contains(r.Delete, rev)
	})
}

// compare orders revisions by number, then by age, then by name.
func compare(a, b *appsv1.ControllerRevision) int {
	return cmp.Or(
		cmp.Compare(a.Revision, b.Revision),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}
