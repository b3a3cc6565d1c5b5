// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

func TestInPlaceReadsTheResultsOfTheTest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	text := `{"pods":100,"maxUnavailable":"20%","recreate":{"seconds":50,"podWrites":700,"newPods":100},"inPlace":{"seconds":20,"podWrites":400}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(resultsVariable, path)
	m := inPlaceMeasure()
	out, err := m.Run(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(out); err != nil {
		t.Error(err)
	}
	var ratios []float64
	for _, r := range out.Results {
		ratios = append(ratios, r.Ratio())
	}
	if diff := cmp.Diff([]float64{0.4, 4.0 / 7, 0}, ratios); diff != "" {
		t.Errorf("ratios (-want +got):\n%s", diff)
	}
}

func TestInPlaceWithoutResultsIsSkipped(t *testing.T) {
	t.Setenv(resultsVariable, "")
	if _, err := inPlaceMeasure().Run(context.Background(), nil); !errors.Is(err, harness.ErrSkipped) {
		t.Errorf("error %v, want ErrSkipped", err)
	}
}

func TestWritesOfTheBenchmarkDoNotCount(t *testing.T) {
	c := cost{took: time.Second, writes: writesOf(env.Requests{
		{Verb: "POST", Resource: "pods", Code: "201"}:                                30,
		{Verb: "DELETE", Resource: "pods", Code: "409"}:                              2,
		{Verb: "PATCH", Resource: "pods", Subresource: "status", Code: "200"}:        33,
		{Verb: "POST", Resource: "clonesets", Group: "apps.kruise.io", Code: "201"}:  3,
		{Verb: "PUT", Resource: "leases", Group: "coordination.k8s.io", Code: "200"}: 5,
		{Verb: "GET", Resource: "pods", Code: "200"}:                                 7,
	})}
	c.subtract("pods/status", 30)
	c.subtract("clonesets", 3)
	if diff := cmp.Diff(map[string]int{"pods": 32, "pods/status": 3}, c.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
