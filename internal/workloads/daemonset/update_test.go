// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/daemonset"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// on changes the pod of a node.
func (f *fixture) on(node string, change func(*corev1.Pod)) {
	for _, pod := range f.pods {
		if nodefit.Target(pod) == node {
			f.change(pod, change)
		}
	}
}

// steps returns what a step does with pods: "~" for a patch, "-" for a deletion and "+" for a creation, and the node.
func steps(out *daemonset.Output) []string {
	var all []string
	for i := range out.Patches {
		all = append(all, "~"+nodefit.Target(out.Patches[i].Pod))
	}
	for _, d := range out.Deletes {
		all = append(all, "-"+nodefit.Target(d.Pod))
	}
	for _, pod := range out.Creates {
		all = append(all, "+"+nodefit.Target(pod))
	}
	slices.Sort(all)
	return all
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { planning.Condition(pod, kind).Status = status }
}

func inPlace(set *v1alpha1.DaemonSet) {
	set.Spec.UpdateStrategy.RollingUpdate.Type = v1alpha1.InplaceRollingUpdateType
}

// TestUpdate checks the first step of the update of three nodes, of which one may be unavailable.
func TestUpdate(t *testing.T) {
	ungated := func(pod *corev1.Pod) {
		pod.Spec.ReadinessGates, pod.Status.Conditions = nil, pod.Status.Conditions[:1]
	}
	updating := func(pod *corev1.Pod) { pod.Labels[pub.LifecycleStateKey] = string(pub.LifecycleStateUpdating) }
	for name, tc := range map[string]struct {
		change func(*fixture)
		want   []string
	}{
		"in place": {change: func(*fixture) {}, want: []string{"~node-2"}},
		"pods without the gate are recreated": {
			change: func(f *fixture) {
				for i := range 3 {
					f.on(fmt.Sprintf("node-%d", i), ungated)
				}
			},
			want: []string{"-node-2"},
		},
		// Another update followed before the first one was done.
		"an update in progress counts, although the pod is ready": {
			change: func(f *fixture) { f.on("node-0", updating) }, want: []string{"~node-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			inPlace(f.set)
			tc.change(f)
			out := f.plan(t)
			if got := steps(&out); !slices.Equal(got, tc.want) {
				t.Errorf("step %v, want %v", got, tc.want)
			}
		})
	}
}

// The type may change, and readiness gates cannot be added to a pod.
func TestPodsOfAllTypesHaveTheReadinessGate(t *testing.T) {
	for _, pod := range newFixture(t).pods {
		if !planning.HasGate(pod, pub.InPlaceUpdateReady) {
			t.Errorf("readiness gates %v, want %s", pod.Spec.ReadinessGates, pub.InPlaceUpdateReady)
		}
	}
}
