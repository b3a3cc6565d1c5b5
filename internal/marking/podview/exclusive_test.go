// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/exclusive"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

const roleEntry = `{"f:metadata":{"f:labels":{"f:role":{}}}}`

// ticketed gives a pod the ticket of its group, which it should have.
func ticketed(v podview.Pod, markers []*plan.Marker, views []podview.Pod) podview.Pod {
	owned, err := mark.Owned(v.Object)
	if err != nil {
		panic(err)
	}
	for _, c := range v.Compete(markers, views).Contests {
		ticket := mark.Label(c.Ticket)
		if value, wanted := v.Compete(markers, views).Desired(owned)[ticket]; wanted {
			v.Object = v.Object.DeepCopy()
			v.Object.Labels[c.Ticket] = value.Text
		}
	}
	return v
}

// compete returns the views in their contests, after they have their tickets.
func compete(views []podview.Pod, markers ...*plan.Marker) []podview.Pod {
	var with, competing []podview.Pod
	for _, v := range views {
		with = append(with, ticketed(v, markers, views))
	}
	for _, v := range with {
		competing = append(competing, v.Compete(markers, with))
	}
	return competing
}

// rival is a pod with the role that Seamark has set, and what its probe reports.
type rival struct {
	name, shard, role string
	state             v1alpha1.ProbeState
	message           string
	since             int64
	ending            bool
}

func rivals(all []rival, policy v1alpha1.ExclusivePolicy) (*v1alpha1.PodProbeMarker, *plan.Marker, []podview.Pod) {
	stored := builders.Marker("ns", "db").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").
		Label(v1alpha1.ProbeUnknown, "role", "unknown").Label(v1alpha1.ProbeFailed, "role", "replica").
		Exclusive(v1alpha1.ProbeSucceeded, policy)).Build()
	marker, err := plan.Compile(stored)
	if err != nil {
		panic(err)
	}
	markers := []*plan.Marker{marker}
	var views []podview.Pod
	for _, one := range all {
		pod := builders.Pod("ns", one.name).Label("app", "game")
		entry := roleEntry
		if one.role == "primary" {
			ticket := marker.Exclusives()[0].Ticket
			pod, entry = pod.Label(ticket, one.shard), strings.Replace(entry, `"f:role"`, `"f:`+ticket+`":{},"f:role"`, 1)
		}
		if one.role != "" {
			pod = pod.Label("role", one.role).ManagedFields("seamark", "status", entry)
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
			probes := podview.Plan(object, markers, podview.KubeletNode, podview.Options{}).Probes
			planned := ""
			if len(probes) > 0 {
				planned = probes[0].Plan.Plan
			}
			slice.Pods = []seamarkv1alpha1.PodReport{{Namespace: "ns", Name: one.name, UID: string(object.UID), Probes: []v1alpha1.ContainerProbeState{{
				Name: "db#p", Plan: planned, State: one.state, Message: one.message, LastTransitionTime: metav1.NewTime(time.Unix(one.since, 0)),
			}}}}
		}
		report := mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{slice}}
		views = append(views, podview.New(object, markers, podview.KubeletNode, report, podview.Options{}))
	}
	return stored, marker, views
}

