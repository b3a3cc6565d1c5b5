// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// claim is what the probe of a pod reports.
type claim struct {
	state v1alpha1.ProbeState
	// term is in the message, and since is when the state changed.
	term, since int
	// shard is what another probe reports, of which the label of the group is a mark.
	shard v1alpha1.ProbeState
}

// duel is a marker with an exclusive policy, its pods on one node, and what is reported about them.
type duel struct {
	*world
	node, plan string
	names      []string
	uids       map[string]*corev1.Pod
	claims     map[string]claim
}

func newDuel(w *world, policy v1alpha1.ExclusivePolicy, more ...*builders.ProbeBuilder) *duel {
	d := &duel{world: w, names: []string{"a", "b", "c"}, uids: map[string]*corev1.Pod{}, claims: map[string]claim{}}
	d.node = w.node("duel")
	marker := builders.Marker(w.Namespace, "db").Probe(builders.Probe("primary").Condition("db.io/primary").
		Label(succeeded, "role", "primary").Annotation(succeeded, "db.io/since", "always").Label(v1alpha1.ProbeUnknown, "role", "unknown").
		Label(failed, "role", "replica").Exclusive(succeeded, policy))
	for _, probe := range more {
		marker.Probe(probe)
	}
	w.marker(marker)
	var planned []string
	for _, name := range d.names {
		d.uids[name] = w.pod(name, d.node)
		planned = append(planned, name+"/db#primary")
		for _, probe := range more {
			planned = append(planned, name+"/db#"+probe.Build().Name)
		}
	}
	w.planned(d.node, planned...)
	npp := w.storedPlan(d.node)
	d.plan = npp.Spec.PodProbes[0].Probes[0].Plan
	w.report(d.node, states{})
	return d
}

// say reports the claims of all pods.
func (d *duel) say() {
	d.Helper()
	var pods []seamarkv1alpha1.PodReport
	for _, name := range d.names {
		c, pod := d.claims[name], d.uids[name]
		if c.state == "" || pod == nil {
			continue
		}
		message := "no term"
		if c.term > 0 {
			message = fmt.Sprintf(`{"term":%d}`, c.term)
		}
		probes := []v1alpha1.ContainerProbeState{{
			Name: "db#primary", Plan: d.plan, State: c.state, Message: message,
			LastProbeTime: at(), LastTransitionTime: metav1.NewTime(at().Add(time.Duration(c.since) * time.Second)),
		}}
		if c.shard != "" {
			probes = append(probes, v1alpha1.ContainerProbeState{Name: "db#shard", Plan: d.plan, State: c.shard, LastProbeTime: at(), LastTransitionTime: at()})
		}
		pods = append(pods, seamarkv1alpha1.PodReport{Namespace: pod.Namespace, Name: name, UID: string(pod.UID), Probes: probes})
	}
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: d.node}}
	d.Must(writeSlice(d.Context(), d.Client, npp, sliceName(d.node, 0), pods))
}

// tickets waits until exactly these pods have a ticket: the name, and the group if there is one.
func (d *duel) tickets(want ...string) {
	d.Helper()
	d.Until(fmt.Sprintf("tickets %v", want), func() error {
		var pods corev1.PodList
		d.List(&pods)
		var got []string
		for _, pod := range pods.Items {
			for key, group := range pod.Labels {
				if strings.HasPrefix(key, v1alpha1.ExclusiveTicketPrefix) {
					got = append(got, strings.TrimSuffix(pod.Name+"="+group, "="))
				}
			}
		}
		slices.Sort(got)
		return await.ErrorIf(!slices.Equal(got, want), "tickets %v", got)
	})
}

var (
	primary = []string{"label role=primary", "annotation db.io/since=always", "condition db.io/primary=True"}
	lost    = []string{"label role=unknown", "condition db.io/primary=Unknown"}
	replica = []string{"label role=replica", "condition db.io/primary=False"}
)

