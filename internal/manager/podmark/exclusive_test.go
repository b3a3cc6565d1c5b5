// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// listing records the lists of pods, and answers them with its pods.
type listing struct {
	client.Reader
	options []client.ListOptions
	answer  []corev1.Pod
}

func (l *listing) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.options = append(l.options, *(&client.ListOptions{}).ApplyOptions(options))
	list.(*corev1.PodList).Items = l.answer //nolint:forcetypeassert // a panic fails the test
	return nil
}

// duel returns a reconciler with an exclusive marker and its pods, which claim the marks on node "node", those later in the list
// with the better claim. The label "ticket" stands for the ticket, and a pod with the label "unreported" has no report.
func duel(t *testing.T, pods *recorded, policy v1alpha1.ExclusivePolicy, all ...*builders.PodBuilder) (*Reconciler, *listing, string) {
	t.Helper()
	stored := builders.Marker("ns", "db").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").
		Label(v1alpha1.ProbeUnknown, "role", "unknown").Exclusive(v1alpha1.ProbeSucceeded, policy)).Build()
	compiled, err := plan.Compile(stored)
	expect.NoError(t, err)
	ticket := compiled.Exclusives()[0].Ticket
	report := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: seamarkv1alpha1.SliceName("node", 0)}, NodeName: "node"}
	objects := []client.Object{stored, report, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}}
	for i, b := range all {
		pod := b.Label("app", "game").Node("node").Build()
		if group, has := pod.Labels["ticket"]; has {
			delete(pod.Labels, "ticket")
			pod.Labels[ticket] = group
			entry := `{"f:metadata":{"f:labels":{"f:role":{},"f:` + ticket + `":{}}}}`
			pod.ManagedFields = builders.Pod("", "").ManagedFields(v1alpha1.FieldManager, "status", entry).Build().ManagedFields
		}
		if _, unreported := pod.Labels["unreported"]; !unreported {
			report.Pods = append(report.Pods, seamarkv1alpha1.PodReport{Namespace: "ns", Name: pod.Name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{
				{Name: "db#p", State: v1alpha1.ProbeSucceeded, LastTransitionTime: metav1.NewTime(time.Unix(int64(i), 0))}}})
		}
		objects = append(objects, pod)
	}
	r, live := reconciler(t, pods, objects...), &listing{}
	r.Live = live
	return r, live, ticket
}

// TestHandOver checks each write of a hand-over, and the question to the API server before the last one.
func TestHandOver(t *testing.T) {
	pods := &recorded{}
	r, live, ticket := duel(t, pods, v1alpha1.ExclusivePolicy{PerLabel: "shard"},
		builders.Pod("ns", "alone").Label("shard", "1"), builders.Pod("ns", "ready").Label("shard", "2").Label("ticket", "2"),
		builders.Pod("ns", "loser").Label("shard", "3").Label("ticket", "3").Label("role", "primary"), builders.Pod("ns", "waits").Label("shard", "3").Label("ticket", "3"))
	names := []string{"alone", "ready", "loser", "waits"}
	for _, name := range names {
		// Nothing is decided until all pods have reported.
		if reconcileOne(t, r, name); name != "waits" && len(pods.labels) > 0 {
			t.Fatalf("writes %v after the report of pod %s, want none", pods.labels, name)
		}
	}
	for _, name := range names[:3] {
		reconcileOne(t, r, name)
	}
	want := []map[string]string{{ticket: "1"}, {ticket: "2", "role": "primary"}, {"role": "unknown"}}
	expect.Equal(t, "writes", want, pods.labels)
	if len(live.options) != 1 {
		t.Fatalf("%d lists, want one, for the pod that gets the marks", len(live.options))
	}
	options := live.options[0]
	pod, err := r.Reader.CachedPod(t.Context(), types.NamespacedName{Namespace: "ns", Name: "ready"})
	expect.NoError(t, err)
	if got := options.Raw; options.LabelSelector.String() != ticket+"=2" || options.Namespace != "ns" ||
		got.ResourceVersion != pod.ResourceVersion || got.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan {
		t.Errorf("list with the options %+v, want the ticket, not older than version %s", options, pod.ResourceVersion)
	}
}