// roles returns the role that each pod should have, and + for those that lose a foreign label.
func roles(t *testing.T, views []podview.Pod) string {
	t.Helper()
	var all []string
	for _, v := range views {
		owned, err := mark.Owned(v.Object)
		expect.NoError(t, err)
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
		"one claim":     {pods: []rival{{name: "a", state: yes}, {name: "b", state: no}}, want: "primary replica"},
		"latest change": {pods: []rival{{name: "a", state: yes, since: 1}, {name: "b", state: yes, since: 2}}, want: "unknown primary"},
		"winner waits": {
			pods: []rival{{name: "a", state: yes, since: 1, role: "primary"}, {name: "b", state: yes, since: 2, role: "replica"}}, want: "unknown replica",
		},
		"same second": {
			pods: []rival{{name: "a", state: yes, since: 1}, {name: "b", state: yes, since: 1, role: "primary"}}, want: "unknown primary",
		},
		"highest term": {
			policy: terms, pods: []rival{
				{name: "a", state: yes, message: `{"term":9}`}, {name: "b", state: yes, message: `{"term":8}`, since: 5}, {name: "c", state: yes, since: 9},
			}, want: "primary unknown unknown",
		},
		"ending primary":         {pods: []rival{{name: "a", role: "primary", ending: true}, {name: "b", state: yes, role: "replica"}}, want: " replica"},
		"ending without rival":   {pods: []rival{{name: "a", role: "primary", ending: true}, {name: "b", state: no}}, want: "primary replica"},
		"not reported":           {pods: []rival{{name: "a", role: "primary"}, {name: "b", state: yes}}, want: "primary unknown"},
		"not reported, no rival": {pods: []rival{{name: "a", role: "primary"}, {name: "b", state: no}}, want: "primary replica"},
		"one per shard": {
			policy: v1alpha1.ExclusivePolicy{PerLabel: "shard"}, pods: []rival{
				{name: "a", shard: "1", state: yes}, {name: "b", shard: "2", state: yes}, {name: "c", state: yes, since: 9},
			}, want: "primary primary unknown",
		},
	} {
		_, marker, views := rivals(tc.pods, tc.policy)
		expect.Equal(t, name+": roles", tc.want, roles(t, compete(views, marker)))
	}
}

// TestMoves has a pod whose shard is a mark of another probe: it gets the marks of the shard in another write.
func TestMoves(t *testing.T) {
	for name, tc := range map[string]struct{ role, shard, reported, want string }{
		"winner is moved":                {shard: "1", reported: "2", want: "shard=2"},
		"pod with the marks is moved":    {role: "primary", shard: "1", reported: "2", want: "shard=2"},
		"pod joins its first group":      {reported: "2", want: "shard=2"},
		"pod is in the group":            {shard: "2", reported: "2", want: "shard=2 role=primary"},
		"pod with the marks stays":       {role: "primary", shard: "2", reported: "2", want: "shard=2 role=primary"},
		"label of the group is not mine": {shard: "1", want: "role=primary"},
	} {
		marker, err := plan.Compile(builders.Marker("ns", "db").
			Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").
				Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{PerLabel: "shard"})).
			Probe(builders.Probe("shard").Label(v1alpha1.ProbeSucceeded, "shard", tc.reported)).Build())
		expect.NoError(t, err)
		b := builders.Pod("ns", "a").Label("app", "game")
		owned := mark.Marks{}
		if tc.shard != "" {
			b = b.Label("shard", tc.shard)
		}
		if tc.role != "" {
			b = b.Label("role", tc.role)
			owned[mark.Label("role")] = mark.Value{Text: tc.role}
		}
		pod, markers := b.Build(), []*plan.Marker{marker}
		probes := podview.Plan(pod, markers, podview.KubeletNode, podview.Options{}).Probes
		states := []v1alpha1.ContainerProbeState{{Name: "db#p", Plan: probes[0].Plan.Plan, State: v1alpha1.ProbeSucceeded}}
		if tc.reported != "" {
			states = append(states, v1alpha1.ContainerProbeState{Name: "db#shard", Plan: probes[1].Plan.Plan, State: v1alpha1.ProbeSucceeded})
		}
		slice := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: "node-1.0"}, NodeName: "node-1",
			Pods: []seamarkv1alpha1.PodReport{{Namespace: "ns", Name: "a", UID: string(pod.UID), Probes: states}}}
		v := podview.New(pod, markers, podview.KubeletNode, mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{slice}}, podview.Options{})
		competing := compete([]podview.Pod{v}, markers...)[0]
		desired := competing.InGroup(owned, competing.Desired(owned))
		var got []string
		for _, key := range []string{"shard", "role"} {
			if value, set := desired[mark.Label(key)]; set {
				got = append(got, key+"="+value.Text)
			}
		}
		expect.Equal(t, name+": labels", tc.want, strings.Join(got, " "))
	}
}

