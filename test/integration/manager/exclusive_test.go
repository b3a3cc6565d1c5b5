// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// claim is what the probe of a pod reports.
type claim struct {
	state v1alpha1.ProbeState
	// term is in the message, and since is when the state changed.
	term, since int
}

// duel is a marker with an exclusive policy, its pods on one node, and what is reported about them.
type duel struct {
	*world
	node, plan string
	names      []string
	uids       map[string]*corev1.Pod
	claims     map[string]claim
}

func newDuel(w *world, policy v1alpha1.ExclusivePolicy) *duel {
	d := &duel{world: w, names: []string{"a", "b", "c"}, uids: map[string]*corev1.Pod{}, claims: map[string]claim{}}
	d.node = w.node("duel")
	w.marker(builders.Marker(w.namespace, "db").Probe(builders.Probe("primary").Condition("db.io/primary").
		Label(succeeded, "role", "primary").Annotation(succeeded, "db.io/since", "always").Label(v1alpha1.ProbeUnknown, "role", "unknown").
		Label(failed, "role", "replica").Exclusive(succeeded, policy)))
	for _, name := range d.names {
		d.uids[name] = w.pod(name, d.node)
	}
	w.planned(d.node, "a/db#primary", "b/db#primary", "c/db#primary")
	npp, err := w.getPlan(w.Context(), d.node)
	w.must(err)
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
		pods = append(pods, seamarkv1alpha1.PodReport{Namespace: pod.Namespace, Name: name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{{
			Name: "db#primary", Plan: d.plan, State: c.state, Message: message,
			LastProbeTime: at(), LastTransitionTime: metav1.NewTime(at().Add(time.Duration(c.since) * time.Second)),
		}}})
	}
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: d.node}}
	d.must(writeSlice(d.Context(), d.client, npp, sliceName(d.node, 0), pods))
}

var (
	primary = []string{"label role=primary", "annotation db.io/since=always", "condition db.io/primary=True"}
	lost    = []string{"label role=unknown", "condition db.io/primary=Unknown"}
	replica = []string{"label role=replica", "condition db.io/primary=False"}
)

func TestExclusiveMarks(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	d := newDuel(w, v1alpha1.ExclusivePolicy{TermFrom: &v1alpha1.TermSource{JSONPath: ".term"}})
	d.claims = map[string]claim{"a": {succeeded, 1, 1}, "b": {failed, 1, 1}, "c": {failed, 1, 1}}
	d.say()
	w.marked("a", primary...)
	w.marked("b", replica...)
	// A split brain: the higher term wins, and the other pod counts as Unknown.
	d.claims["b"] = claim{succeeded, 2, 1}
	d.say()
	w.marked("b", primary...)
	w.marked("a", lost...)
	found, err := w.getMarker(t.Context(), "db")
	w.must(err)
	if len(found.Status.Holders) != 1 || found.Status.Holders[0].Pod != "b" {
		t.Errorf("holders %+v, want pod b", found.Status.Holders)
	}
	w.unchanged("a", lost...)
	// A term that is missing loses, whatever its time.
	d.claims["c"] = claim{succeeded, 0, 9}
	d.say()
	w.marked("c", lost...)
	// The winner ends: the next one gets the marks, although the ending pod has not gone.
	w.must(w.client.Patch(t.Context(), d.uids["b"], env.MergePatch(`{"metadata":{"finalizers":["example.com/hold"]}}`)))
	w.must(w.client.Delete(t.Context(), d.uids["b"]))
	w.marked("a", primary...)
	w.marked("b", "condition db.io/primary=True")
	w.must(w.client.Patch(t.Context(), d.uids["b"], env.MergePatch(`{"metadata":{"finalizers":null}}`)))
	// The winner has ended, so that it is not in the cache of the manager.
	ended := d.uids["a"].DeepCopy()
	w.must(w.client.Status().Patch(t.Context(), ended, env.MergePatch(`{"status":{"phase":"Failed"}}`)))
	w.marked("c", primary...)
	w.marked("a", "condition db.io/primary=True")
	w.condition("db", v1alpha1.ConditionMarksApplied, "Applied", "")
}

