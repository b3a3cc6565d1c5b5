// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// The largest slice takes a third of what etcd stores per object. Long commands leave out probes of
// their own pod only.
func TestLargePodPlans(t *testing.T) {
	long := func(name string) *builders.ProbeBuilder {
		return builders.Probe(name).Handler(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{strings.Repeat("x", 20<<10)}}})
	}
	markers := compile(t,
		builders.Marker("ns", "a").Selector("app", "large").Probe(long("1")).Probe(long("2")).Build(),
		builders.Marker("ns", "b").Selector("app", "large").Probe(long("3")).Probe(long("4")).Probe(builders.Probe("small")).Build())
	var pods []*corev1.Pod
	for i := range slicing.MaxPods {
		pods = append(pods, builders.Pod("ns", fmt.Sprint("pod-", i)).Label("app", "large").Build())
	}
	planned := plan.Pod(pods[0], markers, plan.KubernetesDefaults())
	var ran, full []string
	for _, p := range planned.Probes {
		ran = append(ran, p.ID.String())
	}
	for _, p := range planned.Problems {
		full = append(full, p.ID.String()+" "+string(p.Reason))
	}
	expect.Equal(t, "probes and problems", [][]string{{"a#1", "a#2", "b#3", "b#small"}, {"b#4 PodPlanFull"}}, [][]string{ran, full})
	spec := plan.Node(pods, markers, plan.KubernetesDefaults())
	slice := slicing.Place(spec.PodProbes, nil, "n")[0]
	encoded, err := json.Marshal(slice.Pods)
	if size := len(encoded); err != nil || len(slice.Pods) != slicing.MaxPods || size > 512<<10+4096 {
		t.Errorf("a slice with %d pods takes %d bytes", len(slice.Pods), size)
	}
}
