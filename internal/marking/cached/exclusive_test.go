// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cached_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

const roleEntry = `{"f:metadata":{"f:labels":{"f:role":{}}}}`

// rival is a pod with the role that Seamark has set, and what its probe reports.
type rival struct {
	name, shard, role string
	state             v1alpha1.ProbeState
	message           string
	since             int64
	ending            bool
}

func rivals(all []rival, policy v1alpha1.ExclusivePolicy) (*v1alpha1.PodProbeMarker, *plan.Marker, []cached.Pod) {
	stored := builders.Marker("ns", "db").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").
		Label(v1alpha1.ProbeUnknown, "role", "unknown").Label(v1alpha1.ProbeFailed, "role", "replica").
		Exclusive(v1alpha1.ProbeSucceeded, policy)).Build()
	marker, err := plan.Compile(stored)
	if err != nil {
		panic(err)
	}
	markers := []*plan.Marker{marker}
	var views []cached.Pod
	for _, one := range all {
		pod := builders.Pod("ns", one.name).Label("app", "game")
		if one.role != "" {
			pod = pod.Label("role", one.role).ManagedFields("seamark", "status", roleEntry)
		}
		if one.shard != "" {
			pod = pod.Label("shard", one.shard)
		}
		if one.ending {
			pod = pod.Terminating()
		}
		object := pod.Build()
		slice := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: "node-1.0"}, NodeName: "node-1"}
		if one.state != "" {
			probes := cached.Plan(object, markers, cached.KubeletNode, cached.Options{}).Probes
			planned := ""
			if len(probes) > 0 {
				planned = probes[0].Plan.Plan
			}
			slice.Pods = []seamarkv1alpha1.PodReport{{Namespace: "ns", Name: one.name, UID: string(object.UID), Probes: []v1alpha1.ContainerProbeState{{
				Name: "db#p", Plan: planned, State: one.state, Message: one.message, LastTransitionTime: metav1.NewTime(time.Unix(one.since, 0)),
			}}}}
		}
		report := mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{slice}}
		views = append(views, cached.New(object, markers, cached.KubeletNode, report, cached.Options{}))
	}
	return stored, marker, views
}

// roles returns the role that each pod should have, and + for those that lose a foreign label.
func roles(t *testing.T, views []cached.Pod) string {
	t.Helper()
	var all []string
	for _, v := range views {
		owned, err := mark.Owned(v.Object)
		if err != nil {
			t.Fatal(err)
		}
		desired := v.Desired(owned)
		role := desired[mark.Label("role")].Text
		if len(v.Leftover(owned, desired)) > 0 {
			role += "+"
		}
		all = append(all, role)
	}
	return strings.Join(all, " ")
}

func TestCompete(t *testing.T) {
	const yes, no = v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed
	terms := v1alpha1.ExclusivePolicy{TermFrom: &v1alpha1.TermSource{JSONPath: ".term"}}
	for name, tc := range map[string]struct {
		pods   []rival
		policy v1alpha1.ExclusivePolicy
		want   string
	}{
		"one claim":              {pods: []rival{{name: "a", state: yes}, {name: "b", state: no}}, want: "primary replica"},
		"latest change":          {pods: []rival{{name: "a", state: yes, since: 1}, {name: "b", state: yes, since: 2}}, want: "unknown primary"},
		"winner waits":           {pods: []rival{{name: "a", state: yes, since: 1, role: "primary"}, {name: "b", state: yes, since: 2, role: "replica"}}, want: "unknown replica"},
		"same second":            {pods: []rival{{name: "a", state: yes, since: 1}, {name: "b", state: yes, since: 1, role: "primary"}}, want: "unknown primary"},
		"highest term":           {policy: terms, pods: []rival{{name: "a", state: yes, message: `{"term":9}`}, {name: "b", state: yes, message: `{"term":8}`, since: 5}, {name: "c", state: yes, since: 9}}, want: "primary unknown unknown"},
		"ending primary":         {pods: []rival{{name: "a", role: "primary", ending: true}, {name: "b", state: yes, role: "replica"}}, want: " replica"},
		"ending without rival":   {pods: []rival{{name: "a", role: "primary", ending: true}, {name: "b", state: no}}, want: "primary replica"},
		"not reported":           {pods: []rival{{name: "a", role: "primary"}, {name: "b", state: yes}}, want: " "},
		"not reported, no rival": {pods: []rival{{name: "a", role: "primary"}, {name: "b", state: no}}, want: "primary replica"},
		"one per shard":          {policy: v1alpha1.ExclusivePolicy{PerLabel: "shard"}, pods: []rival{{name: "a", shard: "1", state: yes}, {name: "b", shard: "2", state: yes}, {name: "c", state: yes, since: 9}}, want: "primary primary unknown"},
	} {
		_, marker, views := rivals(tc.pods, tc.policy)
		competing := make([]cached.Pod, 0, len(views))
		for _, v := range views {
			competing = append(competing, v.Compete([]*plan.Marker{marker}, views))
		}
		if diff := cmp.Diff(tc.want, roles(t, competing)); diff != "" {
			t.Errorf("%s: roles (-want +got):\n%s", name, diff)
		}
	}
}

func TestWithHolders(t *testing.T) {
	for holder, want := range map[types.UID]string{"uid-a": "primary unknown", "uid-b": "unknown primary", "": " "} {
		stored, marker, views := rivals([]rival{{name: "a", state: v1alpha1.ProbeSucceeded}, {name: "b", state: v1alpha1.ProbeSucceeded}}, v1alpha1.ExclusivePolicy{})
		if holder != "" {
			stored.Status.Holders = []v1alpha1.ExclusiveHolder{{Probe: "p", State: v1alpha1.ProbeSucceeded, Pod: "x", UID: holder}}
		}
		for i, v := range views {
			views[i] = v.WithHolders([]*v1alpha1.PodProbeMarker{stored}, []*plan.Marker{marker})
		}
		if got := roles(t, views); got != want {
			t.Errorf("holder %q: roles %q, want %q", holder, got, want)
		}
	}
}