func TestExclusiveMarks(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	d := newDuel(w, v1alpha1.ExclusivePolicy{TermFrom: &v1alpha1.TermSource{JSONPath: ".term"}})
	d.claims = map[string]claim{"a": {state: succeeded, term: 1, since: 1}, "b": {state: failed, term: 1, since: 1}, "c": {state: failed, term: 1, since: 1}}
	d.say()
	w.marked("a", primary...)
	w.marked("b", replica...)
	// A split brain: the higher term wins, and the other pod counts as Unknown.
	d.claims["b"] = claim{state: succeeded, term: 2, since: 1}
	d.say()
	w.marked("b", primary...)
	w.marked("a", lost...)
	d.tickets("b")
	w.unchanged("a", lost...)
	w.counted("db", 1, 1, 1)
	// A term that is missing loses, whatever its time.
	d.claims["c"] = claim{state: succeeded, term: 0, since: 9}
	d.say()
	w.marked("c", lost...)
	// The winner ends: the next one gets the marks, although the ending pod has not gone.
	w.Patch(d.uids["b"], `{"metadata":{"finalizers":["example.com/hold"]}}`)
	w.Delete(d.uids["b"])
	w.marked("a", primary...)
	w.marked("b", "condition db.io/primary=True")
	w.Patch(d.uids["b"], `{"metadata":{"finalizers":null}}`)
	// The winner has ended, so that it is not in the cache of the manager.
	ended := d.uids["a"].DeepCopy()
	w.Must(w.Client.Status().Patch(t.Context(), ended, env.MergePatch(`{"status":{"phase":"Failed"}}`)))
	w.marked("c", primary...)
	w.marked("a", "condition db.io/primary=True")
	w.condition("db", v1alpha1.ConditionMarksApplied, "Applied", "")
}

// TestExclusiveMarksPerLabel has two groups and a pod without a group.
func TestExclusiveMarksPerLabel(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	d := newDuel(w, v1alpha1.ExclusivePolicy{PerLabel: "shard"})
	shard := func(pod, value string) {
		w.Patch(d.uids[pod].DeepCopy(), "%s", `{"metadata":{"labels":{"shard":"`+value+`"}}}`)
	}
	shard("a", "1")
	shard("b", "2")
	d.claims = map[string]claim{
		"a": {state: succeeded, term: 0, since: 1}, "b": {state: succeeded, term: 0, since: 2}, "c": {state: succeeded, term: 0, since: 3},
	}
	d.say()
	w.marked("a", append([]string{"label shard=1"}, primary...)...)
	w.marked("b", append([]string{"label shard=2"}, primary...)...)
	w.marked("c", lost...)
	// The pod joins a group, in which its state changed last.
	shard("c", "2")
	w.marked("c", append([]string{"label shard=2"}, primary...)...)
	w.marked("b", append([]string{"label shard=2"}, lost...)...)
	// The winner leaves the group, and another pod gets the marks.
	w.Patch(d.uids["c"].DeepCopy(), `{"metadata":{"labels":{"shard":null}}}`)
	w.marked("b", append([]string{"label shard=2"}, primary...)...)
	w.marked("c", lost...)
	// The winner moves to a group of its own, where it keeps the marks: another pod gets those of the group that it leaves.
	shard("c", "2")
	w.marked("b", append([]string{"label shard=2"}, lost...)...)
	w.marked("c", append([]string{"label shard=2"}, primary...)...)
	shard("c", "3")
	w.marked("b", append([]string{"label shard=2"}, primary...)...)
	w.marked("c", append([]string{"label shard=3"}, primary...)...)
	d.tickets("a=1", "b=2", "c=3")
}

// TestExclusiveMarksWait denies the removal of the marks from the loser.
func TestExclusiveMarksWait(t *testing.T) {
	e := servers.Parallel(t)
	faults := &faults{config: e}
	w := newWorldWithoutManager(t, e)
	stop := faults.start(t)
	defer func() { stop() }()
	defer w.clean()
	d := newDuel(w, v1alpha1.ExclusivePolicy{})
	d.claims = map[string]claim{"a": {state: succeeded, term: 0, since: 1}, "b": {state: failed, term: 0, since: 1}, "c": {state: failed, term: 0, since: 1}}
	d.say()
	w.marked("a", primary...)
	faults.deny("/pods/a/")
	d.claims["b"] = claim{state: succeeded, term: 0, since: 2}
	d.say()
	w.condition("db", v1alpha1.ConditionMarksApplied, "ExclusiveWaiting", "")
	w.event("db", "ExclusiveWaiting", "pod a still has them")
	w.marked("b", replica...)
	w.marked("a", primary...)
	faults.deny("")
	w.marked("b", primary...)
	w.marked("a", lost...)
	w.condition("db", v1alpha1.ConditionMarksApplied, "Applied", "")
}

// exclusiveSeeds are the seeds to run: SEAMARK_EXCLUSIVE_SEED=12 repeats one, SEAMARK_EXCLUSIVE_SEEDS=300 runs
// more.
func exclusiveSeeds() (first, last uint64) {
	first, last = 1, 4
	if n, err := strconv.ParseUint(os.Getenv("SEAMARK_EXCLUSIVE_SEEDS"), 10, 64); err == nil {
		last = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SEAMARK_EXCLUSIVE_SEED"), 10, 64); err == nil {
		first, last = n, n
	}
	return first, last
}

