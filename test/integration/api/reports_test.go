// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// slice returns a ProbeReport of the node with n pods, each with a probe in the state.
func slice(node, name string, n int, state v1alpha1.ProbeState) *seamarkv1alpha1.ProbeReport {
	report := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: name}, NodeName: node}
	for i := range n {
		report.Pods = append(report.Pods, seamarkv1alpha1.PodReport{
			Namespace: "ns", Name: fmt.Sprint("pod-", i), UID: fmt.Sprint("uid-", i),
			Probes: []v1alpha1.ContainerProbeState{{Name: "m#p", State: state, LastTransitionTime: metav1.Unix(1, 0)}},
		})
	}
	return report
}

func TestProbeReportRules(t *testing.T) {
	t.Parallel()
	const name = "nodeName: Invalid value"
	long := strings.Repeat("n", 63)
	longest := strings.Join([]string{long, long, long, strings.Repeat("n", 56)}, ".")
	for what, test := range map[string]struct {
		report *seamarkv1alpha1.ProbeReport
		// want is a part of the error, empty if the report is valid.
		want string
	}{
		"first":                  {slice("a", "a.0", 1, "Succeeded"), ""},
		"no pods":                {slice("a", "a.1", 0, ""), ""},
		"second digit":           {slice("a", "a.10", 1, "Failed"), ""},
		"last number":            {slice("a", "a.399", 1, "Unknown"), ""},
		"dots in the node name":  {slice("a.b.1", "a.b.1.0", 1, "Succeeded"), ""},
		"number as the node":     {slice("1", "1.1", 1, "Succeeded"), ""},
		"longest node name":      {slice(longest, longest+".399", 1, "Succeeded"), ""},
		"no number":              {slice("a", "a.b", 1, "Succeeded"), name},
		"no dot":                 {slice("a", "a0", 1, "Succeeded"), name},
		"node name only":         {slice("a", "a", 1, "Succeeded"), name},
		"other node":             {slice("a", "b.0", 1, "Succeeded"), name},
		"prefix of a node":       {slice("a", "a.1.0", 1, "Succeeded"), name},
		"longer node":            {slice("a.1", "a.1", 1, "Succeeded"), name},
		"leading zero":           {slice("a", "a.01", 1, "Succeeded"), name},
		"two zeros":              {slice("a", "a.00", 1, "Succeeded"), name},
		"number too large":       {slice("a", "a.400", 1, "Succeeded"), name},
		"number with a letter":   {slice("a", "a.1a", 1, "Succeeded"), name},
		"no node":                {slice("", "a.0", 1, "Succeeded"), "nodeName: Invalid value"},
		"unknown state":          {slice("a", "a.0", 1, "Maybe"), `state: Unsupported value: "Maybe"`},
		"characters like a dot":  {slice("axb", "a.b.0", 1, "Succeeded"), name},
		"node name with a slash": {slice("a/b", "a.b.0", 1, "Succeeded"), name},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			err := server.Client.Create(t.Context(), test.report, client.DryRunAll)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("%v, want it to be valid", err)
			case test.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want it to contain %q", err, test.want)
			}
		})
	}
}

