// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// await waits until the pods of the set are as wanted. The function returns what is missing.
func (w *world) await(what string, set *v1alpha1.CloneSet, missing func(pods map[string]*corev1.Pod) string) {
	w.Helper()
	w.Shows(set, what, func() error {
		if set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("status of generation %d, want %d", set.Status.ObservedGeneration, set.Generation)
		}
		if gap := missing(w.stored(set.Name)); gap != "" {
			return errors.New(gap)
		}
		return nil
	})
}

// Pods keep their UIDs, and their containers change in the order of their launch priorities.
func TestInPlaceUpdateKeepsPods(t *testing.T) {
	w := newWorld(t)
	set := w.cloneSet("web", 4, func(set *v1alpha1.CloneSet) {
		set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers, corev1.Container{
			Name: "side", Image: "side:1", Env: []corev1.EnvVar{{Name: pub.ContainerLaunchPriorityEnv, Value: "1"}},
		})
		set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
		set.Spec.UpdateStrategy.Partition = &intstr.IntOrString{IntVal: 1}
	})
	w.settled(set, 4, "image:1")
	before := w.stored("web")
	updated := func(want int) func(map[string]*corev1.Pod) string {
		return func(pods map[string]*corev1.Pod) string {
			n := 0
			for name, pod := range pods {
				if before[name] == nil || before[name].UID != pod.UID {
					return fmt.Sprintf("pod %s is new", name)
				}
				if pod.Spec.Containers[0].Image == "image:2" && pod.Spec.Containers[1].Image == "side:2" && planning.Ready(pod) &&
					pod.Labels[pub.LifecycleStateKey] == string(pub.LifecycleStateNormal) {
					if got := batches(pod); got != "[side] [main]" {
						return fmt.Sprintf("containers of pod %s change in the batches %s", name, got)
					}
					n++
				}
			}
			if n != want || int(set.Status.UpdatedReadyReplicas) != want {
				return fmt.Sprintf("%d pods are updated, %d by the status", n, set.Status.UpdatedReadyReplicas)
			}
			return ""
		}
	}
	w.Patch(set, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:2"},`+
		`{"name":"side","image":"side:2","env":[{"name":"KRUISE_CONTAINER_PRIORITY","value":"1"}]}]}}}}`)
	w.await("three pods are updated in place", set, updated(3))
	w.Patch(set, `{"spec":{"updateStrategy":{"partition":0}}}`)
	w.await("all pods are updated in place", set, updated(4))
}

// batches returns the names of the containers that were updated together.
func batches(pod *corev1.Pod) string {
	var state pub.InPlaceUpdateState
	if err := json.Unmarshal([]byte(pod.Annotations[pub.InPlaceUpdateStateKey]), &state); err != nil {
		return err.Error()
	}
	var names []string
	for _, batch := range state.ContainerBatchesRecord {
		names = append(names, fmt.Sprint(batch.Containers))
	}
	return strings.Join(names, " ")
}
