// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
)

const restore = v1alpha1.RestoreReportsAnnotationKey

func TestReporter(t *testing.T) {
	cases := map[string]struct {
		play func(h *harness)
		want []string
	}{
		"plan in force": {
			play: func(h *harness) { h.putInForce() },
			want: []string{"0s status 1:"},
		},
		"transitions in quick succession": {
			play: func(h *harness) {
				h.putInForce()
				pass(time.Second)
				h.transition("p", succeeded, "ok")
				pass(10 * time.Millisecond)
				h.transition("q", failed, "no")
				pass(10 * time.Millisecond)
				h.transition("r", failed, "no")
				pass(time.Second)
			},
			want: []string{
				"0s status 1:",
				"1s wrote node.0: m#p=Succeeded(ok)", "1s event m#p Succeeded",
				"1.1s wrote node.0: m#p=Succeeded(ok) m#q=Failed(no) m#r=Failed(no)", "1.1s event m#q Failed", "1.1s event m#r Failed",
			},
		},
		"error": {
			play: func(h *harness) {
				h.putInForce()
				pass(time.Second)
				h.trouble("p", "not found")
				pass(2 * time.Hour)
				h.trouble("p", "")
				pass(time.Minute)
			},
			want: []string{
				"0s status 1:",
				"4s wrote node.0: m#p!CannotRun(not found)", "4s event m#p KruiseProbeError",
				"1h0m4s event m#p KruiseProbeError",
				"2h0m4s wrote node.0:",
			},
		},
		"transition during a slow write": {
			play: func(h *harness) {
				h.putInForce()
				pass(time.Second)
				h.withServer(func() { h.delay = time.Second })
				h.transition("p", succeeded, "ok")
				pass(500 * time.Millisecond)
				h.transition("p", failed, "no")
				pass(5 * time.Second)
			},
			want: []string{
				"0s status 1:",
				"2s wrote node.0: m#p=Succeeded(ok)", "2s event m#p Succeeded",
				"3s wrote node.0: m#p=Failed(no)", "3s event m#p Failed",
			},
		},
		"state changed and changed back": {
			play: func(h *harness) {
				h.transition("p", succeeded, "ok")
				h.putInForce()
				pass(time.Second)
				h.withServer(func() { h.down = true })
				h.transition("p", failed, "no")
				pass(50 * time.Millisecond)
				h.withServer(func() { h.down = false })
				h.transition("p", succeeded, "ok")
				pass(5 * time.Second)
				// The time of the second attempt is random.
				last := len(h.log) - 1
				_, h.log[last], _ = strings.Cut(h.log[last], " ")
			},
			want: []string{
				"0s wrote node.0: m#p=Succeeded(ok)", "0s event m#p Succeeded", "0s status 1:",
				"1s refused", "wrote node.0: m#p=Succeeded(ok)",
			},
		},
		"API server unavailable": {
			play: func(h *harness) {
				h.putInForce()
				pass(time.Second)
				h.withServer(func() { h.down = true })
				for i := range 30 {
					h.transition("p", []v1alpha1.ProbeState{succeeded, failed}[i%2], strconv.Itoa(i))
					pass(time.Second)
				}
				attempts := len(h.log)
				h.withServer(func() { h.log = nil })
				// The second list, which is due at 30 s at the earliest, fails too.
				if attempts < 6 || attempts > 18 {
					h.t.Errorf("%d attempts in 30 s, want 6 to 18", attempts)
				}
				h.withServer(func() { h.down = false })
				pass(7 * time.Second)
				if len(h.log) != 2 {
					h.t.Fatalf("log after the outage = %v, want two lines", h.log)
				}
				for i, line := range h.log {
					_, h.log[i], _ = strings.Cut(line, " ")
				}
			},
			want: []string{"wrote node.0: m#p=Failed(29)", "event m#p Failed"},
		},
		"object recreated": {
			play: func(h *harness) {
				h.transition("p", succeeded, "ok")
				h.putInForce()
				pass(time.Second)
				h.withServer(func() { h.object = nil })
				h.Observe(nil)
				h.transition("q", failed, "no")
				pass(time.Second)
				object := nodePlan()
				object.UID = "npp-2"
				h.withServer(func() { h.object = object })
				h.putInForce()
				pass(time.Second)
			},
			want: []string{
				"0s wrote node.0: m#p=Succeeded(ok)", "0s event m#p Succeeded", "0s status 1:",
				"2s wrote node.0: m#p=Succeeded(ok) m#q=Failed(no)", "2s event m#q Failed", "2s status 1:",
			},
		},
		"object missing for a moment": {
			play: func(h *harness) {
				h.putInForce()
				pass(time.Second)
				h.Observe(nil)
				h.transition("p", failed, "no")
				pass(time.Second)
				h.observeStored()
				pass(time.Second)
			},
			want: []string{"0s status 1:", "2s wrote node.0: m#p=Failed(no)", "2s event m#p Failed"},
		},
		"foreign edit of a slice": {
			play: func(h *harness) {
				h.transition("p", succeeded, "ok")
				h.putInForce()
				pass(time.Second)
				h.withServer(func() {
					h.slices["node.0"].Pods[0].Probes[0].State = failed
					h.edit(func(object *v1alpha1.NodePodProbe) {
						metav1.SetMetaDataAnnotation(&object.ObjectMeta, restore, "node.0/1")
					})
				})
				h.observeStored()
				pass(time.Second)
				h.observeStored()
				pass(time.Minute)
			},
			want: []string{
				"0s wrote node.0: m#p=Succeeded(ok)", "0s event m#p Succeeded", "0s status 1:",
				"1s wrote node.0: m#p=Succeeded(ok)",
			},
		},
		"slice deleted, and the same request again": {
			play: func(h *harness) {
				h.transition("p", succeeded, "ok")
				h.putInForce()
				pass(time.Second)
				for range 3 {
					h.withServer(func() {
						delete(h.slices, "node.0")
						h.edit(func(object *v1alpha1.NodePodProbe) {
							metav1.SetMetaDataAnnotation(&object.ObjectMeta, restore, "node.0/1")
						})
					})
					h.observeStored()
					pass(time.Second)
				}
				h.transition("p", failed, "no")
				pass(time.Second)
			},
			want: []string{
				"0s wrote node.0: m#p=Succeeded(ok)", "0s event m#p Succeeded", "0s status 1:",
				"1s wrote node.0: m#p=Succeeded(ok)",
				"4s recreated node.0: m#p=Failed(no)", "4s event m#p Failed",
			},
		},
		"foreign edit of the status": {
			play: func(h *harness) {
				h.putInForce()
				pass(time.Second)
				h.observeStored()
				h.withServer(func() {
					h.edit(func(object *v1alpha1.NodePodProbe) { object.Status = statusOf("m#p", failed) })
				})
				h.observeStored()
				pass(2 * time.Second)
				h.observeStored()
				h.transition("p", succeeded, "ok")
				pass(time.Minute)
			},
			want: []string{
				"0s status 1:", "2s status 1:", "3s wrote node.0: m#p=Succeeded(ok)", "3s event m#p Succeeded",
			},
		},
		"older version of the object": {
			play: func(h *harness) {
				before := h.object
				h.putInForce()
				h.transition("p", succeeded, "ok")
				pass(time.Second)
				h.Observe(before)
				pass(time.Minute)
			},
			want: []string{"0s wrote node.0: m#p=Succeeded(ok)", "0s event m#p Succeeded", "0s status 1:"},
		},
		"new generation": {
			play: func(h *harness) {
				h.transition("p", succeeded, "ok")
				h.putInForce()
				pass(time.Second)
				h.withServer(func() {
					h.edit(func(object *v1alpha1.NodePodProbe) {
						object.Generation = 2
						object.Spec.PodProbes[0].Probes = object.Spec.PodProbes[0].Probes[1:]
					})
				})
				h.putInForce()
				h.ProbeGone(keyOf("p"))
				pass(time.Second)
			},
			want: []string{"0s wrote node.0: m#p=Succeeded(ok)", "0s event m#p Succeeded", "0s status 1:", "1s wrote node.0:", "2s status 2:"},
		},
		"messages that are reported at once after an edit": {
			play: func(h *harness) {
				h.transition("p", succeeded, "0")
				h.putInForce()
				since := time.Now()
				for i := range 7 {
					pass(time.Second)
					if i == 4 {
						h.withServer(func() {
							h.edit(func(object *v1alpha1.NodePodProbe) {
								object.Generation = 2
								object.Spec.PodProbes[0].Probes[0].MessageUpdates = v1alpha1.MessageUpdatesImmediate
							})
						})
						h.putInForce()
						pass(time.Second)
					}
					h.say(strconv.Itoa(i+1), since)
				}
				pass(time.Minute)
			},
			want: []string{
				"0s wrote node.0: m#p=Succeeded(0)", "0s event m#p Succeeded", "0s status 1:",
				"1s wrote node.0: m#p=Succeeded(1)", "2s wrote node.0: m#p=Succeeded(2)", "3s wrote node.0: m#p=Succeeded(3)",
				"5s wrote node.0: m#p=Succeeded(4)", "6s wrote node.0: m#p=Succeeded(5)", "6s status 2:",
				"7s wrote node.0: m#p=Succeeded(6)", "8s wrote node.0: m#p=Succeeded(7)",
			},
		},
		"transition before the agent stops": {
			play: func(h *harness) {
				h.putInForce()
				pass(time.Second)
				h.transition("p", succeeded, "ok")
				synctest.Wait()
				h.transition("p", failed, "no")
				synctest.Wait()
			},
			want: []string{
				"0s status 1:", "1s wrote node.0: m#p=Succeeded(ok)", "1s event m#p Succeeded",
				"1s wrote node.0: m#p=Failed(no)", "1s event m#p Failed",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, nodePlan())
				tc.play(h)
				synctest.Wait()
				h.stop()
				expect.Equal(t, "log", tc.want, statusLast(h.log))
			})
		})
	}
}