// TestRivalInTheAnswer has a pod with the ticket that the cache does not have.
func TestRivalInTheAnswer(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		phase   corev1.PodPhase
		shard   string
		written int
		removed int
	}{
		"running": {phase: corev1.PodRunning, shard: "1"},
		// No reconcile removes its marks.
		"ended":                 {phase: corev1.PodSucceeded, shard: "1", written: 1, removed: 2},
		"has left the group":    {phase: corev1.PodRunning, shard: "2", written: 1},
		"is not in any group":   {phase: corev1.PodRunning, written: 1},
		"ended, in another one": {phase: corev1.PodFailed, shard: "2", written: 1},
	} {
		pods := &recorded{}
		r, live, ticket := duel(t, pods, v1alpha1.ExclusivePolicy{PerLabel: "shard"}, builders.Pod("ns", "a").Label("shard", "1").Label("ticket", "1"))
		r.Now = func() time.Time { return now }
		rival := builders.Pod("ns", "rival").Label("app", "game").Label("role", "primary").Label(ticket, "1").Phase(tc.phase)
		if tc.shard != "" {
			rival.Label("shard", tc.shard)
		}
		live.answer = []corev1.Pod{*rival.Build()}
		again := reconcileOne(t, r, "a").RequeueAfter
		if len(pods.labels) != tc.written || len(pods.removed) != tc.removed {
			t.Errorf("%s: writes %v, removed %v, want %d and %d", name, pods.labels, pods.removed, tc.written, tc.removed)
		}
		if tc.written > 0 {
			continue
		}
		now = now.Add(waitNotice)
		reconcileOne(t, r, "a")
		if w, _ := r.waits.Get(types.NamespacedName{Namespace: "ns", Name: "a"}); again != time.Second || r.Waiting() != 1 || w.why != "pod rival may still have them" {
			t.Errorf("%s: checked again after %s, %d pods waiting, because %s; want 1s, 1 and the rival", name, again, r.Waiting(), w.why)
		}
	}
}

// denyingRemoval refuses to remove keys.
type denyingRemoval struct{ recorded }

func (d *denyingRemoval) Remove(context.Context, *corev1.Pod, []mark.Key) (string, error) {
	return "", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "ended", errors.New("protected"))
}

// TestEndedPodIsProtected checks that a pod waits, and is reported, if the API server refuses to remove the marks of one that has ended.
func TestEndedPodIsProtected(t *testing.T) {
	now := time.Unix(1000, 0)
	r, live, ticket := duel(t, &recorded{}, v1alpha1.ExclusivePolicy{}, builders.Pod("ns", "a").Label("ticket", ""))
	r.Pods, r.Now = &denyingRemoval{}, func() time.Time { return now }
	live.answer = []corev1.Pod{*builders.Pod("ns", "ended").Label("app", "game").Label("role", "primary").Label(ticket, "").Phase(corev1.PodFailed).Build()}
	for range 2 {
		reconcileOne(t, r, "a")
		now = now.Add(waitNotice)
	}
	w, _ := r.waits.Get(types.NamespacedName{Namespace: "ns", Name: "a"})
	if want := "pod ended has ended and still has them: "; r.Waiting() != 1 || !strings.HasPrefix(w.why, want) {
		t.Errorf("%d pods are reported, because %q, want 1 and the prefix %q", r.Waiting(), w.why, want)
	}
}

// TestStaleClaim checks that a manager that has just started, and does not know how long a state has been stale, does not move
// the marks to the pod: it would not get them.
func TestStaleClaim(t *testing.T) {
	for _, l := range []staleness.Outage{{Cause: staleness.NotChecked}, {Cause: staleness.AgentGone, StartUnknown: true, Length: time.Second}} {
		marker := builders.Marker("ns", "db").Probe(builders.Probe("p").StaleAfter(60).Condition("db.io/p").Label(v1alpha1.ProbeSucceeded, "role", "primary").
			Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{})).Build()
		compiled, err := plan.Compile(marker)
		expect.NoError(t, err)
		ticket := compiled.Exclusives()[0].Ticket
		condition := `"f:status":{"f:conditions":{"k:{\"type\":\"db.io/p\"}":{".":{},"f:lastTransitionTime":{},"f:reason":{},"f:message":{},"f:status":{},"f:type":{}}}}`
		old := builders.Pod("ns", "old").Label("app", "game").Node("old").
			Condition(corev1.PodCondition{
				Type: "db.io/p", Status: "Unknown", Reason: v1alpha1.ReasonStale, Message: "stale", LastTransitionTime: metav1.Unix(500, 0),
			}).
			ManagedFields(v1alpha1.FieldManager, "status", `{`+condition+`}`).Build()
		holder := builders.Pod("ns", "holder").Label("app", "game").Node("new").Label("role", "primary").Label(ticket, "").
			Condition(corev1.PodCondition{Type: "db.io/p", Status: "True", LastTransitionTime: metav1.Unix(1, 0)}).
			ManagedFields(v1alpha1.FieldManager, "status", `{"f:metadata":{"f:labels":{"f:role":{},"f:`+ticket+`":{}}},`+condition+`}`).Build()
		report := reportOf("old", old, v1alpha1.ProbeSucceeded)
		report.Pods[0].Probes[0].LastTransitionTime = metav1.Unix(5, 0)
		pods := &recorded{}
		r := reconciler(t, pods, marker, old, holder, report, reportOf("new", holder, v1alpha1.ProbeSucceeded))
		r.Live = &listing{}
		r.Reader.Outages = func(node string) staleness.Outage {
			if node == "old" {
				return l
			}
			return staleness.Outage{}
		}
		for _, name := range []string{"old", "holder", "old", "holder"} {
			reconcileOne(t, r, name)
		}
		if len(pods.labels)+len(pods.removed) > 0 {
			t.Errorf("outage %+v: writes %v, removed %v, want none", l, pods.labels, pods.removed)
		}
	}
}

