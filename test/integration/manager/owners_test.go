// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// templated creates pod a, whose creator sets the marks of the marker's Succeeded policy, and an
// unrelated label.
func (w *world) templated(node string) *corev1.Pod {
	w.Helper()
	pod, err := env.CreatePod(w.Context(), w.client, builders.Pod(w.namespace, "a").Label("app", "game").Node(w.node(node)).
		Label("healthy", "true").Label("theirs", "1").Annotation("cost", "1").Build())
	w.must(err)
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").
		Label(succeeded, "healthy", "true").Annotation(succeeded, "cost", "1")))
	w.planned(node, "a/web#p")
	return pod
}

func TestMarkThatTheTemplateSets(t *testing.T) {
	all := []string{"label healthy=true", "annotation cost=1", "label theirs=1"}
	t.Run("succeeds first", func(t *testing.T) {
		w := newWorld(t, shared)
		w.templated("template")
		w.unchanged("a", all...)
		w.report("template", states{"web#p": succeeded})
		w.settle()
		w.marked("a", all...)
		w.report("template", states{"web#p": failed})
		w.marked("a", "label theirs=1")
		w.unchanged("a", "label theirs=1")
		w.report("template", states{"web#p": succeeded})
		w.marked("a", all...)
	})
	t.Run("fails first", func(t *testing.T) {
		w := newWorld(t, shared)
		w.templated("template-fails")
		w.report("template-fails", states{"web#p": failed})
		w.marked("a", "label theirs=1")
		w.unchanged("a", "label theirs=1")
	})
	t.Run("marker deleted", func(t *testing.T) {
		w := newWorld(t, shared)
		w.templated("template-deleted")
		w.report("template-deleted", states{"web#p": succeeded})
		w.settle()
		w.must(w.client.Delete(t.Context(), w.markerNamed("web")))
		w.gone("web")
		w.marked("a", "label theirs=1")
	})
	t.Run("set again by another client", func(t *testing.T) {
		w := newWorld(t, shared)
		pod := w.templated("template-again")
		w.report("template-again", states{"web#p": failed})
		w.marked("a", "label theirs=1")
		w.must(w.client.Patch(t.Context(), pod, env.MergePatch(`{"metadata":{"labels":{"healthy":"yes"},"annotations":{"cost":"2"}}}`),
			client.FieldOwner("kubectl")))
		w.marked("a", "label theirs=1")
	})
}
