// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

// TestPublishBody checks which probes of a marker with an exec and an httpGet probe publish bodies.
func TestPublishBody(t *testing.T) {
	get := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}
	pod := builders.Pod("ns", "a").Label("app", "game").Build()
	for value, want := range map[string][]string{"true": {"web#get"}, "True": nil, "false": nil, "": nil} {
		marker := builders.Marker("ns", "web").Annotation(v1alpha1.PublishHTTPBodyAnnotationKey, value).
			Probe(builders.Probe("exec")).Probe(builders.Probe("get").Handler(get)).Build()
		compiled, err := plan.Compile(marker)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, probe := range plan.Pod(pod, []*plan.Marker{compiled}, plan.KubernetesDefaults()).Probes {
			if probe.Plan.PublishBody {
				got = append(got, probe.Plan.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("annotation %q: probes that publish bodies (-want +got):\n%s", value, diff)
		}
	}
}