// TestEndingPod checks that an ending pod loses exclusive marks and the ticket to another one, and then keeps its other marks.
func TestEndingPod(t *testing.T) {
	for name, tc := range map[string]struct {
		ticket bool
		want   []map[string]string
	}{
		"has the ticket":      {ticket: true, want: []map[string]string{nil}},
		"has lost the ticket": {},
	} {
		ending := builders.Pod("ns", "ending").Label("role", "primary").Terminating().
			ManagedFields(v1alpha1.FieldManager, "status", `{"f:metadata":{"f:labels":{"f:role":{}}}}`)
		if tc.ticket {
			ending.Label("ticket", "")
		}
		pods := &recorded{}
		r, _, _ := duel(t, pods, v1alpha1.ExclusivePolicy{}, ending, builders.Pod("ns", "other"))
		reconcileOne(t, r, "other")
		pods.labels = nil
		reconcileOne(t, r, "ending")
		expect.Equal(t, name+": writes", tc.want, pods.labels)
	}
}

// TestLoserIsNotPaced checks that a pod on a lost node for whose marks another pod waits is written without a permit, and
// without such a pod only with one.
func TestLoserIsNotPaced(t *testing.T) {
	for state, want := range map[v1alpha1.ProbeState]int{v1alpha1.ProbeSucceeded: 1, v1alpha1.ProbeFailed: 0} {
		objects := []client.Object{builders.Marker("ns", "db").Probe(builders.Probe("p").StaleAfter(10).Label(v1alpha1.ProbeSucceeded, "role", "primary").
			Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{})).Build()}
		for node, state := range map[string]v1alpha1.ProbeState{"lost": v1alpha1.ProbeSucceeded, "ready": state} {
			pod := builders.Pod("ns", node).Label("app", "game").Node(node)
			if node == "lost" {
				pod.Label("role", "primary").ManagedFields(v1alpha1.FieldManager, "status", `{"f:metadata":{"f:labels":{"f:role":{}}}}`)
			}
			object := pod.Build()
			objects = append(objects, object, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, reportOf(node, object, state))
		}
		pods := &recorded{}
		r := reconciler(t, pods, objects...)
		r.Reader.Outages = func(node string) staleness.Outage {
			if node != "lost" {
				return staleness.Outage{}
			}
			return staleness.Outage{Cause: staleness.NodeNotReady, Since: time.Unix(1, 0), Length: time.Hour}
		}
		reconcileOne(t, r, "ready")
		pods.labels = nil
		if reconcileOne(t, r, "lost"); len(pods.labels) != want {
			t.Errorf("other pod in state %s: writes %v, want %d", state, pods.labels, want)
		}
	}
}

// TestMissingReport checks that a pod about which nothing is reported keeps its exclusive marks until its node is lost.
func TestMissingReport(t *testing.T) {
	pods := &recorded{}
	r, _, _ := duel(t, pods, v1alpha1.ExclusivePolicy{},
		builders.Pod("ns", "holder").Label("role", "primary").Label("ticket", "").Label("unreported", ""), builders.Pod("ns", "other"))
	node := staleness.Outage{}
	r.Reader.Outages = func(string) staleness.Outage { return node }
	reconcileOne(t, r, "holder")
	if reconcileOne(t, r, "other"); len(pods.labels) != 1 || pods.labels[0]["role"] != "unknown" {
		t.Errorf("writes %v, want one that makes the other pod unknown", pods.labels)
	}
	if result := reconcileOne(t, r, "holder"); len(pods.labels) != 1 || result.RequeueAfter != waitNotice {
		t.Errorf("writes %v, holder checked again after %s, want no other one and %s", pods.labels, result.RequeueAfter, waitNotice)
	}
	node = staleness.Outage{Cause: staleness.NodeNotReady}
	if reconcileOne(t, r, "holder"); len(pods.labels) != 2 || len(pods.labels[1]) != 0 {
		t.Errorf("writes %v, want a second one that removes the role and the ticket", pods.labels)
	}
}

