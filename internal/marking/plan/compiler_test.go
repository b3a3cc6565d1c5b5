// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestCompilerCachesEachVersion(t *testing.T) {
	base := func() *builders.MarkerBuilder { return builders.Marker("ns", "web").Probe(builders.Probe("p")) }
	other := base().Build()
	other.UID = "other"
	cases := map[string]struct {
		next  *v1alpha1.PodProbeMarker
		again bool
	}{
		"unchanged":      {next: base().Build(), again: true},
		"new generation": {next: base().Generation(2).Build()},
		"being deleted":  {next: base().Deleting().Build()},
		"recreated":      {next: other},
		"body published": {next: base().Annotation(v1alpha1.PublishHTTPBodyAnnotationKey, "true").Build()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			compiler := plan.NewCompiler()
			first, err := compiler.Compile(base().Build())
			if err != nil {
				t.Fatal(err)
			}
			second, err := compiler.Compile(tc.next)
			if err != nil {
				t.Fatal(err)
			}
			if again := first == second; again != tc.again {
				t.Errorf("cached: %t, want %t", again, tc.again)
			}
			compiler.Forget(types.NamespacedName{Namespace: "ns", Name: "web"})
			if third, _ := compiler.Compile(tc.next); third == second {
				t.Error("cached after Forget")
			}
		})
	}
}

func TestCompilerOmitsInvalidMarkers(t *testing.T) {
	broken := builders.Marker("ns", "broken").Build()
	broken.Spec.Selector = nil
	got := plan.NewCompiler().All([]*v1alpha1.PodProbeMarker{broken, builders.Marker("ns", "web").Build()})
	if len(got) != 1 || got[0].Name != "web" {
		t.Errorf("compiled %v, want only web", got)
	}
}
