// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
)

// The API server refuses to resize these pods, because their node does not report resources. With
// InPlaceIfPossible, they are recreated. With InPlaceOnly, the set reports it.
func TestResizeThatTheAPIServerRefuses(t *testing.T) {
	const resize = `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:1",` +
		`"resources":{"requests":{"cpu":%q}}}]}}}}`
	create := func(w *world, kind v1alpha1.CloneSetUpdateStrategyType) (*v1alpha1.CloneSet, map[types.UID]bool) {
		set := w.cloneSet("web", 2, func(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.Type = kind })
		w.Patch(set, resize, "1")
		w.settled(set, 2, "image:1")
		pods := w.stored("web")
		before := map[types.UID]bool{}
		for _, pod := range pods {
			before[pod.UID] = true
		}
		w.Patch(set, resize, "2")
		return set, before
	}
	t.Run("InPlaceIfPossible", func(t *testing.T) {
		w := newWorld(t)
		set, before := create(w, v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType)
		w.settled(set, 2, "image:1")
		pods := w.stored("web")
		for name, pod := range pods {
			if cpu := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "2" || before[pod.UID] {
				t.Errorf("pod %s has cpu %s, is the old one: %t", name, cpu, before[pod.UID])
			}
		}
	})
	t.Run("InPlaceOnly", func(t *testing.T) {
		w := newWorld(t)
		set, before := create(w, v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType)
		w.Shows(set, "the condition FailedUpdate", func() error {
			found := slices.ContainsFunc(set.Status.Conditions, func(c v1alpha1.CloneSetCondition) bool {
				return c.Type == v1alpha1.CloneSetConditionFailedUpdate && strings.Contains(c.Message, "resize")
			})
			return await.ErrorIf(!found, "conditions %v", set.Status.Conditions)
		})
		pods := w.stored("web")
		for name, pod := range pods {
			if !before[pod.UID] {
				t.Errorf("pod %s is recreated", name)
			}
		}
	})
}