// TestPolicyOfAnotherPod checks that an exclusive policy of a probe that does not run in a pod does not change the marks that
// another marker gives the pod.
func TestPolicyOfAnotherPod(t *testing.T) {
	exclusiveMarker := builders.Marker("ns", "a").Probe(builders.Probe("p").Container("absent").Label(v1alpha1.ProbeSucceeded, "role", "primary").
		Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{PerLabel: "shard"})).Build()
	other := builders.Marker("ns", "b").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary")).Build()
	var markers []*plan.Marker
	for _, stored := range []*v1alpha1.PodProbeMarker{exclusiveMarker, other} {
		marker, err := plan.Compile(stored)
		expect.NoError(t, err)
		markers = append(markers, marker)
	}
	pod := builders.Pod("ns", "a").Label("app", "game").Label("role", "primary").ManagedFields("seamark", "status", roleEntry).Build()
	probes := podview.Plan(pod, markers, podview.KubeletNode, podview.Options{}).Probes
	if len(probes) != 1 || probes[0].ID.Marker != "b" {
		t.Fatalf("probes %+v, want that of marker b", probes)
	}
	slice := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: "node-1.0"}, NodeName: "node-1",
		Pods: []seamarkv1alpha1.PodReport{{Namespace: "ns", Name: "a", UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{
			{Name: "b#p", Plan: probes[0].Plan.Plan, State: v1alpha1.ProbeSucceeded}}}}}
	v := podview.New(pod, markers, podview.KubeletNode, mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{slice}}, podview.Options{})
	expect.Equal(t, "roles", "primary", roles(t, compete([]podview.Pod{v}, markers...)))
}

// TestKeyOfAnotherProbe has a pod with the role, whose key belongs to another marker now: the pod still has it until the next
// write, and does not claim it.
func TestKeyOfAnotherProbe(t *testing.T) {
	stored, marker, views := rivals([]rival{
		{name: "a", role: "primary", state: v1alpha1.ProbeSucceeded, since: 9}, {name: "b", role: "replica", state: v1alpha1.ProbeSucceeded},
	}, v1alpha1.ExclusivePolicy{})
	first, err := plan.Compile(builders.Marker("ns", "aaa").Probe(builders.Probe("q").Label(v1alpha1.ProbeFailed, "role", "broken")).Build())
	expect.NoError(t, err)
	markers := []*plan.Marker{first, marker}
	report := views[0].Report
	report.Reported = true
	views[0].Plan, views[0].Report = podview.Plan(views[0].Object, markers, podview.KubeletNode, podview.Options{}), report
	for _, want := range []string{" replica", " primary"} {
		expect.Equal(t, fmt.Sprintf("marker %s: roles", stored.Name), want, roles(t, compete(views, marker)))
		// The write.
		views[0].Object = views[0].Object.DeepCopy()
		delete(views[0].Object.Labels, "role")
		delete(views[0].Object.Labels, marker.Exclusives()[0].Ticket)
		views[0].Object.ManagedFields = nil
	}
}

