// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

var errDenied = errors.New("denied by a policy")

// count returns how many lines contain the text.
func count(lines []string, text string) int {
	n := 0
	for _, line := range lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// all moves the probes of the first n pods to a state.
func (h *harness) all(n int, state v1alpha1.ProbeState) {
	for i := range n {
		h.turn(i, state)
	}
}

// TestCostOfTransitions counts the writes of a node with 110 pods.
func TestCostOfTransitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, manyPods(110))
		h.all(110, succeeded)
		h.putInForce()
		pass(time.Second)
		first := h.take()
		if wrote, status := count(first, "wrote node."), count(first, "status 1"); wrote != 14 || status != 1 {
			t.Errorf("first report: %d writes of slices and %d of the status, want 14 and 1:\n%s", wrote, status, strings.Join(first, "\n"))
		}
		h.turn(50, failed)
		pass(time.Minute)
		if lines := h.take(); len(lines) != 2 || count(lines, "wrote node.") != 1 {
			t.Errorf("one transition: %v, want one write and an event", lines)
		}
		// The first change is written at once, and the others after the interval.
		h.turn(0, failed)
		pass(time.Millisecond)
		h.all(110, failed)
		pass(time.Second)
		expect.Equal(t, "writes after transitions of all pods", 1+14, count(h.take(), "wrote node."))
		pass(24 * time.Hour)
		h.stop()
		if lines := h.take(); len(lines) > 0 {
			t.Errorf("idle: %v, want no writes", lines)
		}
	})
}

// TestWritesAreParallelAndBounded checks that 14 slow writes take as long as four after another.
func TestWritesAreParallelAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, manyPods(110))
		<-h.listed
		h.fail(faults{delay: time.Second})
		h.all(110, succeeded)
		h.putInForce()
		pass(10 * time.Second)
		h.stop()
		took := map[string]int{}
		for _, line := range h.take() {
			if at, what, _ := strings.Cut(line, " "); strings.HasPrefix(what, "wrote node.") {
				took[at]++
			}
		}
		expect.Equal(t, "writes by time", map[string]int{"1s": 4, "2s": 4, "3s": 4, "4s": 2}, took)
	})
}

// TestRejectedSliceDoesNotDelayOthers checks that a slice that the API server rejects is retried
// with a back-off, that other slices are written at once, and that nothing is lost.
func TestRejectedSliceDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, manyPods(24))
		h.all(24, succeeded)
		h.putInForce()
		pass(time.Second)
		h.fail(faults{denied: map[string]error{"node.1": errDenied}})
		h.all(24, failed)
		pass(time.Second)
		h.take()
		for i := range 60 {
			h.turn(0, []v1alpha1.ProbeState{succeeded, failed}[i%2])
			pass(time.Second)
		}
		lines := h.take()
		if wrote, rejected := count(lines, "wrote node.0"), count(lines, "rejected"); wrote != 60 || rejected < 10 || rejected > 20 {
			t.Errorf("in a minute, %d writes of slice 0 and %d rejected ones, want 60 and 10 to 20", wrote, rejected)
		}
		for _, line := range lines {
			at, what, _ := strings.Cut(line, " ")
			if late, err := time.ParseDuration(at); err != nil || strings.HasPrefix(what, "wrote") && late%time.Second > h.interval {
				t.Errorf("delayed write: %s", line)
			}
		}
		h.fail(faults{})
		pass(7 * time.Second)
		h.stop()
		if lines := h.take(); count(lines, "wrote node.1") != 1 || count(lines, "event") != 8 {
			t.Errorf("after the rejection: %v, want one write and 8 events", lines)
		}
	})
}

// TestUnservedKindIsRetriedSlowly rejects all slices, as if the CRD was deleted.
func TestUnservedKindIsRetriedSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, manyPods(32))
		missing := map[string]error{}
		for i := range 4 {
			missing[fmt.Sprintf("node.%d", i)] = errors.New("not found")
		}
		h.fail(faults{denied: missing})
		h.all(32, succeeded)
		h.putInForce()
		pass(time.Minute)
		if rejected := count(h.take(), "rejected"); rejected > 4*20 {
			t.Errorf("%d requests in a minute, want at most 80", rejected)
		}
		h.fail(faults{})
		pass(7 * time.Second)
		h.stop()
		if lines := h.take(); count(lines, "wrote node.") != 4 || count(lines, "event") != 32 || count(lines, "status 1") != 1 {
			t.Errorf("afterwards: %v, want four slices, 32 events and the status", lines)
		}
	})
}

// stored returns the stored states of probe m#p by pod.
func (h *harness) stored() map[string]v1alpha1.ProbeState {
	h.server.Lock()
	defer h.server.Unlock()
	states := map[string]v1alpha1.ProbeState{}
	for _, slice := range h.slices {
		for _, pod := range slice.Pods {
			if _, twice := states[pod.Name]; twice {
				h.t.Errorf("%s is in two slices", pod.Name)
			}
			for _, state := range pod.Probes {
				states[pod.Name] = state.State
			}
		}
	}
	return states
}

