// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestLargestNodeIsStored stores large plans and the reports of their states, whose messages all have
// their maximum length.
func TestLargestNodeIsStored(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		pods   []v1alpha1.PodProbe
		slices int
	}{
		"many-pods":  {manyPods(250, 8), 63},
		"large-pods": {largePods(t), slicing.MaxPods},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, all := "largest-"+name, report.Plan{Generation: 1, Pods: tc.pods}
			writes := reportAll(t, all)
			probes, largest := 0, 0
			for _, w := range writes {
				slice := &seamarkv1alpha1.ProbeReport{
					ObjectMeta: metav1.ObjectMeta{Name: seamarkv1alpha1.SliceName(node, w.Number)}, NodeName: node, Pods: w.Pods,
				}
				store(t, slice)
				largest = max(largest, size(t, slice))
				for _, pod := range slice.Pods {
					probes += len(pod.Probes)
				}
			}
			if planned := all.Probes(); len(writes) != tc.slices || probes != planned {
				t.Errorf("%d states in %d slices are stored, want %d in %d", probes, len(writes), planned, tc.slices)
			}
			for _, placed := range slicing.Place(tc.pods, nil, "") {
				store(t, &seamarkv1alpha1.ProbePlan{
					ObjectMeta: metav1.ObjectMeta{Name: seamarkv1alpha1.SliceName(node, placed.Number)}, NodeName: node, Pods: placed.Pods,
				})
			}
			t.Logf("plan: %d bytes, largest report: %d bytes", size(t, tc.pods), largest)
		})
	}
}

// store stores an object until the test ends.
func store(t *testing.T, object client.Object) {
	t.Helper()
	expect.NoError(t, server.Client.Create(t.Context(), object))
	t.Cleanup(func() {
		if err := server.Client.Delete(context.WithoutCancel(t.Context()), object); client.IgnoreNotFound(err) != nil {
			t.Logf("delete %s: %v", object.GetName(), err)
		}
	})
}

// reportAll reports a state with a long message, and an error, of every probe of the plan.
func reportAll(t *testing.T, plan report.Plan) []report.Write {
	t.Helper()
	now, states := time.Now(), report.States{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			key, err := identity.KeyOf(pod, &pod.Probes[j])
			expect.NoError(t, err)
			states[key] = thresholds.State{
				State: v1alpha1.ProbeSucceeded, Message: strings.Repeat("<m>", 341), ContainerID: "0123456789abc",
				LastProbe: now, LastTransition: now,
				Problem: thresholds.Problem{Reason: v1alpha1.ProbeCannotRun, Message: strings.Repeat("<m>", 85)},
			}
		}
	}
	return report.Decide(now, plan, report.Record{}, states, nil).Writes
}

// largePods returns the plan of the pods of one slice, each with as many probes as the plan of a pod has
// room for.
func largePods(t *testing.T) []v1alpha1.PodProbe {
	t.Helper()
	var all []v1alpha1.PodProbe
	for n := range slicing.MaxPods {
		pod := v1alpha1.PodProbe{Namespace: "games", Name: fmt.Sprint("game-server-", n), UID: fmt.Sprintf("8a8d2f7e-5a43-4dc5-a0bb-%012d", n), IP: "10.0.0.1"}
		for i := 0; size(t, pod.Probes) < plan.MaxPodBytes; i++ {
			pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{
				Name: fmt.Sprintf("%s#%0200d", strings.Repeat("m", 253), i), ContainerName: "m", Plan: "0123abcd",
				Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}}},
			})
		}
		all = append(all, pod)
	}
	return all
}

// manyPods returns the plan of many pods with long commands.
func manyPods(pods, probes int) []v1alpha1.PodProbe {
	var all []v1alpha1.PodProbe
	for i := range pods {
		name := fmt.Sprintf("game-server-7f5bc78bcb-%03d", i)
		pod := v1alpha1.PodProbe{Namespace: "games", Name: name, UID: "8a8d2f7e-5a43-4dc5-a0bb-" + fmt.Sprintf("%012d", i), IP: "10.0.0.1"}
		for j := range probes {
			pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{
				Name: fmt.Sprintf("game-server#state-%d", j), ContainerName: "game-server", Plan: "0123abcd",
				Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
					ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", strings.Repeat("c", 400)}}},
					PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
				}},
			})
		}
		all = append(all, pod)
	}
	return all
}