// TestAtMostOnePodHasExclusiveMarks runs two managers that both lead, kills them, refuses, loses and delays
// their writes, while claims flip, another probe moves pods between two groups, and pods are deleted and created again under the same name. It watches every
// version of the pods. In the end, without faults, the best claim wins.
func TestAtMostOnePodHasExclusiveMarks(t *testing.T) {
	e := servers.Parallel(t)
	w := newWorldWithoutManager(t, e)
	f := &faults{config: e, killed: make(chan struct{}, 1)}
	stops := []func(){f.start(t), f.start(t)}
	defer func() {
		for _, stop := range stops {
			defer stop()
		}
		w.clean()
	}()
	d := newDuel(w, v1alpha1.ExclusivePolicy{PerLabel: "shard", TermFrom: &v1alpha1.TermSource{JSONPath: ".term"}},
		builders.Probe("shard").Label(succeeded, "shard", "1").Label(failed, "shard", "2"))
	a := audit(w)
	clock := 0
	first, last := exclusiveSeeds()
	for seed := first; seed <= last && !t.Failed(); seed++ {
		r := rand.New(rand.NewPCG(seed, 24))
		f.random(rand.New(rand.NewPCG(seed, 25)))
		for range 60 {
			clock++
			d.step(r, clock)
			d.pause(r)
			select {
			case <-f.killed:
				i := r.IntN(2)
				stops[i]()
				stops[i] = f.start(t)
			default:
			}
		}
		f.random(nil)
		f.late.Wait()
		// Managers that have just started do not limit writes.
		for i := range stops {
			stops[i]()
			stops[i] = f.start(t)
		}
		winner := d.names[r.IntN(len(d.names))]
		d.settleOn(winner, clock)
		d.tickets(winner + "=1")
		if a.mu.Lock(); a.problem != "" {
			t.Errorf("seed %d: %s", seed, a.problem)
		}
		a.mu.Unlock()
	}
	takes, problem := a.stop()
	if t.Logf("%d seeds, %d times a pod took the marks", last-first+1, takes); problem != "" || takes < int(last-first) {
		t.Errorf("%d times a pod took the marks; %s", takes, problem)
	}
}

// step does one thing that may happen to a pod.
func (d *duel) step(r *rand.Rand, clock int) {
	name := d.names[r.IntN(len(d.names))]
	switch r.IntN(12) {
	case 0: // The pod is replaced.
		if pod := d.uids[name]; pod != nil {
			d.Must(client.IgnoreNotFound(d.Client.Delete(d.Context(), pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})))
		}
		d.uids[name] = d.replacement(name)
		delete(d.claims, name)
	case 1, 2: // Another client writes the pod.
		patch := env.MergePatch(fmt.Sprintf(`{"metadata":{"annotations":{"their.io/clock":"%d"}}}`, clock))
		d.Must(d.Client.Patch(d.Context(), d.uids[name].DeepCopy(), patch))
		return
	case 3:
		d.claims[name] = claim{failed, clock, clock, d.claims[name].shard}
	case 4:
		d.claims[name] = claim{succeeded, 0, clock, d.claims[name].shard}
	case 5: // The pod moves to another group.
		c := d.claims[name]
		if c.shard = succeeded; r.IntN(2) == 0 {
			c.shard = failed
		}
		d.claims[name] = c
	default:
		d.claims[name] = claim{succeeded, clock - r.IntN(3), clock, cmp.Or(d.claims[name].shard, succeeded)}
	}
	d.say()
}

// replacement creates a pod with the name of a deleted one. The new pod may be gone at once: while a write to
// the old pod is under way, the API server can complete the forced deletion by name a second time.
func (d *duel) replacement(name string) *corev1.Pod {
	d.Helper()
	for {
		pod, err := env.CreatePod(d.Context(), d.Client, builders.Pod(d.Namespace, name).Label("app", "game").Node(d.node).Build())
		if apierrors.IsNotFound(err) {
			continue
		}
		d.Must(err)
		return pod
	}
}

// pause lets the managers run for up to 25 ms.
func (d *duel) pause(r *rand.Rand) {
	timer := time.NewTimer(time.Duration(r.IntN(25)) * time.Millisecond)
	<-timer.C
}

// settleOn waits until the pod has the marks, and no other.
func (d *duel) settleOn(winner string, clock int) {
	d.Helper()
	for _, name := range d.names {
		d.claims[name] = claim{succeeded, 1, 1, succeeded}
	}
	d.claims[winner] = claim{succeeded, clock + 1, clock, succeeded}
	d.say()
	for _, name := range d.names {
		want := "unknown"
		if name == winner {
			want = "primary"
		}
		d.Until(fmt.Sprintf("pod %s has role=%s", name, want), func() error {
			got := marks(d.stored(name))
			return await.ErrorIf(!slices.Contains(got, "label role="+want), "it has %v", got)
		})
	}
}