// TestSlicesAreReadFirst checks that nothing is written until the slices of an earlier agent are
// read, however long that takes, and that its states stay.
func TestSlicesAreReadFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := newHarness(t, manyPods(3))
		before.all(3, failed)
		before.putInForce()
		pass(time.Second)
		before.stop()

		h := newHarnessWith(t, before.object, before.slices)
		h.fail(faults{down: true})
		h.observeStored()
		pass(time.Minute)
		if refused := count(h.take(), "refused"); refused > 20 {
			t.Errorf("%d attempts in a minute, want at most 20", refused)
		}
		h.fail(faults{})
		h.putInForce()
		pass(time.Minute)
		h.turn(1, succeeded)
		pass(time.Second)
		h.stop()
		if lines := h.take(); len(lines) != 2 || !strings.HasSuffix(lines[0], "m#p=Failed(0) m#p=Succeeded(1) m#p=Failed(2)") {
			t.Errorf("log = %v, want one write with three states and an event", lines)
		}
	})
}

// TestLateWriteOfTheEarlierAgent checks that an agent repairs a slice that the earlier agent of the
// node has written after the list.
func TestLateWriteOfTheEarlierAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, manyPods(3))
		h.all(3, succeeded)
		h.putInForce()
		pass(time.Second)
		h.take()
		h.withServer(func() { h.slices["node.0"].Pods[1].Probes[0].State = failed })
		pass(2 * time.Minute)
		h.stop()
		if lines := h.take(); len(lines) != 1 || h.stored()["pod-001"] != succeeded {
			t.Errorf("log = %v, want one write that repairs the slice", lines)
		}
	})
}

// TestSlicesDeletedBeforeTheFirstObject checks that an agent repairs a slice that was deleted while
// the node had no object.
func TestSlicesDeletedBeforeTheFirstObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := newHarness(t, manyPods(3))
		before.all(3, succeeded)
		before.putInForce()
		pass(time.Second)
		before.stop()

		h := newHarnessWith(t, before.object, before.slices)
		<-h.listed
		pass(time.Hour)
		h.withServer(func() { delete(h.slices, "node.0") })
		h.putInForce()
		pass(2 * time.Minute)
		h.stop()
		if lines := h.take(); count(lines, "wrote node.0") != 1 || len(h.stored()) != 3 {
			t.Errorf("log = %v, want one write of three states", lines)
		}
	})
}

// TestOwners checks that the slices have the Node as the owner, and that they get the new one if
// the Node is recreated.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, manyPods(10))
		owners := func() []string {
			var uids []string
			h.withServer(func() {
				for _, slice := range h.slices {
					for _, owner := range slice.OwnerReferences {
						if owner.BlockOwnerDeletion != nil {
							t.Errorf("owner %+v blocks the deletion", owner)
						}
						uids = append(uids, string(owner.UID))
					}
				}
			})
			return uids
		}
		h.all(10, succeeded)
		h.putInForce()
		pass(time.Second)
		if got := owners(); !slices.Equal(got, []string{"node-1", "node-1"}) {
			t.Errorf("owners %v, want node-1 of both slices", got)
		}
		h.take()
		// The garbage collector has deleted one of the slices.
		h.withServer(func() {
			delete(h.slices, "node.1")
			h.object = manyPods(10)
			h.object.UID, h.object.OwnerReferences[0].UID = "npp-2", "node-2"
		})
		h.putInForce()
		pass(time.Second)
		if got := owners(); !slices.Equal(got, []string{"node-2", "node-2"}) {
			t.Errorf("owners %v, want node-2 of both slices", got)
		}
		if lines := h.take(); count(lines, "wrote node.") != 2 || count(lines, "event") != 0 {
			t.Errorf("log = %v, want two writes without events", lines)
		}
		h.withServer(func() { h.object = manyPods(10); h.object.UID, h.object.OwnerReferences = "npp-3", nil })
		h.putInForce()
		pass(time.Minute)
		h.stop()
		if got := owners(); len(got) != 0 {
			t.Errorf("owners %v, want none", got)
		}
	})
}

// TestSlicesOfOthersAreIgnored checks that names that the agent does not use do not matter.
func TestSlicesOfOthersAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foreign := map[string]*seamarkv1alpha1.ProbeReport{}
		for _, name := range []string{"node.01", "node.x", "node.1.0", "other.0"} {
			foreign[name] = &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		h := newHarnessWith(t, manyPods(1), foreign)
		h.turn(0, succeeded)
		h.putInForce()
		pass(time.Hour)
		h.stop()
		if lines := h.take(); count(lines, "wrote node.0:") != 1 || len(lines) != 3 {
			t.Errorf("log = %v, want a write, an event and the status", lines)
		}
	})
}
