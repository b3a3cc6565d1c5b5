// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Progress is what the specification and the status of a set say about its rollout. Each kind returns it from its own fields.
type Progress struct {
	// Generation is that of the specification, and Observed the last one that the controller has handled.
	Generation, Observed int64
	// Revision is the name of the update revision, or its hash for kinds that store only that.
	Revision string
	// Desired is the number of pods that the specification demands. Target is how many of them the controller brings to the
	// update revision: fewer with a partition, and none if pods are updated when others delete them.
	Desired, Target int32
	// Replicas is the number of pods, Ready and Available how many of them are ready and available.
	Replicas, Ready, Available int32
	// Updated is the number of pods of the update revision, and UpdatedAvailable how many of them are available.
	Updated, UpdatedAvailable int32
	// Paused reports whether a user has paused the update.
	Paused bool
	// OnDelete reports whether pods are updated only when others delete them.
	OnDelete bool
	// Exceeded is the message about progressDeadlineSeconds that have passed, empty if they have not.
	Exceeded string
	// Guarded is the message about guards that protect pods from their deletion or their update, empty if there are none.
	Guarded string
	// Failing is the message about writes that the API server refuses or that cannot be planned, empty if there are none.
	Failing string
}

// Full reports whether all pods that the set should have exist and are available, whatever their revisions.
func (p *Progress) Full() bool {
	return p.Replicas == p.Desired && p.Ready == p.Desired && p.Available == p.Desired
}

// Updating reports whether the controller has pods to update.
func (p *Progress) Updating() bool { return p.Updated < p.Target }

// Refused returns the progress of an object that counts no pods: the condition is False if the API server has refused its last write.
func Refused(conditions []metav1.Condition, created string) (p Progress) {
	if c := meta.FindStatusCondition(conditions, created); c != nil && c.Status == metav1.ConditionFalse {
		p.Failing = cmp.Or(c.Message, c.Reason, c.Type)
	}
	return p
}
