// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/recipes/disruption"
)

// interruptions scales in, rolls out and drains servers of OpenTTD with players, as often as count says each, and counts the matches that
// a server ended: of the recipe, or of a Deployment.
func interruptions(s *suite, builtIn bool, count int) {
	s.Helper()
	resource, title := "cloneset/openttd", "CloneSet of Seamark, the recipe"
	if builtIn {
		resource, title = "deployment/openttd", "Deployment of Kubernetes"
	}
	v := openttd(s)
	for _, object := range s.objects() {
		kind := object.GetKind()
		switch {
		case builtIn && (kind == "PodProbeMarker" || kind == "PodDisruptionBudget"):
			continue
		case builtIn && kind == "CloneSet":
			deployment(object)
		}
		s.Create(object)
	}
	tags := []string{"v1", "v2"}
	atRest := func(servers int, tag string) {
		s.settled("app=openttd", v.image+":"+tag, servers, func(context.Context, []corev1.Pod) error { return nil })
	}
	atRest(6, "v1")
	s.Kubectl("apply", "-f", "examples/recipes/openttd/players")
	s.Eventually("a match", func(context.Context) error { return await.ErrorIf(s.matches("joined") == 0, "nobody plays") })
	for run := range count {
		tag := tags[run%2]
		s.Kubectl("scale", resource, "--replicas=4")
		atRest(4, tag)
		s.Kubectl("scale", resource, "--replicas=6")
		atRest(6, tag)
		tag = tags[(run+1)%2]
		s.setImage(resource, v.image+":"+tag)
		atRest(6, tag)
		v.drain()
		atRest(6, tag)
	}
	game := disruption.Game{
		Servers: title, ScaleIns: count, Rollouts: count, Drains: count,
		Left: s.matches("left"), Interrupted: s.matches("interrupted"), Date: time.Now().UTC().Format(time.DateOnly),
	}
	s.Logf("%+v", game)
	s.publish(func(all *disruption.Results) { all.AddGame(game) })
	s.Kubectl("delete", "--all", "poddisruptionbudgets,deployments,clonesets,podprobemarkers")
	v.gone()
}

// deployment makes a CloneSet a Deployment: with its defaults, and without the hook that waits for players.
func deployment(object *unstructured.Unstructured) {
	object.SetAPIVersion("apps/v1")
	object.SetKind("Deployment")
	spec, _ := object.Object["spec"].(map[string]any)
	delete(spec, "updateStrategy")
	template, _, _ := unstructured.NestedFieldNoCopy(spec, "template", "spec")
	pod, _ := template.(map[string]any)
	delete(pod, "terminationGracePeriodSeconds")
	for _, container := range list(pod, "containers") {
		delete(container, "lifecycle")
	}
}
