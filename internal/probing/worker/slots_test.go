// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/probers"
	"github.com/seamark-dev/seamark/internal/probing/slots"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

// answer is how long a probe takes that does not hang.
const answer = 5 * time.Millisecond

// tenants is a prober, and the sink and the observer of the honest namespace.
type tenants struct {
	t     *testing.T
	start time.Time
	// runs counts the runs that answered.
	runs map[identity.Key]int
}

// Probe takes as long as the address says.
func (*tenants) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	took := answer
	if target.TCP.Address == "hangs" {
		took = target.Timeout
	}
	select {
	case <-time.After(took):
		return probing.Outcome{Success: true}, nil
	case <-ctx.Done():
		return probing.Outcome{}, ctx.Err()
	}
}

func (tt *tenants) ProbeChanged(change worker.Change) {
	if problem := change.State.Problem; problem.Reason != "" && change.Pod.Namespace == "honest" {
		tt.t.Errorf("probe %s has the problem %+v", change.Key, problem)
	}
}

func (*tenants) ProbeGone(identity.Key) {}

// observe checks that no run waited. At the start, all probes run at once, and the last ones wait
// for less than a fifth of their period.
func (tt *tenants) observe(run worker.Run) {
	if run.Pod.Namespace != "honest" {
		return
	}
	tt.runs[run.Key]++
	wait := run.Duration - answer
	if run.Duration >= time.Second {
		wait = run.Duration - time.Second
	}
	began := time.Since(tt.start) - run.Duration
	if wait > 200*time.Millisecond || wait > 0 && began > 0 {
		tt.t.Errorf("probe %s waited %s at %s", run.Key, wait, began)
	}
}

// planOf returns network probes of pods, with a period of one second.
func planOf(namespace string, pods, probes int, timeout time.Duration, address func(pod, i int) string) (tasks []worker.Task) {
	for pod := range pods {
		name := types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(pod)}
		for i := range probes {
			tasks = append(tasks, worker.Task{
				Pod: name,
				Key: identity.Key{
					ContainerKey: identity.ContainerKey{PodUID: types.UID(name.String()), Name: "main"},
					ID:           identity.ID{Marker: "m", Probe: fmt.Sprint(i)},
				},
				Policy: thresholds.Policy{Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1},
				Target: probing.Target{Handler: probing.HandlerTCP, Timeout: timeout, TCP: &probing.TCP{Address: address(pod, i)}},
			})
		}
	}
	return tasks
}

// TestHangingProbesDelayNobodyElse runs the probes of a full node. The probes that answer are not
// delayed, neither by those of another namespace that all hang, nor by some that hang in the same
// namespace and pods.
func TestHangingProbesDelayNobodyElse(t *testing.T) {
	answers := func(int, int) string { return "answers" }
	hangs := func(int, int) string { return "hangs" }
	some := func(pod, i int) string {
		if i == 0 && pod%3 == 0 {
			return "hangs"
		}
		return "answers"
	}
	cases := map[string][]worker.Task{
		"full node, some hang": planOf("honest", 250, 8, time.Second, some),
		"another namespace hangs for five minutes": append(
			planOf("hostile", 50, 32, 5*time.Minute, hangs), planOf("honest", 50, 8, time.Second, answers)...),
		"one pod of another namespace hangs": append(
			planOf("hostile", 1, 1000, 5*time.Minute, hangs), planOf("honest", 200, 8, time.Second, some)...),
	}
	for name, tasks := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const seconds = 20
				tt := &tenants{t: t, start: time.Now(), runs: map[identity.Key]int{}}
				gate := slots.New(probers.NetworkSlots, nil)
				stop := startWorker(t.Context(), worker.Options{
					Prober: gate.Limit(tt), Sink: tt, Observe: tt.observe, Phase: worker.PhaseOf, Now: time.Now,
				}, tasks)
				pass(seconds * time.Second)
				stop()
				for i := range tasks {
					task := &tasks[i]
					// While a probe moves to its phase, two runs are up to one and a half periods apart.
					if got := tt.runs[task.Key]; task.Pod.Namespace == "honest" && got < seconds-4 {
						t.Errorf("probe %s ran %d times in %d periods", task.Key, got, seconds)
					}
				}
			})
		})
	}
}
