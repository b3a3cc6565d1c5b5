// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/builders"
)

// A state of a probe becomes a label of its pod in three steps: the manager plans the probe, the agent
// reports the state, and the manager decides the marks.
func Example() {
	marker, err := plan.Compile(builders.Marker("games", "players").
		Probe(builders.Probe("idle").Label(v1alpha1.ProbeSucceeded, "idle", "true")).Build())
	if err != nil {
		panic(err)
	}
	pod := builders.Pod("games", "server-0").Label("app", "game").Build()
	markers, defaults := []*plan.Marker{marker}, plan.KubernetesDefaults()

	// The manager writes the plan of the node to its NodePodProbe.
	node := plan.Node([]*corev1.Pod{pod}, markers, defaults)
	fmt.Println("planned:", node.PodProbes[0].Name, node.PodProbes[0].Probes[0].Name)

	// The agent evaluates the results of the probe, and reports the state in a ProbeReport.
	key, err := identity.KeyOf(&node.PodProbes[0], &node.PodProbes[0].Probes[0])
	if err != nil {
		panic(err)
	}
	decision := report.Decide(time.Unix(1_700_000_000, 0), report.Plan{Generation: 1, Pods: node.PodProbes}, report.Record{},
		report.States{key: thresholds.State{State: v1alpha1.ProbeSucceeded}}, nil)
	written := decision.Writes[0]
	fmt.Println("reported:", seamarkv1alpha1.SliceName("node-1", written.Number), written.Pods[0].Probes[0].State)

	// The manager sets the marks that the state requires.
	stored := mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{{NodeName: "node-1", Pods: written.Pods}}}
	probes := plan.Pod(pod, markers, defaults).Probes
	desired := mark.Desired(probes, stored.OfPod(pod.UID), mark.Marks{})
	for _, key := range desired.Keys() {
		fmt.Printf("mark: %s=%s\n", key, desired[key].Text)
	}
	// Output:
	// planned: server-0 players#idle
	// reported: node-1.0 Succeeded
	// mark: label idle=true
}
