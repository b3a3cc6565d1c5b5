// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// plan plans the next step of the set. An error means that the set is invalid in a way that its CRD does not refuse.
func (r *Reconciler[S, T]) plan(set S, in *planning.Input) (planning.Output[T], error) {
	if err := checkSelector(r.parts(set).Selector); err != nil {
		return planning.Output[T]{}, err
	}
	return r.descriptor.Plan(set, *in) //nolint:wrapcheck // It names the field.
}

// checkSelector returns an error if the selector has a label that pods get when they are created, or that changes while they
// run. The pods of such a set stop matching: it would release them, and create others, for ever.
func checkSelector(selector *metav1.LabelSelector) error {
	reserved := sets.New(
		pub.WorkloadKey, pub.LifecycleStateKey, appsv1.ControllerRevisionHashLabelKey, appsv1.DefaultDeploymentUniqueLabelKey,
		v1alpha1.CloneSetInstanceID, appsv1.StatefulSetPodNameLabel, appsv1.PodIndexLabel,
	)
	for key := range selector.MatchLabels {
		if reserved.Has(key) {
			return fmt.Errorf("spec.selector.matchLabels: must not have the label %s, which Seamark sets", key)
		}
	}
	for i, requirement := range selector.MatchExpressions {
		if reserved.Has(requirement.Key) {
			return fmt.Errorf("spec.selector.matchExpressions[%d].key: must not be the label %s, which Seamark sets", i, requirement.Key)
		}
	}
	return nil
}
