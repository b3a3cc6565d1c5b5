// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/recipes/disruption"
)

// TestMatches scales in, rolls out and drains servers of OpenTTD with players, SEAMARK_RUNS times each, with a Deployment and with the
// recipe, and writes docs/disruption.md. The two share the cluster at the same time.
func TestMatches(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("SEAMARK_RUNS"))
	expect.NoErrorf(t, err, "read SEAMARK_RUNS")
	var games [2]disruption.Game
	t.Run("servers", func(t *testing.T) {
		for i, m := range []matches{
			{resource: "deployment/openttd", title: "Deployment of Kubernetes", builtIn: true},
			{resource: "cloneset/openttd", title: "CloneSet of Seamark, the recipe"},
		} {
			t.Run(m.title, func(t *testing.T) {
				t.Parallel()
				m.servers = openttd(newSuite(t, "openttd"))
				games[i] = m.play(count)
			})
		}
	})
	if !t.Failed() {
		newSuite(t, "openttd").publish(func(all *disruption.Results) {
			for _, game := range games {
				all.AddGame(game)
			}
		})
	}
}

// matches are those of players on servers that are scaled in, rolled out and drained.
type matches struct {
	*servers
	resource, title string
	builtIn         bool
}

// play does so, and returns how many matches a server ended.
func (m *matches) play(count int) disruption.Game {
	m.Helper()
	m.create()
	version := "v1"
	m.atRest(6, version)
	m.Kubectl("apply", "-f", "examples/recipes/openttd/players")
	m.Kubectl("rollout", "status", "deployment/openttd-players", "--timeout=2m")
	m.Eventually("a match", func(context.Context) error {
		return await.ErrorIf(m.matches("joined") == 0, "nobody plays")
	})
	for run := range count {
		m.Kubectl("scale", m.resource, "--replicas=4")
		m.atRest(4, version)
		m.Kubectl("scale", m.resource, "--replicas=6")
		m.atRest(6, version)
		version = []string{"v2", "v1"}[run%2]
		m.setImage(m.resource, m.image+":"+version)
		m.atRest(6, version)
		m.drain()
		m.atRest(6, version)
		m.Logf("round %d: %d matches interrupted, %d left", run, m.matches("interrupted"), m.matches("left"))
	}
	game := disruption.Game{
		Servers: m.title, ScaleIns: count, Rollouts: count, Drains: count,
		Left: m.matches("left"), Interrupted: m.matches("interrupted"), Date: time.Now().UTC().Format(time.DateOnly),
	}
	m.Kubectl("delete", "--all", "poddisruptionbudgets,deployments,clonesets,podprobemarkers")
	m.gone()
	return game
}

// atRest waits until there are as many servers, all ready with a version of the image.
func (m *matches) atRest(count int, version string) {
	m.Helper()
	m.settled("app=openttd", m.image+":"+version, count, func(context.Context, []corev1.Pod) error { return nil })
}

// create creates the servers: those of the recipe, or a Deployment with its defaults, without marks, a guard, and the hook that waits for
// players.
func (m *matches) create() {
	m.Helper()
	for _, object := range m.objects() {
		kind := object.GetKind()
		switch {
		case m.builtIn && (kind == "PodProbeMarker" || kind == "PodDisruptionBudget"):
			continue
		case m.builtIn && kind == "CloneSet":
			deployment(object)
		}
		m.Create(object)
	}
}

// deployment makes a CloneSet a Deployment.
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
