// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestSelected(t *testing.T) {
	marker, err := plan.Compile(builders.Marker("ns", "web").Probe(builders.Probe("p")).Build())
	if err != nil {
		t.Fatal(err)
	}
	markers := []*plan.Marker{marker}
	ready := builders.Pod("ns", "a").Label("app", "game")
	waiting := builders.Pod("ns", "a").Label("app", "game").Node("").Initialized(corev1.ConditionFalse)
	want := plan.Pod(ready.Build(), markers, plan.KubernetesDefaults()).Probes
	got := plan.Selected(waiting.Build(), markers, plan.KubernetesDefaults()).Probes
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 1 {
		t.Errorf("probes (-ready pod +waiting pod):\n%s", diff)
	}
}

func TestCompileRejectsPoliciesForProviderAnnotations(t *testing.T) {
	for _, key := range []string{v1alpha1.PodProbeMarkerAnnotationKey, v1alpha1.PodProbeMarkerListAnnotationKey} {
		_, err := plan.Compile(builders.Marker("ns", "web").Probe(builders.Probe("p").Annotation(v1alpha1.ProbeFailed, key, "x")).Build())
		if err == nil || !strings.Contains(err.Error(), `spec.probes[0].markerPolicy[0].annotations: "`+key+`"`) {
			t.Errorf("%s: error %v does not name the field and the key", key, err)
		}
	}
}
