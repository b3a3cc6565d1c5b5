// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/report"
	"github.com/seamark-dev/seamark/internal/worker"
)

func TestReporter(t *testing.T) {
	cases := map[string]struct {
		play func(d *desk)
		want []string
	}{
		"the plan is acknowledged at once": {
			play: func(d *desk) { d.put() },
			want: []string{"0s wrote 1:"},
		},
		"the first news at once, what follows together": {
			play: func(d *desk) {
				d.put()
				pass(time.Second)
				d.tell("p", succeeded, "ok")
				pass(10 * time.Millisecond)
				d.tell("q", failed, "no")
				pass(10 * time.Millisecond)
				d.tell("r", failed, "no")
				pass(time.Second)
			},
			want: []string{
				"0s wrote 1:",
				"1s wrote 1: m#p=Succeeded(ok)", "1s event m#p Succeeded",
				"1.1s wrote 1: m#p=Succeeded(ok) m#q=Failed(no) m#r=Failed(no)", "1.1s event m#q Failed", "1.1s event m#r Failed",
			},
		},
		"with a longer interval, the first news after a pause at once, what follows after it": {
			play: func(d *desk) {
				d.interval = 5 * time.Second
				d.put()
				pass(10 * time.Second)
				d.tell("p", succeeded, "ok")
				pass(time.Second)
				d.tell("q", failed, "no")
				pass(time.Second)
				d.tell("r", failed, "no")
				pass(10 * time.Second)
			},
			want: []string{
				"0s wrote 1:",
				"10s wrote 1: m#p=Succeeded(ok)", "10s event m#p Succeeded",
				"15s wrote 1: m#p=Succeeded(ok) m#q=Failed(no) m#r=Failed(no)", "15s event m#q Failed", "15s event m#r Failed",
			},
		},
		"news during a slow write go into the next": {
			play: func(d *desk) {
				d.put()
				pass(time.Second)
				d.world(func() { d.delay = time.Second })
				d.tell("p", succeeded, "ok")
				pass(500 * time.Millisecond)
				d.tell("p", failed, "no")
				pass(5 * time.Second)
			},
			want: []string{
				"0s wrote 1:",
				"2s wrote 1: m#p=Succeeded(ok)", "2s event m#p Succeeded",
				"3s wrote 1: m#p=Failed(no)", "3s event m#p Failed",
			},
		},
		"a state that has come and gone moves its time, and is no event": {
			play: func(d *desk) {
				d.put()
				d.tell("p", succeeded, "ok")
				pass(time.Second)
				d.world(func() { d.away = true })
				d.tell("p", failed, "no")
				pass(50 * time.Millisecond)
				d.world(func() { d.away = false })
				d.tell("p", succeeded, "ok")
				pass(5 * time.Second)
				// The time of the second try has a random part.
				last := len(d.log) - 1
				_, d.log[last], _ = strings.Cut(d.log[last], " ")
			},
			want: []string{
				"0s wrote 1: m#p=Succeeded(ok)", "0s event m#p Succeeded",
				"1s refused", "wrote 1: m#p=Succeeded(ok)",
			},
		},
		"while the API server is away it tries on, and then the newest is written": {
			play: func(d *desk) {
				d.put()
				pass(time.Second)
				d.world(func() { d.away = true })
				for i := range 30 {
					d.tell("p", []v1alpha1.ProbeState{succeeded, failed}[i%2], strconv.Itoa(i))
					pass(time.Second)
				}
				tries := len(d.log)
				d.world(func() { d.log = nil })
				if tries < 6 || tries > 14 {
					d.t.Errorf("%d tries in 30 s", tries)
				}
				d.world(func() { d.away = false })
				pass(7 * time.Second)
				if len(d.log) != 2 {
					d.t.Fatalf("after the outage: %v", d.log)
				}
				for i, line := range d.log {
					_, d.log[i], _ = strings.Cut(line, " ")
				}
			},
			want: []string{"wrote 1: m#p=Failed(29)", "event m#p Failed"},
		},
		"an object made anew gets all states, and no events": {
			play: func(d *desk) {
				d.put()
				d.tell("p", succeeded, "ok")
				pass(time.Second)
				d.world(func() { d.object = nil })
				d.Observe(nil)
				d.tell("q", failed, "no")
				pass(time.Second)
				object := nodePlan()
				object.UID = "npp-2"
				d.world(func() { d.object = object })
				d.put()
				pass(time.Second)
			},
			want: []string{
				"0s wrote 1: m#p=Succeeded(ok)", "0s event m#p Succeeded",
				"2s wrote 1: m#p=Succeeded(ok) m#q=Failed(no)", "2s event m#q Failed",
			},
		},
		"an object that was out of sight for a moment": {
			play: func(d *desk) {
				d.put()
				pass(time.Second)
				d.Observe(nil)
				d.tell("p", failed, "no")
				pass(time.Second)
				d.see()
				pass(time.Second)
			},
			want: []string{"0s wrote 1:", "2s wrote 1: m#p=Failed(no)", "2s event m#p Failed"},
		},
		"a foreign edit is repaired, and is no event": {
			play: func(d *desk) {
				d.put()
				d.tell("p", succeeded, "ok")
				pass(time.Second)
				d.see()
				d.world(func() {
					d.edit(func(object *v1alpha1.NodePodProbe) { object.Status.PodProbeStatuses[0].ProbeStates[0].State = failed })
				})
				d.see()
				pass(2 * time.Second)
				d.see()
				pass(time.Minute)
			},
			want: []string{
				"0s wrote 1: m#p=Succeeded(ok)", "0s event m#p Succeeded",
				"2s wrote 1: m#p=Succeeded(ok)",
			},
		},
		"an older sight of the object is no edit": {
			play: func(d *desk) {
				d.put()
				before := d.object
				d.tell("p", succeeded, "ok")
				pass(time.Second)
				d.Observe(before)
				pass(time.Minute)
			},
			want: []string{"0s wrote 1: m#p=Succeeded(ok)", "0s event m#p Succeeded"},
		},
		"a new generation is acknowledged": {
			play: func(d *desk) {
				d.put()
				d.tell("p", succeeded, "ok")
				pass(time.Second)
				d.world(func() {
					d.edit(func(object *v1alpha1.NodePodProbe) {
						object.Generation = 2
						object.Spec.PodProbes[0].Probes = object.Spec.PodProbes[0].Probes[1:]
					})
				})
				d.put()
				d.ProbeGone(keyOf("p"))
				pass(time.Second)
			},
			want: []string{"0s wrote 1: m#p=Succeeded(ok)", "0s event m#p Succeeded", "1s wrote 2:"},
		},
		"what is left is written at the end": {
			play: func(d *desk) {
				d.put()
				pass(time.Second)
				d.tell("p", succeeded, "ok")
				synctest.Wait()
				d.tell("p", failed, "no")
				synctest.Wait()
			},
			want: []string{
				"0s wrote 1:", "1s wrote 1: m#p=Succeeded(ok)", "1s event m#p Succeeded",
				"1s wrote 1: m#p=Failed(no)", "1s event m#p Failed",
			},
		},
		"a quiet day is silent": {
			play: func(d *desk) {
				d.put()
				d.tell("p", succeeded, "ok")
				for range 60 {
					pass(time.Second)
					d.rerun(succeeded, d.start)
				}
			},
			want: []string{"0s wrote 1: m#p=Succeeded(ok)", "0s event m#p Succeeded"},
		},
		"the time of the probe is refreshed": {
			play: func(d *desk) {
				d.put()
				d.tell("p", succeeded, "ok")
				for range 130 {
					pass(10 * time.Second)
					d.rerun(succeeded, d.start)
				}
				if len(d.log) != 3 {
					d.t.Errorf("in 20 minutes: %v", d.log)
				}
				d.world(func() { d.log = nil })
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, nodePlan())
				tc.play(d)
				synctest.Wait()
				d.stop()
				if diff := cmp.Diff(tc.want, d.log); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A restarted agent that finds its states as they were reported writes nothing.
func TestRestartIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := newDesk(t, nodePlan())
		before.put()
		before.tell("p", succeeded, "ok")
		pass(time.Second)
		before.stop()
		if before.object.ResourceVersion == "100" {
			t.Fatal("nothing was written before the restart")
		}

		after := newDesk(t, before.object)
		after.put()
		for key, state := range report.Restore(planOf(before.object), before.object.Status) {
			after.ProbeChanged(worker.Change{Key: key, State: state})
		}
		pass(time.Minute)
		after.rerun(succeeded, before.start)
		pass(time.Minute)
		after.stop()
		if len(after.log) > 0 {
			t.Errorf("a restart wrote: %v", after.log)
		}
	})
}
