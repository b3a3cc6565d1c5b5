// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	stdcmp "cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/expect"
)

// model is a node with an agent, and the slices that the API server stores for it. A seed
// determines everything that happens to it.
type model struct {
	*testing.T
	rng    *rand.Rand
	now    time.Time
	plan   report.Plan
	states report.States
	record report.Record
	// changed are the pods whose states have changed since the last decision, or nil for any pod.
	changed map[string]bool
	store   map[int][]seamarkv1alpha1.PodReport
	// want are the newest states of the planned probes, also of those that are not in states.
	want report.States
	// places are the slices of the pods when the model last settled. The pods may have been
	// moved since if shuffled is set.
	places   map[string]int
	shuffled bool
	pods     int
	trace    []string
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		T: t, rng: rand.New(rand.NewPCG(seed, 1)), now: at(0), states: report.States{}, want: report.States{},
		store: map[int][]seamarkv1alpha1.PodReport{}, places: map[string]int{},
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d: %v", seed, m.trace)
		}
	})
	return m
}

func (m *model) list() []report.Slice {
	var listed []report.Slice
	for number, pods := range m.store {
		listed = append(listed, report.Slice{Number: number, Pods: pods})
	}
	// The order is random, but the seed determines it.
	slices.SortFunc(listed, func(a, b report.Slice) int { return stdcmp.Compare(a.Number, b.Number) })
	m.rng.Shuffle(len(listed), func(i, j int) { listed[i], listed[j] = listed[j], listed[i] })
	return listed
}

func (m *model) keyAt(pod *v1alpha1.PodProbe, i int) identity.Key {
	key, err := identity.KeyOf(pod, &pod.Probes[i])
	expect.NoError(m, err)
	return key
}

// replan replaces the plan, and removes the states of the probes that are not planned.
func (m *model) replan(pods []v1alpha1.PodProbe) {
	m.plan, m.changed = report.Plan{Generation: m.plan.Generation + 1, Pods: pods}, nil
	planned := map[identity.Key]bool{}
	for i := range pods {
		for j := range pods[i].Probes {
			planned[m.keyAt(&pods[i], j)] = true
		}
	}
	gone := func(key identity.Key, _ thresholds.State) bool { return !planned[key] }
	maps.DeleteFunc(m.states, gone)
	maps.DeleteFunc(m.want, gone)
	m.shuffled = m.shuffled || m.isOverfull()
}

// isOverfull reports whether the pods of a slice may exceed its size, so that some move.
func (m *model) isOverfull() bool {
	numbers := map[string]int{}
	maps.Copy(numbers, m.places)
	for number, pods := range m.store {
		for i := range pods {
			numbers[pods[i].UID] = number
		}
	}
	// This is more than the budget of a pod, which is an equal share, or what its probes need.
	const share, ofProbe = report.MaxBytes / report.MaxPods, 1300
	bytes := map[int]int{}
	for i := range m.plan.Pods {
		if number, placed := numbers[m.plan.Pods[i].UID]; placed {
			bytes[number] += max(share, ofProbe*len(m.plan.Pods[i].Probes))
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(bytes)), func(n int) bool { return n > report.MaxBytes })
}

func (m *model) addPods() {
	pods := slices.Clone(m.plan.Pods)
	for range 1 + m.rng.IntN(12) {
		m.pods++
		pod := v1alpha1.PodProbe{Name: fmt.Sprint("pod-", m.pods), Namespace: fmt.Sprint("ns-", m.rng.IntN(3)), UID: fmt.Sprint("uid-", m.pods)}
		probes := 1 + m.rng.IntN(3)
		if m.rng.IntN(12) == 0 {
			probes = m.rng.IntN(300)
		}
		updates := []v1alpha1.MessageUpdates{"", v1alpha1.MessageUpdatesImmediate}[m.rng.IntN(2)]
		for i := range probes {
			pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{Name: fmt.Sprint("m#", i), ContainerName: "main", Plan: "1", MessageUpdates: updates})
		}
		pods = slices.Insert(pods, m.rng.IntN(len(pods)+1), pod)
	}
	m.replan(pods)
	for i := range m.plan.Pods {
		for j := range m.plan.Pods[i].Probes {
			key := m.keyAt(&m.plan.Pods[i], j)
			if _, known := m.want[key]; !known && m.rng.IntN(4) > 0 {
				m.transition(key)
			}
		}
	}
}

