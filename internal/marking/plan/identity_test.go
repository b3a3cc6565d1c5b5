// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

// ignorePlan ignores the identity of the marker, which TestPlanIdentifiesMarker tests.
func ignorePlan() cmp.Option { return cmpopts.IgnoreFields(v1alpha1.ContainerProbe{}, "Plan") }

// TestPlanIdentifiesMarker checks that the plan distinguishes a marker from an earlier one with
// the same name, but not an edited marker from itself.
func TestPlanIdentifiesMarker(t *testing.T) {
	pod := builders.Pod("ns", "a").Label("app", "game").Build()
	planOf := func(uid types.UID, probe *builders.ProbeBuilder) string {
		m := builders.Marker("ns", "web").Probe(probe).Build()
		m.UID = uid
		spec := plan.Node([]*corev1.Pod{pod}, compile(t, m), plan.KubernetesDefaults())
		return spec.PodProbes[0].Probes[0].Plan
	}
	first := planOf("uid-1", builders.Probe("p"))
	if len(first) != 8 {
		t.Errorf("plan %q, want 8 characters", first)
	}
	if edited := planOf("uid-1", builders.Probe("p").Handler(tcp())); edited != first {
		t.Errorf("plan of the edited marker = %q, want %q", edited, first)
	}
	if recreated := planOf("uid-2", builders.Probe("p")); recreated == first {
		t.Errorf("plan of the recreated marker = %q, want another one", recreated)
	}
	if unknown := planOf("", builders.Probe("p")); unknown != "" {
		t.Errorf("plan of a marker without a UID = %q, want none", unknown)
	}
}
