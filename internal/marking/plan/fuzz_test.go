// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// FuzzNode generates a node's pods and markers from the seed, and checks the package's
// invariants against a simpler implementation.
func FuzzNode(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		pods, markers := randomPods(rng), randomMarkers(rng)
		compiled := compile(t, markers...)
		got := plan.Node(pods, compiled, plan.KubernetesDefaults())
		first := wire(t, got)

		rng.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		rng.Shuffle(len(compiled), func(i, j int) { compiled[i], compiled[j] = compiled[j], compiled[i] })
		expect.Equal(t, "different order gives a different plan", first, wire(t, plan.Node(pods, compiled, plan.KubernetesDefaults())))
		expect.Equal(t, "planned probes", expected(pods, markers), names(got))
		for _, pod := range pods {
			one := plan.Pod(pod, compiled, plan.KubernetesDefaults())
			if n := ofPod(got, pod); n != len(one.Probes) && (n > 0 || pod.Status.PodIP != "") {
				t.Errorf("Node plans %d probes of %s, Pod plans %d", n, pod.Name, len(one.Probes))
			}
		}
	})
}

func wire(t *testing.T, spec v1alpha1.NodePodProbeSpec) string {
	data, err := json.Marshal(spec)
	expect.NoError(t, err)
	return string(data)
}

func names(spec v1alpha1.NodePodProbeSpec) []string {
	var all []string
	for _, pod := range spec.PodProbes {
		for _, probe := range pod.Probes {
			all = append(all, pod.Namespace+"/"+pod.Name+"/"+pod.UID+"/"+probe.Name)
		}
	}
	slices.Sort(all)
	return all
}

func ofPod(spec v1alpha1.NodePodProbeSpec, pod *corev1.Pod) int {
	for _, p := range spec.PodProbes {
		if p.UID == string(pod.UID) {
			return len(p.Probes)
		}
	}
	return 0
}

func expected(pods []*corev1.Pod, markers []*v1alpha1.PodProbeMarker) []string {
	var all []string
	for _, pod := range pods {
		active := pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil &&
			pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded &&
			(pod.Status.Conditions[0].Status == corev1.ConditionTrue || len(pod.Status.ContainerStatuses) > 0)
		containers := sets.New[string]()
		for _, c := range pod.Spec.Containers {
			containers.Insert(c.Name)
		}
		var probes []string
		waits := false
		for _, m := range markers {
			matches := m.Namespace == pod.Namespace && m.DeletionTimestamp == nil &&
				pod.Labels["app"] == m.Spec.Selector.MatchLabels["app"]
			for _, probe := range m.Spec.Probes {
				if active && matches && containers.Has(probe.ContainerName) {
					probes = append(probes, pod.Namespace+"/"+pod.Name+"/"+string(pod.UID)+"/"+m.Name+"#"+probe.Name)
					waits = waits || probe.Probe.TCPSocket != nil && pod.Status.PodIP == "" && len(pod.Status.ContainerStatuses) == 0
				}
			}
		}
		if !waits {
			all = append(all, probes...)
		}
	}
	slices.Sort(all)
	return all
}

func pick(rng *rand.Rand, from ...string) string { return from[rng.IntN(len(from))] }

func randomPods(rng *rand.Rand) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, 12)
	for i := range rng.IntN(12) {
		b := builders.Pod(pick(rng, "a", "b"), pick(rng, "x", "y", "z")).
			UID(fmt.Sprint("uid-", i)).
			Label("app", pick(rng, "game", "db")).
			Node(pick(rng, "node-1", "node-1", "node-1", "")).
			Phase(corev1.PodPhase(pick(rng, "Running", "Running", "Pending", "Failed", "Succeeded"))).
			Initialized(corev1.ConditionStatus(pick(rng, "True", "True", "False", "Unknown")))
		if rng.IntN(3) == 0 {
			b.Container("web")
		}
		if rng.IntN(5) == 0 {
			b.Terminating()
		}
		if rng.IntN(3) == 0 {
			b.IP("")
		}
		if rng.IntN(2) == 0 {
			b.Ran()
		}
		pods = append(pods, b.Build())
	}
	return pods
}

func randomMarkers(rng *rand.Rand) []*v1alpha1.PodProbeMarker {
	var markers []*v1alpha1.PodProbeMarker
	for _, namespace := range []string{"a", "b"} {
		for _, name := range []string{"web", "my-web", "db"} {
			if rng.IntN(3) == 0 {
				continue
			}
			b := builders.Marker(namespace, name).Selector("app", pick(rng, "game", "db"))
			for i := range 1 + rng.IntN(3) {
				probe := builders.Probe(fmt.Sprint("p", i)).Container(pick(rng, "main", "web"))
				if rng.IntN(3) == 0 {
					probe.Handler(tcp())
				}
				b.Probe(probe)
			}
			if rng.IntN(5) == 0 {
				b.Deleting()
			}
			markers = append(markers, b.Build())
		}
	}
	return markers
}