func (m *model) removePods() {
	pods := slices.Clone(m.plan.Pods)
	for range min(len(pods), 1+m.rng.IntN(8)) {
		i := m.rng.IntN(len(pods))
		delete(m.places, pods[i].UID)
		pods = slices.Delete(pods, i, i+1)
	}
	m.replan(pods)
}

// editPod adds or removes a probe of a pod, or plans it for another marker of the same name.
func (m *model) editPod() {
	if len(m.plan.Pods) == 0 {
		return
	}
	pods := slices.Clone(m.plan.Pods)
	pod := &pods[m.rng.IntN(len(pods))]
	pod.Probes = slices.Clone(pod.Probes)
	switch n := len(pod.Probes); {
	case n == 0 || m.rng.IntN(3) == 0:
		pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{Name: fmt.Sprint("n#", m.rng.IntN(1e6)), ContainerName: "main", Plan: "1"})
	case m.rng.IntN(2) == 0:
		i := m.rng.IntN(n)
		pod.Probes = slices.Delete(pod.Probes, i, i+1)
	default:
		i := m.rng.IntN(n)
		key := m.keyAt(pod, i)
		pod.Probes[i].Plan += "1"
		// The new probe has no result yet.
		m.states[key] = thresholds.State{}
		delete(m.want, key)
	}
	m.replan(pods)
}

func (m *model) probes() []identity.Key {
	var keys []identity.Key
	for i := range m.plan.Pods {
		for j := range m.plan.Pods[i].Probes {
			keys = append(keys, m.keyAt(&m.plan.Pods[i], j))
		}
	}
	return keys
}

func (m *model) transition(key identity.Key) {
	state := thresholds.State{
		State: []v1alpha1.ProbeState{succeeded, failed, unknown}[m.rng.IntN(3)], LastProbe: m.now, LastTransition: m.now,
		ContainerID: "0123456789abc", Message: randomMessage(m.rng, m.rng.IntN(1+m.rng.IntN(1100))),
	}
	m.set(key, state)
	m.want[key] = state
}

func (m *model) change() {
	for _, key := range m.probes() {
		if m.rng.IntN(20) > 0 {
			continue
		}
		switch state, known := m.states[key]; {
		case m.rng.IntN(3) > 0:
			m.transition(key)
		case known && m.rng.IntN(2) == 0:
			state.Message = randomMessage(m.rng, m.rng.IntN(200))
			m.set(key, state)
		case known:
			state.Problem = thresholds.Problem{Reason: cannotRun, Message: fmt.Sprint(m.rng.IntN(9)), Since: m.now}
			m.set(key, state)
		}
	}
}

// decide decides with the changes since the last decision.
func (m *model) decide() report.Decision {
	d := report.Decide(m.now, m.plan, m.record, m.states, m.changed)
	m.record, m.changed = d.Record, map[string]bool{}
	return d
}

func (m *model) set(key identity.Key, state thresholds.State) {
	m.states[key] = state
	if m.changed != nil {
		m.changed[string(key.PodUID)] = true
	}
}

// round decides and writes. Some writes fail, and some responses are lost.
func (m *model) round(failures bool) []report.Write {
	d := m.decide()
	last := -1
	for _, w := range d.Writes {
		if w.Number <= last {
			m.Fatalf("slice %d is written after %d", w.Number, last)
		}
		last = w.Number
		checkSize(m, w)
		outcome := m.rng.IntN(3)
		if failures && outcome == 0 {
			continue
		}
		if m.store[w.Number] = w.Pods; w.Delete {
			delete(m.store, w.Number)
		}
		if !failures || outcome == 1 {
			m.record = m.record.Wrote(m.now, w)
		}
	}
	return d.Writes
}

func checkSize(t testing.TB, w report.Write) {
	t.Helper()
	size := encodedSize(t, w.Pods)
	if len(w.Pods) > report.MaxPods || len(w.Pods) > 1 && size > report.MaxBytes || size > 1<<20 {
		t.Errorf("slice %d has %d pods and %d bytes", w.Number, len(w.Pods), size)
	}
}

// foreignEdit changes some slices as another client does. The agent lists them again.
func (m *model) foreignEdit() {
	for _, number := range slices.Sorted(maps.Keys(m.store)) {
		pods := slices.Clone(m.store[number])
		switch m.rng.IntN(8) {
		case 0:
			delete(m.store, number)
			continue
		case 1:
			m.rng.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		case 2:
			pods = pods[:m.rng.IntN(len(pods)+1)]
		case 3: // The same pods in two slices, or two slices in one.
			other := m.rng.IntN(number + 2)
			m.store[other] = slices.Concat(m.store[other], pods)
		case 4:
			for i := range pods {
				pods[i].Probes = slices.Clone(pods[i].Probes)
				for j := range pods[i].Probes {
					pods[i].Probes[j].State = failed
				}
			}
		case 5:
			pods = append(pods, seamarkv1alpha1.PodReport{UID: fmt.Sprint("uid-", m.rng.IntN(m.pods+2)), Name: "foreign", Namespace: "ns-0"})
		default:
			continue
		}
		m.store[number] = pods
	}
	m.record = m.record.Adopt(m.list())
}