// TestExclusiveMarksPerLabel has two groups and a pod without a group.
func TestExclusiveMarksPerLabel(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	d := newDuel(w, v1alpha1.ExclusivePolicy{PerLabel: "shard"})
	shard := func(pod, value string) {
		w.must(w.client.Patch(t.Context(), d.uids[pod].DeepCopy(), env.MergePatch(`{"metadata":{"labels":{"shard":"`+value+`"}}}`)))
	}
	shard("a", "1")
	shard("b", "2")
	d.claims = map[string]claim{"a": {succeeded, 0, 1}, "b": {succeeded, 0, 2}, "c": {succeeded, 0, 3}}
	d.say()
	w.marked("a", append([]string{"label shard=1"}, primary...)...)
	w.marked("b", append([]string{"label shard=2"}, primary...)...)
	w.marked("c", lost...)
	// The pod joins a group, in which its state changed last.
	shard("c", "2")
	w.marked("c", append([]string{"label shard=2"}, primary...)...)
	w.marked("b", append([]string{"label shard=2"}, lost...)...)
	// The winner leaves the group, and another pod gets the marks.
	w.must(w.client.Patch(t.Context(), d.uids["c"].DeepCopy(), env.MergePatch(`{"metadata":{"labels":{"shard":null}}}`)))
	w.marked("b", append([]string{"label shard=2"}, primary...)...)
	w.marked("c", lost...)
	found, err := w.getMarker(t.Context(), "db")
	w.must(err)
	if len(found.Status.Holders) != 2 {
		t.Errorf("holders %+v, want one per group", found.Status.Holders)
	}
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
	d.claims = map[string]claim{"a": {succeeded, 0, 1}, "b": {failed, 0, 1}, "c": {failed, 0, 1}}
	d.say()
	w.marked("a", primary...)
	faults.deny("/pods/a/")
	d.claims["b"] = claim{succeeded, 0, 2}
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

// auditor watches all versions of the pods, and finds two with the marks.
type auditor struct {
	w       watch.Interface
	done    chan struct{}
	mu      sync.Mutex
	marked  map[string]bool
	takes   int
	problem string
}

func audit(w *world) *auditor {
	w.Helper()
	c, err := client.NewWithWatch(w.env.Config, client.Options{Scheme: w.client.Scheme()})
	w.must(err)
	events, err := c.Watch(context.Background(), &corev1.PodList{}, client.InNamespace(w.namespace))
	w.must(err)
	a := &auditor{w: events, done: make(chan struct{}), marked: map[string]bool{}}
	go a.run()
	return a
}

func (a *auditor) run() {
	defer close(a.done)
	for event := range a.w.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		a.mu.Lock()
		_, annotated := pod.Annotations["db.io/since"]
		now := event.Type != watch.Deleted && (pod.Labels["role"] == "primary" || annotated)
		if now && !a.marked[pod.Name] {
			a.takes++
		}
		a.marked[pod.Name] = now
		var all []string
		for name, marked := range a.marked {
			if marked {
				all = append(all, name)
			}
		}
		if len(all) > 1 && a.problem == "" {
			a.problem = fmt.Sprintf("at resource version %s, pods %v have the marks", pod.ResourceVersion, all)
		}
		a.mu.Unlock()
	}
}

func (a *auditor) stop() (takes int, problem string) {
	a.w.Stop()
	<-a.done
	return a.takes, a.problem
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
// their writes, while claims flip and pods are deleted and created again under the same name. It watches every
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
	d := newDuel(w, v1alpha1.ExclusivePolicy{TermFrom: &v1alpha1.TermSource{JSONPath: ".term"}})
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
		d.settleOn(d.names[r.IntN(len(d.names))], clock)
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
			d.must(client.IgnoreNotFound(d.client.Delete(d.Context(), pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})))
		}
		d.uids[name] = d.replacement(name)
		delete(d.claims, name)
	case 1, 2: // Another client writes the pod.
		patch := env.MergePatch(fmt.Sprintf(`{"metadata":{"annotations":{"their.io/clock":"%d"}}}`, clock))
		d.must(d.client.Patch(d.Context(), d.uids[name].DeepCopy(), patch))
		return
	case 3:
		d.claims[name] = claim{failed, clock, clock}
	case 4:
		d.claims[name] = claim{succeeded, 0, clock}
	default:
		d.claims[name] = claim{succeeded, clock - r.IntN(3), clock}
	}
	d.say()
}

// replacement creates a pod with the name of a deleted one. The new pod may be gone at once: while a write to
// the old pod is under way, the API server can complete the forced deletion by name a second time.
func (d *duel) replacement(name string) *corev1.Pod {
	d.Helper()
	for {
		pod, err := env.CreatePod(d.Context(), d.client, builders.Pod(d.namespace, name).Label("app", "game").Node(d.node).Build())
		if apierrors.IsNotFound(err) {
			continue
		}
		d.must(err)
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
		d.claims[name] = claim{succeeded, 1, 1}
	}
	d.claims[winner] = claim{succeeded, clock + 1, clock}
	d.say()
	for _, name := range d.names {
		want := "unknown"
		if name == winner {
			want = "primary"
		}
		d.until(fmt.Sprintf("pod %s has role=%s", name, want), func(ctx context.Context) (string, error) {
			pod, err := d.getPod(ctx, name)
			if err != nil {
				return "", err
			}
			if got := marks(pod); !slices.Contains(got, "label role="+want) {
				return fmt.Sprint("it has ", got), nil
			}
			return "", nil
		})
	}
}