// TestTickets checks which role, and which ticket, a pod should have, given what it has and what is decided.
func TestTickets(t *testing.T) {
	self, other := &exclusive.Candidate{Name: "a", UID: "uid-a"}, &exclusive.Candidate{Name: "b", UID: "uid-b", Marked: true}
	for name, tc := range map[string]struct {
		role, ticket string
		// foreign is whether another client has set the role, and failed whether the pod does not claim it.
		foreign, failed bool
		result          exclusive.Result
		cleared         bool
		want            string
	}{
		"wins":                       {result: exclusive.Result{Decided: true, Winner: self}, want: "ticket"},
		"wins, other pod has marks":  {result: exclusive.Result{Decided: true, Winner: self, Blocker: other}, want: "ticket"},
		"wins with ticket":           {ticket: "own", result: exclusive.Result{Decided: true, Winner: self}, want: "ticket"},
		"cleared":                    {ticket: "own", result: exclusive.Result{Decided: true, Winner: self}, cleared: true, want: "primary ticket"},
		"has the marks":              {ticket: "own", role: "primary", result: exclusive.Result{Decided: true, Winner: self}, want: "primary ticket"},
		"keeps marks until ticket":   {role: "primary", result: exclusive.Result{Decided: true, Winner: self}, want: "primary ticket"},
		"loses":                      {ticket: "own", role: "primary", result: exclusive.Result{Decided: true, Winner: other}, want: "unknown"},
		"loses before it had them":   {ticket: "own", result: exclusive.Result{Decided: true, Winner: other}, want: "unknown"},
		"not decided, has the marks": {ticket: "own", role: "primary", want: "primary ticket"},
		"not decided, has ticket":    {ticket: "own", want: "ticket"},
		"not decided, has nothing":   {want: ""},
		"does not claim":             {ticket: "own", role: "primary", failed: true, result: exclusive.Result{Decided: true}, want: "replica"},
		"ticket of another client":   {ticket: "foreign", result: exclusive.Result{Decided: true, Winner: other}, want: "unknown, removes ticket"},
		"role of another client":     {ticket: "own", role: "primary", foreign: true, result: exclusive.Result{Decided: true, Winner: self}, want: "ticket"},
		"loses, shared ticket": {
			ticket: "shared", role: "primary", result: exclusive.Result{Decided: true, Winner: other}, want: "unknown, removes role, removes ticket",
		},
	} {
		state := v1alpha1.ProbeSucceeded
		if tc.failed {
			state = v1alpha1.ProbeFailed
		}
		_, marker, views := rivals([]rival{{name: "a", role: tc.role, state: state}}, v1alpha1.ExclusivePolicy{})
		v, ticket := views[0], marker.Exclusives()[0].Ticket
		owned := make(mark.Marks)
		if tc.role != "" && !tc.foreign {
			owned[mark.Label("role")] = mark.Value{Text: tc.role}
		}
		if tc.ticket != "" {
			v.Object.Labels[ticket] = ""
		}
		if tc.ticket == "own" || tc.ticket == "shared" {
			owned[mark.Label(ticket)] = mark.Value{}
		}
		if tc.ticket == "shared" {
			field := `{"f:metadata":{"f:labels":{"f:` + ticket + `":{}}}}`
			both := builders.Pod("ns", "").ManagedFields("seamark", "status", field).ManagedFields("kubectl", "", field).Build().ManagedFields
			v.Object.ManagedFields = both
		}
		v = v.WithContests([]*plan.Marker{marker}, owned)
		v.Contests[0].Result, v.Contests[0].Cleared = tc.result, tc.cleared
		v = v.ApplyContests()
		desired := v.Desired(owned)
		got, removes := desired[mark.Label("role")].Text, []string(nil)
		if desired.Has(mark.Label(ticket)) {
			got = strings.TrimSpace(got + " ticket")
		}
		leftover := v.Leftover(owned, desired)
		for key, name := range map[string]string{"role": "role", ticket: "ticket"} {
			if slices.Contains(leftover, mark.Label(key)) && (!tc.foreign || key != "role") {
				removes = append(removes, ", removes "+name)
			}
		}
		slices.Sort(removes)
		got += strings.Join(removes, "")
		expect.Equal(t, name, tc.want, got)
	}
}

// TestWithTickets checks what a pod shows of itself where its group is not known.
func TestWithTickets(t *testing.T) {
	_, marker, views := rivals([]rival{
		{name: "has the marks", state: v1alpha1.ProbeSucceeded, role: "primary"}, {name: "gets them", state: v1alpha1.ProbeSucceeded},
		{name: "another has them", state: v1alpha1.ProbeSucceeded}, {name: "claims nothing", state: v1alpha1.ProbeFailed},
	}, v1alpha1.ExclusivePolicy{})
	markers := []*plan.Marker{marker}
	for _, i := range []int{0, 1} {
		views[i].Object.Labels[marker.Exclusives()[0].Ticket] = ""
	}
	for i, v := range views {
		views[i] = v.WithTickets(markers)
	}
	expect.Equal(t, "roles", "primary  unknown replica", roles(t, views))
}