// statusLast moves the writes of the status after other lines of the same time. Those writes do not
// wait for each other.
func statusLast(lines []string) []string {
	isStatus := func(line string) bool { return strings.Contains(line, " status ") }
	for i := range lines {
		for j := i; j > 0 && isStatus(lines[j-1]) && !isStatus(lines[j]); j-- {
			before, _, _ := strings.Cut(lines[j-1], " ")
			if at, _, _ := strings.Cut(lines[j], " "); at != before {
				break
			}
			lines[j-1], lines[j] = lines[j], lines[j-1]
		}
	}
	return lines
}

// TestRestartCausesNoWrite restarts an agent whose states are equal to the reported ones.
func TestRestartCausesNoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := newHarness(t, nodePlan())
		before.transition("p", succeeded, "ok")
		before.putInForce()
		pass(time.Second)
		before.observeStored()
		before.stop()
		if lines := before.take(); len(lines) < 3 {
			t.Fatalf("log before the restart = %v, want a slice, an event and the status", lines)
		}

		after := newHarnessWith(t, before.object, before.slices)
		after.putInForce()
		for key, state := range after.Restore(before.object) {
			after.ProbeChanged(worker.Change{Key: key, State: state})
		}
		pass(3 * time.Hour)
		after.rerun(succeeded, before.start)
		pass(time.Minute)
		after.stop()
		if lines := after.take(); len(lines) > 0 {
			t.Errorf("log after the restart = %v, want none", lines)
		}
	})
}

// TestDecisionsOnProblemsAreLimited checks that problems that change with every run wait for a
// common decision.
func TestDecisionsOnProblemsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, nodePlan())
		h.putInForce()
		pass(time.Second)
		start := time.Now()
		for i := range 9 {
			h.trouble("p", strconv.Itoa(i))
			synctest.Wait()
			if next := h.next(); !next.Equal(start.Add(report.ErrorDelay)) {
				t.Fatalf("problem %d: next decision after %s, want %s", i, next.Sub(start), report.ErrorDelay)
			}
			pass(h.interval / 10)
		}
		h.stop()
	})
}