// denying refuses marks with the label shard=2.
type denying struct {
	recorded
	denied int
}

func (d *denying) deny(marks mark.Marks) error {
	if marks[mark.Label("shard")].Text == "2" {
		d.denied++
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("shard 2 is closed"))
	}
	return nil
}

func (d *denying) Marks(ctx context.Context, pod *corev1.Pod, marks mark.Marks) (string, error) {
	if err := d.deny(marks); err != nil {
		return "", err
	}
	return d.recorded.Marks(ctx, pod, marks)
}

func (d *denying) Try(_ context.Context, _ *corev1.Pod, marks mark.Marks) error { return d.deny(marks) }

// TestRefusedMove checks that a pod keeps its exclusive marks if the API server refuses to move it to another group.
func TestRefusedMove(t *testing.T) {
	marker := builders.Marker("ns", "db").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").
		Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{PerLabel: "shard"})).
		Probe(builders.Probe("shard").Label(v1alpha1.ProbeSucceeded, "shard", "2")).Build()
	compiled, err := plan.Compile(marker)
	expect.NoError(t, err)
	ticket := compiled.Exclusives()[0].Ticket
	pod := builders.Pod("ns", "a").Label("app", "game").Node("node").Label("role", "primary").Label(ticket, "1").Label("shard", "1").
		ManagedFields(v1alpha1.FieldManager, "status", `{"f:metadata":{"f:labels":{"f:role":{},"f:`+ticket+`":{}}}}`).Build()
	report := reportOf("node", pod, v1alpha1.ProbeSucceeded)
	report.Pods[0].Probes = append(report.Pods[0].Probes, v1alpha1.ContainerProbeState{Name: "db#shard", State: v1alpha1.ProbeSucceeded})
	pods := &denying{}
	r := reconciler(t, pods, marker, pod, report)
	for range 3 {
		reconcileOne(t, r, "a")
	}
	if len(pods.labels) != 0 || pods.denied == 0 || pods.denied > 3 {
		t.Errorf("writes %v after %d refusals, want none after 1 to 3", pods.labels, pods.denied)
	}
}

func reportOf(node string, pod *corev1.Pod, state v1alpha1.ProbeState) *seamarkv1alpha1.ProbeReport {
	return &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{Name: seamarkv1alpha1.SliceName(node, 0)}, NodeName: node,
		Pods: []seamarkv1alpha1.PodReport{{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{
			{Name: "db#p", State: state, LastTransitionTime: metav1.NewTime(time.Unix(1, 0))}}}},
	}
}

func reconcileOne(t testing.TB, r *Reconciler, name string) reconcile.Result {
	t.Helper()
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}})
	expect.NoError(t, err)
	return result
}

// A write of exclusive marks needs the version of the pod, so it waits for a cache that does not have the last write yet.
func TestExclusiveWriteWaitsForTheLastWrite(t *testing.T) {
	pods := &recorded{}
	stored := builders.Marker("ns", "db").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").
		Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{})).Probe(builders.Probe("q").Label(v1alpha1.ProbeSucceeded, "up", "true")).Build()
	compiled, err := plan.Compile(stored)
	expect.NoError(t, err)
	ticket := compiled.Exclusives()[0].Ticket
	pod := builders.Pod("ns", "a").Label("app", "game").Label(ticket, "").Label("role", "primary").Node("node").Build()
	report := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: seamarkv1alpha1.SliceName("node", 0)}, NodeName: "node"}
	report.Pods = []seamarkv1alpha1.PodReport{{Namespace: "ns", Name: "a", UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{
		{Name: "db#p", State: v1alpha1.ProbeSucceeded}, {Name: "db#q", State: v1alpha1.ProbeSucceeded},
	}}}
	r := reconciler(t, pods, stored, report, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, pod)
	r.Live = &listing{}
	r.expectations.Expect(client.ObjectKeyFromObject(pod), pod.UID, "5000", mark.Marks{mark.Label("role"): {Text: "primary"}, mark.Label(ticket): {}})
	if again := reconcileOne(t, r, "a").RequeueAfter; len(pods.labels) > 0 || again != recheck {
		t.Errorf("writes %v, again after %s; want none before the cache has the last write", pods.labels, again)
	}
}
