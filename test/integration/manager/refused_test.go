// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// totalAnnotations is the API server's limit for the keys and values of all annotations.
const totalAnnotations = 256 << 10

// annotated waits until the pod has or does not have the annotation.
func (w *world) annotated(pod, key string, want bool) *corev1.Pod {
	w.Helper()
	var found *corev1.Pod
	w.until(fmt.Sprintf("pod %s has annotation %s: %t", pod, key, want), func(ctx context.Context) (string, error) {
		var err error
		if found, err = w.getPod(ctx, pod); err != nil {
			return "", err
		}
		if _, has := found.Annotations[key]; has != want {
			return fmt.Sprintf("it has %d annotations", len(found.Annotations)), nil
		}
		return "", nil
	})
	return found
}

// The annotations of other clients leave exactly the room of one of the marks, and of one byte
// less.
func TestAnnotationsOfOthersLeaveNoRoom(t *testing.T) {
	const value = 4000
	for name, missing := range map[string]int{"exact": 0, "one byte less": 1} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shared)
			node := w.node("room-" + fmt.Sprint(missing))
			filler := totalAnnotations - len("theirs") - len("large") - value + missing
			_, err := env.CreatePod(t.Context(), w.client, builders.Pod(w.namespace, "a").Label("app", "game").Node(node).
				Annotation("theirs", strings.Repeat("x", filler)).Build())
			w.must(err)
			w.marker(builders.Marker(w.namespace, "web").
				Probe(builders.Probe("before").Label(succeeded, "before", "true")).
				Probe(builders.Probe("size").Condition("game.io/size").Annotation(succeeded, "large", strings.Repeat("v", value))).
				Probe(builders.Probe("after").Label(succeeded, "after", "true").Condition("game.io/after")))
			w.planned(node, "a/web#before", "a/web#size", "a/web#after")
			w.report(node, states{"web#before": succeeded, "web#size": succeeded, "web#after": succeeded})
			if missing == 0 {
				w.annotated("a", "large", true)
				w.condition("web", v1alpha1.ConditionMarksApplied, "Applied", "")
				return
			}
			w.condition("web", v1alpha1.ConditionMarksApplied, "WriteRefused", "")
			w.event("web", "WriteRefused", `Probe "size": the API server refuses its marks (pods: 1, such as a): `)
			pod := w.annotated("a", "large", false)
			if pod.Labels["before"] != "true" || pod.Labels["after"] != "true" {
				t.Errorf("labels %v, want those of the other probes", pod.Labels)
			}

			w.settle()
			before, err := w.env.Requests(t.Context())
			w.must(err)
			w.settle()
			if writes := w.writes(before); len(writes) > 0 {
				t.Errorf("the refused marks are tried again without a change: %v", writes)
			}

			w.must(w.client.Patch(t.Context(), pod, env.MergePatch(`{"metadata":{"annotations":{"theirs":"short"}}}`), client.FieldOwner("them")))
			w.annotated("a", "large", true)
			w.condition("web", v1alpha1.ConditionMarksApplied, "Applied", "")
		})
	}
}
