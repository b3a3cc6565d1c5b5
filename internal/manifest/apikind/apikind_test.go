// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apikind_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/internal/manifest/apikind"
)

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct{ version, kind, want string }{
		"served":                {"apps.kruise.io/v1alpha1", "CloneSet", ""},
		"misspelled":            {"apps.kruise.io/v1alpha1", "CloneSets", `Unknown kind: "CloneSets" is not a kind of apps.kruise.io; did you mean "CloneSet"?`},
		"of no kind":            {"seamark.dev/v1alpha1", "X", `Unknown kind: "X" is not a kind of seamark.dev; use one of ProbePlan, ProbeReport`},
		"version":               {"apps.kruise.io/v2", "CloneSet", `Version apiVersion: "apps.kruise.io/v2" is not supported for the kind CloneSet; use apps.kruise.io/v1alpha1`},
		"of OpenKruise":         {"apps.kruise.io/v1alpha1", "WorkloadSpread", `NotServed kind: Seamark does not serve "WorkloadSpread"`},
		"marker in a group":     {"v1", "PodProbeMarker", `Version apiVersion: "v1" is not supported`},
		"of Kubernetes":         {"apps/v1", "Deployment", ""},
		"older version":         {"batch/v1beta1", "CronJob", ""},
		"of Kubernetes, typo":   {"apps/v1", "Deploymnet", `Unknown kind: "Deploymnet" is not a kind of apps/v1; did you mean "Deployment"?`},
		"of the core, typo":     {"v1", "Pood", `Unknown kind: "Pood" is not a kind of v1; did you mean "Pod"?`},
		"newer than the client": {"admissionregistration.k8s.io/v1", "MutatingAdmissionThing", ""},
		"of another group":      {"example.com/v1", "Deploymnet", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := apikind.Check(schema.FromAPIVersionAndKind(test.version, test.kind)); p != nil {
				got = string(p.Reason) + " " + p.Field + ": " + p.Message + "; " + p.Fix
			}
			if got != test.want && (test.want == "" || !strings.HasPrefix(got, test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