func size(t *testing.T, part any) int {
	t.Helper()
	body, err := json.Marshal(part)
	expect.NoError(t, err)
	return len(body)
}

// The share of the API server's limits that the estimated cost of the rules may use. The margin
// is for estimates that change with the version of Kubernetes.
const (
	ruleShare = 0.35
	crdShare  = 0.2
)

// oldestSupported is the version of Kubernetes in which all rules must compile: an API server
// accepts a new rule only if the previous version can compile it too.
func oldestSupported() *version.Version { return version.MajorMinor(1, 31) }

// ruleCost is the API server's estimate of the cost of one rule in the largest object.
type ruleCost struct {
	path string
	cost uint64
}

func TestRuleCosts(t *testing.T) {
	t.Parallel()
	crds, err := env.ReadCRDs("")
	expect.NoError(t, err)
	for _, crd := range crds {
		t.Run(crd.Spec.Names.Plural, func(t *testing.T) {
			t.Parallel()
			costs, err := ruleCosts(crd)
			expect.NoError(t, err)
			var total uint64
			for _, rule := range costs {
				total += rule.cost
				if float64(rule.cost) > ruleShare*validation.StaticEstimatedCostLimit {
					t.Errorf("%s costs %d, more than %.0f %% of the limit of %d",
						rule.path, rule.cost, 100*ruleShare, validation.StaticEstimatedCostLimit)
				}
				t.Logf("%s: %.1f %% of the limit of a rule", rule.path, 100*float64(rule.cost)/validation.StaticEstimatedCostLimit)
			}
			t.Logf("all: %.1f %% of the limit of a CRD", 100*float64(total)/validation.StaticEstimatedCRDCostLimit)
			if float64(total) > crdShare*validation.StaticEstimatedCRDCostLimit {
				t.Errorf("all rules cost %d, more than %.0f %% of the limit of %d",
					total, 100*crdShare, validation.StaticEstimatedCRDCostLimit)
			}
		})
	}
}

// ruleCosts compiles the rules of the CRD's first version as the oldest supported API server
// does and returns the estimated cost of each.
func ruleCosts(crd *apiextensionsv1.CustomResourceDefinition) ([]ruleCost, error) {
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil)
	if err != nil {
		return nil, fmt.Errorf("convert schema: %w", err)
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	return costsBelow(structural, "", 1, true)
}

func costsBelow(s *schema.Structural, path string, times uint64, root bool) ([]ruleCost, error) {
	results, err := cel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit,
		environment.MustBaseEnvSet(oldestSupported()), cel.NewExpressionsEnvLoader())
	if err != nil {
		return nil, fmt.Errorf("compile the rules of %s: %w", path, err)
	}
	var costs []ruleCost
	for i, result := range results {
		if result.Error != nil {
			return nil, fmt.Errorf("compile rule %d of %s: %w", i, path, result.Error)
		}
		costs = append(costs, ruleCost{fmt.Sprintf("%s rule %d", path, i), result.MaxCost * min(times, result.MaxCardinality)})
	}
	below := map[string]*schema.Structural{}
	for name := range s.Properties {
		property := s.Properties[name]
		below[path+"."+name] = &property
	}
	switch {
	case s.Items != nil:
		below[path+"[]"] = s.Items
		times = scaled(times, s.ValueValidation.MaxItems)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
		below[path+"{}"] = s.AdditionalProperties.Structural
		times = scaled(times, s.ValueValidation.MaxProperties)
	}
	for name, child := range below {
		more, err := costsBelow(child, name, times, false)
		if err != nil {
			return nil, err
		}
		costs = append(costs, more...)
	}
	return costs, nil
}

// scaled returns how often an element of a list or map with at most bound elements can occur if
// the list or map occurs times times. Without a bound, the size of a request is the limit.
func scaled(times uint64, bound *int64) uint64 {
	if bound == nil {
		return uint64(celconfig.MaxRequestSizeBytes)
	}
	return times * uint64(*bound)
}
