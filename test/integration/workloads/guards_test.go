// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// TestGuardedPodsOfSets scales in and updates sets while a guard protects one of their pods. The policy of guards is installed: a
// controller that tries to delete the pod fails.
func TestGuardedPodsOfSets(t *testing.T) {
	w := newWorld(t)
	w.Apply(t, env.Manifests(t, []string{"config/policies/guards.yaml"})...)
	w.Create(builders.Guard(w.Namespace, "busy", false, "yes"))
	config := env.Kubeconfig(t, w.Config)
	for name, set := range map[string]client.Object{
		"cloneset/arena": w.cloneSet("arena", 3),
		"statefulset/db": w.statefulSet("db", 3, parallel, func(set *v1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{UnorderedUpdate: &v1beta1.UnorderedUpdateStrategy{}}
		}),
	} {
		app := strings.Split(name, "/")[1]
		w.seamark(config, "rollout status "+name+" --timeout=1m", exit.OK)
		busy := slices.SortedFunc(maps.Values(w.stored(app)), func(a, b *corev1.Pod) int { return strings.Compare(b.Name, a.Name) })[0]
		w.Patch(busy.DeepCopy(), `{"metadata":{"labels":{%q:"yes"}}}`, builders.GuardLabel)
		w.Patch(set, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:2"}]}}}}`)
		message := "PodDisruptionBudget busy guards " + busy.Name
		w.Shows(set, "the others are updated, and the guarded pod waits", func() error { return w.waits(set, app, busy, 3, message) })
		w.seamark(config, "explain "+name, exit.Failed, "waiting", message)
		w.seamark(config, "rollout status "+name+" --watch=false", exit.OK, "2 of 3 pods are updated: "+message)
		w.Patch(set, `{"spec":{"replicas":1}}`)
		left := 1
		if _, ordinals := set.(*v1beta1.StatefulSet); ordinals {
			left = 2 // The pods to delete are those with the highest ordinals.
		}
		w.Shows(set, "the others are deleted", func() error { return w.waits(set, app, busy, left, message) })
		w.Patch(busy.DeepCopy(), `{"metadata":{"labels":{%q:null}}}`, builders.GuardLabel)
		w.seamark(config, "rollout status "+name+" --timeout=1m", exit.OK, "successfully rolled out")
	}
}

// TestProgramWithoutRightsOnBudgets has the role of an earlier version.
func TestProgramWithoutRightsOnBudgets(t *testing.T) {
	e := servers.Parallel(t)
	w := newWorldWithoutProgram(t, e)
	program.Start(t, e.ComponentWithoutBudgets(t, workloads.Name))
	set := w.cloneSet("arena", 2)
	w.Shows(set, "it has its pods", func() error { return await.ErrorIf(set.Status.ReadyReplicas != 2, "%+v", set.Status) })
}

// waits returns an error unless the set has so many pods, of which only the guarded one is old, and says that it waits.
func (w *world) waits(set client.Object, app string, guarded *corev1.Pod, replicas int, message string) error {
	pods, err := w.pods(w.Context(), app)
	if err != nil {
		return err
	}
	for name, pod := range pods {
		if (pod.Spec.Containers[0].Image == "image:1") != (name == guarded.Name) || pod.DeletionTimestamp != nil || !planning.Ready(pod) {
			return fmt.Errorf("pod %s has image %s, ready: %t", name, pod.Spec.Containers[0].Image, planning.Ready(pod))
		}
	}
	if len(pods) != replicas || pods[guarded.Name] == nil || pods[guarded.Name].UID != guarded.UID {
		return fmt.Errorf("%d pods, want %d with %s", len(pods), replicas, guarded.Name)
	}
	var conditions []string
	switch set := set.(type) {
	case *v1alpha1.CloneSet:
		for i := range set.Status.Conditions {
			conditions = append(conditions, fmt.Sprint(set.Status.Conditions[i].Type, set.Status.Conditions[i].Status, set.Status.Conditions[i].Message))
		}
	case *v1beta1.StatefulSet:
		for i := range set.Status.Conditions {
			conditions = append(conditions, fmt.Sprint(set.Status.Conditions[i].Type, set.Status.Conditions[i].Status, set.Status.Conditions[i].Message))
		}
	}
	if !slices.Contains(conditions, planning.PodsGuarded+"True"+message) {
		return fmt.Errorf("conditions %q, want that the pod is guarded", conditions)
	}
	for _, c := range conditions {
		if strings.HasPrefix(c, "Failed") && strings.Contains(c, "True") {
			return fmt.Errorf("condition %s: the controller has tried it", c)
		}
	}
	return nil
}