// TestProbeReportBounds checks that a report is accepted with as much as each bound permits, and
// rejected with a message that names the field if it has more.
func TestProbeReportBounds(t *testing.T) {
	t.Parallel()
	const pod, state, failure = "pods[0].", "pods[0].probes[0].", "pods[0].errors[0]."
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, test := range map[string]struct {
		most int
		set  func(r *seamarkv1alpha1.ProbeReport, n int)
		want string
	}{
		"pods":      {16, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods = slices.Repeat(r.Pods, n) }, "pods: Too many"},
		"namespace": {63, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods[0].Namespace = text(n) }, pod + "namespace: Too long"},
		"name":      {253, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods[0].Name = text(n) }, pod + "name: Too long"},
		"uid":       {128, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods[0].UID = text(n) }, pod + "uid: Too long"},
		"probes": {
			2048, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods[0].Probes = slices.Repeat(r.Pods[0].Probes, n) }, pod + "probes: Too many",
		},
		"name of a state": {1024, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods[0].Probes[0].Name = text(n) }, state + "name: Too long"},
		"plan":            {64, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods[0].Probes[0].Plan = text(n) }, state + "plan: Too long"},
		"containerID":     {64, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods[0].Probes[0].ContainerID = text(n) }, state + "containerID: Too long"},
		"message":         {1024, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods[0].Probes[0].Message = text(n) }, state + "message: Too long"},
		"errors": {
			512, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods[0].Errors = slices.Repeat(r.Pods[0].Errors, n) }, pod + "errors: Too many",
		},
		"name of an error": {1024, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods[0].Errors[0].Name = text(n) }, failure + "name: Too long"},
		"text of an error": {256, func(r *seamarkv1alpha1.ProbeReport, n int) { r.Pods[0].Errors[0].Message = text(n) }, failure + "message: Too long"},
		"reason": {64, func(r *seamarkv1alpha1.ProbeReport, n int) {
			r.Pods[0].Errors[0].Reason = v1alpha1.ProbeErrorReason(text(n))
		}, failure + "reason: Too long"},
		"reason, characters": {1, func(r *seamarkv1alpha1.ProbeReport, n int) {
			r.Pods[0].Errors[0].Reason = []v1alpha1.ProbeErrorReason{"ReasonOfALaterRelease", "not a reason"}[n-1]
		}, failure + "reason: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			create := func(n int) error {
				report := slice("a", "a.0", 1, "Succeeded")
				report.Pods[0].Errors = []v1alpha1.ContainerProbeError{{Name: "m#p", Reason: v1alpha1.ProbeCannotRun, Message: "no"}}
				test.set(report, n)
				return server.Client.Create(t.Context(), report, client.DryRunAll)
			}
			if err := create(test.most); err != nil {
				t.Errorf("%d: %v, want it to be valid", test.most, err)
			}
			if err := create(test.most + 1); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%d: error %v, want it to contain %q", test.most+1, err, test.want)
			}
		})
	}
}

func TestProbeReportNodeNameIsImmutable(t *testing.T) {
	t.Parallel()
	report := slice("immutable", "immutable.0", 1, "Succeeded")
	expect.NoError(t, server.Client.Create(t.Context(), report))
	for name, body := range map[string]string{"change": `{"nodeName": "b"}`, "remove": `{"nodeName": null}`} {
		err := server.Client.Patch(t.Context(), report.DeepCopy(), env.MergePatch(body))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "nodeName: ") {
			t.Errorf("%s: error %v, want nodeName to be invalid", name, err)
		}
	}
	// The agent's patch repeats the name.
	expect.Success(t, server.Client.Patch(t.Context(), report, env.MergePatch(`{"nodeName": "immutable", "pods": null}`)))
}

// TestProbeReportsAreSelectedByNode lists and watches the reports of one node, as agents do, and
// deletes them as the manager does.
func TestProbeReportsAreSelectedByNode(t *testing.T) {
	t.Parallel()
	const node, other = "selected", "selected.1"
	all := []string{"selected.0", "selected.1", "selected.1.0"}
	selector := client.MatchingFields{"nodeName": node}
	watcher, err := server.Client.Watch(t.Context(), &seamarkv1alpha1.ProbeReportList{}, selector)
	expect.NoError(t, err)
	defer watcher.Stop()
	for _, name := range all {
		of := node
		if name == all[2] {
			of = other
		}
		expect.NoError(t, server.Client.Create(t.Context(), slice(of, name, 1, "Succeeded")))
	}
	var events []string
	for range all[:2] {
		event := <-watcher.ResultChan()
		report, ok := event.Object.(*seamarkv1alpha1.ProbeReport)
		if !ok || event.Type != apiwatch.Added {
			t.Fatalf("event %s with %T", event.Type, event.Object)
		}
		events = append(events, report.Name)
	}
	expect.Equal(t, "watched reports", all[:2], events)
	expect.Equal(t, "listed reports", all[:2], namesOf(t, selector))
	expect.NoError(t, server.Client.DeleteAllOf(t.Context(), &seamarkv1alpha1.ProbeReport{}, selector))
	if rest := namesOf(t, selector); len(rest) > 0 {
		t.Errorf("reports %v remain", rest)
	}
	expect.Equal(t, "reports of the other node", all[2:], namesOf(t, client.MatchingFields{"nodeName": other}))
}

func namesOf(t *testing.T, options ...client.ListOption) []string {
	t.Helper()
	var list seamarkv1alpha1.ProbeReportList
	expect.NoError(t, server.Client.List(t.Context(), &list, options...))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}
