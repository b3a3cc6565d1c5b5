// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// The race detector crashes in many synctest bubbles with timers (golang/go#78156). `make test-unit`
// runs this file without it.

package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
)

// chaos plays random changes of a node against a harness whose API server fails at random.
type chaos struct {
	*harness
	t    *testing.T
	rand *rand.Rand
	// planned are the numbers of the planned pods, and states are the states of their probes.
	planned []int
	states  map[int]v1alpha1.ProbeState
	// requests is the number of requests to restore slices.
	requests int
}

// TestNoStateIsLost checks that all states are stored in exactly one slice each when the API server
// works again, whatever has failed before, and that an idle agent writes nothing.
func TestNoStateIsLost(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &chaos{t: t, rand: rand.New(rand.NewPCG(seed, 1)), states: map[int]v1alpha1.ProbeState{}}
				c.harness = newHarness(t, manyPods(0))
				c.putInForce()
				for range 80 {
					c.step()
					pass(time.Duration(c.rand.IntN(3000)) * time.Millisecond)
				}
				c.fail(faults{})
				c.restoreSlices()
				pass(2 * time.Minute)
				c.check()
				c.take()
				pass(24 * time.Hour)
				c.stop()
				if lines := c.take(); len(lines) > count(lines, "deleted") {
					t.Errorf("idle agent: %v, want only deletions of empty slices", lines)
				}
			})
		})
	}
}

// step makes one random change.
func (c *chaos) step() {
	switch n := c.rand.IntN(20); {
	case n < 4:
		c.change()
	case n < 13 && len(c.planned) > 0:
		for range 1 + c.rand.IntN(5) {
			pod := c.planned[c.rand.IntN(len(c.planned))]
			c.states[pod] = []v1alpha1.ProbeState{succeeded, failed}[c.rand.IntN(2)]
			c.turn(pod, c.states[pod])
		}
	case n < 17:
		c.fail(c.randomFaults())
	case n < 18:
		c.restart()
	case n < 19:
		c.recreate()
	default:
		c.withServer(func() {
			delete(c.slices, fmt.Sprintf("node.%d", c.rand.IntN(5)))
		})
		c.restoreSlices()
	}
}

func (c *chaos) randomFaults() faults {
	slice := func() string { return fmt.Sprintf("node.%d", c.rand.IntN(5)) }
	switch c.rand.IntN(6) {
	case 0:
		return faults{down: true}
	case 1:
		return faults{denied: map[string]error{slice(): errDenied}}
	case 2:
		return faults{lost: map[string]bool{slice(): true, slice(): true}}
	case 3:
		return faults{delay: time.Duration(c.rand.IntN(15000)) * time.Millisecond}
	case 4:
		return faults{slow: map[string]time.Duration{
			slice(): time.Duration(c.rand.IntN(15000)) * time.Millisecond, slice(): time.Second,
		}}
	default:
		return faults{}
	}
}

// change replaces some planned pods.
func (c *chaos) change() {
	for range c.rand.IntN(4) {
		if len(c.planned) > 0 {
			at := c.rand.IntN(len(c.planned))
			key := identity.Key{ContainerKey: identity.ContainerKey{PodUID: uidOf(c.planned[at]), Name: "main"}, ID: keyOf("p").ID}
			delete(c.states, c.planned[at])
			c.planned = slices.Delete(c.planned, at, at+1)
			c.ProbeGone(key)
		}
	}
	added := []int{}
	for range c.rand.IntN(12) {
		if pod := c.rand.IntN(1000); !slices.Contains(c.planned, pod) {
			c.planned = append(c.planned, pod)
			added = append(added, pod)
		}
	}
	slices.Sort(c.planned)
	c.withServer(func() {
		c.edit(func(object *v1alpha1.NodePodProbe) {
			object.Generation++
			object.Spec.PodProbes = c.podProbes()
		})
	})
	for _, pod := range added {
		c.ProbeChanged(worker.Change{Key: identity.Key{ContainerKey: identity.ContainerKey{PodUID: uidOf(pod), Name: "main"}, ID: keyOf("p").ID}})
	}
	c.putInForce()
}

func (c *chaos) podProbes() []v1alpha1.PodProbe {
	all := manyPods(1000).Spec.PodProbes
	var pods []v1alpha1.PodProbe
	for _, pod := range c.planned {
		pods = append(pods, all[pod])
	}
	return pods
}

func uidOf(pod int) types.UID { return types.UID(fmt.Sprintf("uid-%03d", pod)) }

// restart replaces the agent. Like a worker, the new one starts from the restored states, and its
// first runs find what has changed.
func (c *chaos) restart() {
	c.stop()
	denied := c.denied
	c.harness = newHarnessWith(c.t, c.object, c.slices)
	c.fail(faults{denied: denied})
	c.putInForce()
	for key, state := range c.Restore(c.object) {
		c.ProbeChanged(worker.Change{Key: key, State: state})
	}
	for pod, state := range c.states {
		c.turn(pod, state)
	}
}

// recreate deletes the object and creates it again with another owner.
func (c *chaos) recreate() {
	c.Observe(nil)
	pass(time.Duration(c.rand.IntN(2000)) * time.Millisecond)
	c.withServer(func() {
		c.edit(func(object *v1alpha1.NodePodProbe) {
			object.UID += "+"
			object.Generation = 1
			object.Status = v1alpha1.NodePodProbeStatus{}
			object.OwnerReferences = manyPods(0).OwnerReferences
			object.OwnerReferences[0].UID = object.UID
		})
	})
	c.putInForce()
}

// restoreSlices requests the repair of the slices, as the manager does.
func (c *chaos) restoreSlices() {
	c.requests++
	c.withServer(func() {
		c.edit(func(object *v1alpha1.NodePodProbe) {
			metav1.SetMetaDataAnnotation(&object.ObjectMeta, restore, fmt.Sprint(c.requests))
		})
	})
	c.observeStored()
}

// check compares what is stored with the states.
func (c *chaos) check() {
	c.server.Lock()
	defer c.server.Unlock()
	want, got := map[string]v1alpha1.ProbeState{}, map[string]v1alpha1.ProbeState{}
	for pod, state := range c.states {
		want[string(uidOf(pod))] = state
	}
	for name, slice := range c.slices {
		if !cmp.Equal(slice.OwnerReferences, ownersOf(c.object)) {
			c.t.Errorf("%s has the owners %v", name, slice.OwnerReferences)
		}
		for _, pod := range slice.Pods {
			if _, planned := want[pod.UID]; !planned {
				continue
			}
			if _, twice := got[pod.UID]; twice {
				c.t.Errorf("%s is in two slices", pod.UID)
			}
			got[pod.UID] = ""
			for _, state := range pod.Probes {
				got[pod.UID] = state.State
			}
		}
	}
	expect.Equal(c.t, "stored states", want, got)
	if status := c.object.Status; status.ObservedGeneration != c.object.Generation || int(status.Pods) != len(c.planned) {
		c.t.Errorf("status %+v, want generation %d and %d pods", status, c.object.Generation, len(c.planned))
	}
}
