// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
	unknown   = v1alpha1.ProbeUnknown
)

func row(pod, marker string, state v1alpha1.ProbeState, reason diagnosis.Reason) probestatus.Row {
	r := probestatus.Row{Namespace: "ns", Pod: pod, UID: types.UID("uid-" + pod), Marker: marker, Probe: "p", Container: "main", State: state}
	if reason != "" {
		r.Problem = &probestatus.Problem{Reason: reason, Message: "text"}
	}
	return r
}

func TestStateOfPod(t *testing.T) {
	for name, test := range map[string]struct {
		rows    []probestatus.Row
		state   model.State
		problem bool
	}{
		"all succeeded":      {[]probestatus.Row{row("a", "m", succeeded, ""), row("a", "n", succeeded, "")}, model.Succeeded, false},
		"one has no state":   {[]probestatus.Row{row("a", "m", succeeded, ""), row("a", "n", "", "")}, model.None, false},
		"unknown first":      {[]probestatus.Row{row("a", "m", unknown, ""), row("a", "n", "", "")}, model.Unknown, false},
		"failed last":        {[]probestatus.Row{row("a", "m", unknown, ""), row("a", "n", failed, "")}, model.Failed, false},
		"problem":            {[]probestatus.Row{row("a", "m", succeeded, ""), row("a", "n", succeeded, diagnosis.NoPlan)}, model.Succeeded, true},
		"starting":           {[]probestatus.Row{row("a", "m", "", diagnosis.PodNotInitialized)}, model.None, false},
		"not bound":          {[]probestatus.Row{row("a", "m", "", diagnosis.PodNotBound)}, model.None, false},
		"ending":             {[]probestatus.Row{row("a", "m", failed, diagnosis.PodEnding)}, model.Failed, false},
		"missing permission": {[]probestatus.Row{row("a", "m", "", diagnosis.StateNotVisible)}, model.None, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := model.PodOf(builders.Pod("ns", "a").Build(), test.rows)
			if !found || got.State != test.state || got.Problem != test.problem || len(got.Probes) != len(test.rows) {
				t.Errorf("pod %+v, found %t, want state %s, problem %t", got, found, test.state, test.problem)
			}
		})
	}
}

func TestWorkloadOf(t *testing.T) {
	owned := func(kind, name string) *builders.PodBuilder {
		return builders.Pod("ns", "a").Owner(metav1.OwnerReference{Kind: kind, Name: name, Controller: new(true)})
	}
	for name, test := range map[string]struct {
		pod  *builders.PodBuilder
		want *model.Workload
	}{
		"no owner":               {builders.Pod("ns", "a"), nil},
		"StatefulSet":            {owned("StatefulSet", "web"), &model.Workload{Kind: "StatefulSet", Name: "web"}},
		"ReplicaSet alone":       {owned("ReplicaSet", "web-5c9"), &model.Workload{Kind: "ReplicaSet", Name: "web-5c9"}},
		"Deployment":             {owned("ReplicaSet", "web-5c9").Label("pod-template-hash", "5c9"), &model.Workload{Kind: "Deployment", Name: "web"}},
		"hash of something else": {owned("ReplicaSet", "web-5c9").Label("pod-template-hash", "777"), &model.Workload{Kind: "ReplicaSet", Name: "web-5c9"}},
		"nothing before hash":    {owned("ReplicaSet", "-5c9").Label("pod-template-hash", "5c9"), &model.Workload{Kind: "ReplicaSet", Name: "-5c9"}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "workload", test.want, model.WorkloadOf(test.pod.Build()))
		})
	}
}

func TestPodsAndCounts(t *testing.T) {
	pods := []*corev1.Pod{builders.Pod("ns", "b").Build(), builders.Pod("ns", "a").Build(), builders.Pod("ns", "unselected").Build()}
	rows := []probestatus.Row{
		row("a", "m", succeeded, ""), row("a", "m", failed, ""), row("a", "n", unknown, diagnosis.NoPlan),
		row("b", "gone", failed, ""), row("b", "m", "", diagnosis.PodEnding),
	}
	found := model.PodsOf(pods, rows)
	keys := make([]string, 0, len(found))
	for i := range found {
		keys = append(keys, found[i].Key)
	}
	if diff := cmp.Diff([]string{"ns/b", "ns/a"}, keys); diff != "" {
		t.Fatalf("pods (-want +got):\n%s", diff)
	}
	markers := []model.Marker{{Namespace: "ns", Name: "n", Failed: 7}, {Namespace: "ns", Name: "m", Probes: 2}, {Namespace: "another", Name: "m"}}
	model.Count(markers, func(yield func(*model.Pod) bool) {
		for i := range found {
			if !yield(&found[i]) {
				return
			}
		}
	})
	want := []model.Marker{
		{Namespace: "another", Name: "m"},
		{Namespace: "ns", Name: "m", Probes: 2, Pods: 2, Succeeded: 1, Failed: 1, None: 1},
		{Namespace: "ns", Name: "n", Pods: 1, Unknown: 1, Problems: 1},
	}
	expect.Equal(t, "markers", want, markers)
}

// The page reads these names.
func TestJSON(t *testing.T) {
	pod := builders.Pod("shop", "web-0").Build()
	pod.CreationTimestamp = metav1.Unix(1000, 0)
	r := row("web-0", "m", failed, "NoPlan")
	r.Namespace, r.Node, r.LastTransitionTime, r.Message, r.Source = "shop", "node-1", metav1.Unix(2000, 0), "full", probestatus.SourceReport
	r.Marks = []probestatus.Mark{{Kind: "label", Name: "busy", Value: "true"}}
	r.Guard = &probestatus.Guard{Name: "busy", Since: metav1.Unix(3000, 0)}
	p, _ := model.PodOf(pod, []probestatus.Row{r})
	marker := model.MarkerOf(builders.Marker("shop", "m").Probe(builders.Probe("p")).Build(), errors.New("no selector"))
	for want, value := range map[string]any{
		`{"reset":true,"pods":[{"key":"shop/web-0","namespace":"shop","name":"web-0","uid":"uid-web-0","node":"node-1",` +
			`"created":"1970-01-01T00:16:40Z","workload":null,"phase":"Running","state":"Failed","problem":true,"guard":{"name":"busy","since":"1970-01-01T00:50:00Z"},` +
			`"probes":[{"marker":"m","probe":"p","container":"main","state":"Failed","since":"1970-01-01T00:33:20Z","message":"full",` +
			`"source":"report","problem":{"reason":"NoPlan","message":"text"},"notable":true,"marks":[{"kind":"label","name":"busy","value":"true"}]}]}],` +
			`"removed":["shop/old"]}`: model.Pods[model.Pod]{Reset: true, Pods: []model.Pod{p}, Removed: []string{"shop/old"}},
		`{"markers":[{"namespace":"shop","name":"m","probes":1,"pods":0,"succeeded":0,"failed":0,"unknown":0,"none":0,"problems":0,` +
			`"invalid":"no selector"}]}`: model.Markers{Markers: []model.Marker{marker}},
		`{"user":"jane","source":"cluster","version":"v1","namespace":"","full":true,"readOnly":true}`: model.Session{
			User: "jane", Source: model.SourceCluster, Version: "v1", Full: true, ReadOnly: true},
	} {
		got, err := json.Marshal(value)
		expect.NoError(t, err)
		expect.Equal(t, "JSON", want, string(got))
	}
}
