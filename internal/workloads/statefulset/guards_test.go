// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"testing"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
)

func TestGuards(t *testing.T) {
	inPlaces := inPlace(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType)
	const guarded, strict = " guard=delete", " guard=update"
	runCases(t, map[string]planCase{
		"ordered: a scale-in waits for the highest pod": {set: both(ordered, replicas(1)), pods: []string{"0 updated", "1", "2" + guarded}},
		"parallel: a scale-in deletes the others": {
			set: replicas(1), pods: []string{"0 updated", "1", "2" + guarded}, want: []string{"delete db-1: ScaleDown"},
		},
		"a pod that is to be deleted": {pods: []string{"0 updated apps.kruise.io/specified-delete=true" + guarded, "1 updated", "2 updated"}},
		"two pods that are to be deleted": {
			pods: []string{"0 updated", "1 updated apps.kruise.io/specified-delete=true", "2 updated apps.kruise.io/specified-delete=true" + guarded},
			want: []string{"delete db-1: SpecifiedDelete"},
		},
		"two pods that their hook releases": {
			set: both(replicas(2), preDelete), pods: []string{
				"0 updated apps.kruise.io/specified-delete=true " + pub.LifecycleStateKey + "=PreparingDelete" + guarded,
				"1 updated apps.kruise.io/specified-delete=true " + pub.LifecycleStateKey + "=PreparingDelete",
			}, want: []string{"delete db-1: PreparedDelete"},
		},
		"a failed pod is replaced": {pods: []string{"0 updated failed" + guarded, "1 updated", "2 updated"}, want: []string{"delete db-0: Finished"}},
		"a pod that its hook releases": {set: both(replicas(2), preDelete), pods: []string{
			"0 updated", "1 updated", "2 " + pub.LifecycleStateKey + "=PreparingDelete" + guarded,
		}},
		"an update waits for the highest pod": {pods: []string{"0", "1", "2" + guarded}},
		"an update by priority takes others":  {set: byRole, pods: []string{"0", "1", "2" + guarded}, want: []string{"delete db-1: Update"}},
		"an update by priority below the partition takes others": {
			set: both(byRole, partition(2)), pods: []string{"0 role=primary", "1 role=secondary" + guarded, "2 role=secondary" + guarded}, want: []string{"delete db-0: Update"},
		},
		"in place: a guard of deletions": {set: inPlaces, pods: []string{"0", "1", "2" + guarded}, want: []string{"Updating db-2"}},
		"in place: a guard of updates":   {set: inPlaces, pods: []string{"0", "1", "2" + strict}},
		"in place, by priority":          {set: both(inPlaces, byRole), pods: []string{"0", "1", "2" + strict}, want: []string{"Updating db-1"}},
	})
}