// inStatus returns the stored states and errors of the planned pods as if they were in NodePodProbe.status.
func (m *model) inStatus() []v1alpha1.PodProbeStatus {
	inStatus := []v1alpha1.PodProbeStatus{}
	for _, slice := range m.list() {
		for _, pod := range slice.Pods {
			if slices.ContainsFunc(m.plan.Pods, func(p v1alpha1.PodProbe) bool { return p.UID == pod.UID }) {
				inStatus = append(inStatus, podStatus(pod))
			}
		}
	}
	return inStatus
}

// restart starts the agent with what is stored, and with the states in the status unless it is nil.
func (m *model) restart(inStatus []v1alpha1.PodProbeStatus) {
	m.record = report.Read(m.list(), inStatus)
	restored := report.Restore(m.plan, m.record)
	m.states, m.want, m.changed = restored, report.States{}, nil
	for _, key := range m.probes() {
		state, found := restored[key]
		if state.State != "" {
			m.want[key] = state
		}
		if found && m.rng.IntN(2) == 0 {
			delete(m.states, key)
		}
	}
}

// settle writes without failures until there is nothing to write, and checks what is stored.
func (m *model) settle() {
	m.round(false)
	d := m.decide()
	if len(d.Writes) > 0 {
		w := d.Writes[0]
		m.Fatalf("%d writes after all have been written, the first of slice %d (-stored +write):\n%s",
			len(d.Writes), w.Number, cmp.Diff(m.store[w.Number], w.Pods))
	}
	stored := map[string]int{}
	found := map[types.UID]*seamarkv1alpha1.PodReport{}
	for number, pods := range m.store {
		for i := range pods {
			pod := &pods[i]
			if !slices.ContainsFunc(m.plan.Pods, func(p v1alpha1.PodProbe) bool { return p.UID == pod.UID }) {
				continue
			}
			if other, twice := stored[pod.UID]; twice {
				m.Fatalf("pod %s is in slices %d and %d", pod.Name, other, number)
			}
			stored[pod.UID], found[types.UID(pod.UID)] = number, pod
		}
	}
	for uid, before := range m.places {
		if after, ok := stored[uid]; !m.shuffled && (!ok || after != before) {
			m.Fatalf("pod %s has moved from slice %d to %d (stored: %t)", uid, before, after, ok)
		}
	}
	m.places, m.shuffled = stored, false
	for key, want := range m.want {
		m.checkState(key, want, found[key.PodUID])
	}
	m.checkNoMore(found)
	// A decision without what earlier decisions remembered has the same result.
	again := report.Decide(m.now, m.plan, m.record.Adopt(m.list()), m.states, nil)
	if len(again.Writes) > 0 || !again.Next.Equal(report.Decide(m.now, m.plan, m.record, m.states, m.changed).Next) {
		m.Fatalf("%d writes, next %s, want none and %s", len(again.Writes), again.Next, d.Next)
	}
}

func (m *model) checkState(key identity.Key, want thresholds.State, pod *seamarkv1alpha1.PodReport) {
	if pod == nil {
		m.Fatalf("pod %s has a state and is not reported", key.PodUID)
	}
	at := slices.IndexFunc(pod.Probes, func(e v1alpha1.ContainerProbeState) bool { return e.Name == key.String() })
	if at < 0 {
		m.Fatalf("state %s of pod %s is not reported", key, pod.Name)
	}
	if got := pod.Probes[at]; got.State != want.State || !got.LastTransitionTime.Time.Equal(want.LastTransition.Truncate(time.Second)) {
		m.Fatalf("reported state %s of pod %s is %v, want %v", key, pod.Name, got, want)
	}
}

// checkNoMore checks that only the wanted states of the planned pods are reported.
func (m *model) checkNoMore(found map[types.UID]*seamarkv1alpha1.PodReport) {
	reported := 0
	for _, pod := range found {
		reported += len(pod.Probes)
	}
	if reported != len(m.want) {
		m.Fatalf("%d states are reported, want %d", reported, len(m.want))
	}
}
