// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/probetest"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
)

// agent runs Seamark's worker with one probe in the same bubble as a bench.
type agent struct {
	*worker.Worker
	start  time.Time
	answer func(n int) (time.Duration, error)

	mu   sync.Mutex
	runs []string
}

// newAgent starts a worker that stops with the test. Without phase, its runs follow the first one.
func newAgent(t *testing.T, phase func(identity.Key) float64) *agent {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &agent{start: time.Now(), answer: func(int) (time.Duration, error) { return 0, nil }}
	a.Worker = worker.New(worker.Options{
		Prober: probing.Set{probing.HandlerExec: a}, Sink: sink{}, Observe: func(worker.Run) {},
		Phase: phase, Now: time.Now,
	})
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return a
}

// sink discards states.
type sink struct{}

func (sink) ProbeChanged(worker.Change) {}
func (sink) ProbeGone(identity.Key)     {}

func (a *agent) Probe(_ context.Context, target probing.Target) (probing.Outcome, error) {
	a.mu.Lock()
	a.runs = append(a.runs, fmt.Sprint(time.Since(a.start), " ", target.ContainerID))
	n := len(a.runs)
	a.mu.Unlock()
	took, err := a.answer(n)
	if took > 0 {
		<-time.After(took)
	}
	return probing.Outcome{Success: true}, err
}

func (a *agent) times() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.runs, ", ")
}

func (a *agent) plan(t *testing.T, spec *corev1.Probe) {
	t.Helper()
	a.SetPlan([]worker.Task{planned(t, spec)}, func() {})
	synctest.Wait()
}

func planned(t *testing.T, spec *corev1.Probe) worker.Task {
	t.Helper()
	target, err := probing.Parse(spec, "")
	expect.NoError(t, err)
	return worker.Task{
		Key:    identity.Key{ContainerKey: podContainer(), ID: identity.ID{Marker: "m", Probe: "p"}},
		Policy: thresholds.PolicyOf(spec), Handler: spec.ProbeHandler, Target: target,
	}
}

func podContainer() identity.ContainerKey {
	return identity.ContainerKey{PodUID: podUID, Name: container}
}

// containerRuns reports a container that starts now.
func (a *agent) containerRuns(id string) {
	a.ContainerChanged(podContainer(), thresholds.ContainerRun{ID: id, Running: true, StartedAt: time.Now()})
	a.ContainersSynced()
	synctest.Wait()
}

// TestTimes checks that both sides probe a running container at the same times.
func TestTimes(t *testing.T) {
	delay := func(seconds int32) func(*corev1.Probe) {
		return func(p *corev1.Probe) { p.InitialDelaySeconds = seconds }
	}
	cases := map[string]struct {
		edit func(*corev1.Probe)
		// took is the duration of each run, and err its error.
		took []time.Duration
		err  error
		want string
	}{
		"immediately, then every period": {edit: delay(0), want: "0s c1, 10s c1, 20s c1, 30s c1"},
		"other period":                   {edit: func(p *corev1.Probe) { p.PeriodSeconds = 12 }, want: "0s c1, 12s c1, 24s c1"},
		"delay of one period":            {edit: delay(10), want: "10s c1, 20s c1, 30s c1"},
		"delay of three periods":         {edit: delay(30), want: "30s c1"},
		"long runs":                      {edit: delay(0), took: []time.Duration{9 * time.Second, 9 * time.Second}, want: "0s c1, 10s c1, 20s c1, 30s c1"},
		"run longer than a period":       {edit: delay(0), took: []time.Duration{13 * time.Second}, want: "0s c1, 13s c1, 20s c1, 30s c1"},
		"run longer than two periods":    {edit: delay(0), took: []time.Duration{25 * time.Second}, want: "0s c1, 25s c1, 30s c1"},
		"two runs longer than a period":  {edit: delay(0), took: []time.Duration{13 * time.Second, 13 * time.Second}, want: "0s c1, 13s c1, 26s c1, 30s c1"},
		"three runs without a result": {
			edit: func(p *corev1.Probe) { p.PeriodSeconds = 20 }, err: errNoAnswer, want: "0s c1, 0s c1, 0s c1, 20s c1, 20s c1, 20s c1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec := execProbe(tc.edit)
				duration := func(n int) time.Duration {
					if n > len(tc.took) {
						return 0
					}
					return tc.took[n-1]
				}
				kubelet := newBench(t, readiness)
				kubelet.answer = func(_ string, n int) (time.Duration, string, error) { return duration(n), "", tc.err }
				kubelet.containerRuns("c1", true)
				pod := podWith(readiness, spec)
				kubelet.manager.AddPod(t.Context(), pod)

				seamark := newAgent(t, nil)
				seamark.answer = func(n int) (time.Duration, error) { return duration(n), tc.err }
				seamark.containerRuns("c1")
				seamark.plan(t, spec)

				pass(35 * time.Second)
				kubelet.manager.RemovePod(pod)
				synctest.Wait()
				expect.Equal(t, "kubelet and seamark", []string{tc.want, tc.want}, []string{kubelet.times(), seamark.times()})
			})
		})
	}
}

// TestSpreadAfterStart starts both sides with many probes that have run before. The first run of
// each is at its own time within one period: the kubelet's at random, Seamark's at its phase.
func TestSpreadAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 40
		kubelet := freshBench(readiness)
		kubelet.containerRuns("c1", true)
		pods := make([]*corev1.Pod, 0, many)
		for i := range many {
			pod := podWith(readiness, execProbe())
			pod.UID = types.UID(fmt.Sprint("uid-", i))
			kubelet.manager.AddPod(t.Context(), pod)
			pods = append(pods, pod)
		}
		agents := make([]*agent, 0, many)
		for i := range many {
			seamark := newAgent(t, func(identity.Key) float64 { return float64(i) / many })
			seamark.containerRuns("c1")
			task := planned(t, execProbe())
			task.Restored = thresholds.State{State: v1alpha1.ProbeSucceeded, LastProbe: time.Now(), LastTransition: time.Now()}
			seamark.SetPlan([]worker.Task{task}, func() {})
			synctest.Wait()
			agents = append(agents, seamark)
		}
		pass(5 * time.Second)
		if early := kubelet.count(); early == 0 || early == many {
			t.Errorf("%d of the kubelet's %d probes ran within half a period", early, many)
		}
		pass(5*time.Second - 1)
		if all := kubelet.count(); all != many {
			t.Errorf("%d of the kubelet's %d probes ran within a period", all, many)
		}
		for i, seamark := range agents {
			if want := fmt.Sprint(time.Duration(i)*10*time.Second/many, " c1"); seamark.times() != want {
				t.Errorf("Seamark's first run is at %s, want %s", seamark.times(), want)
			}
		}
		for _, pod := range pods {
			kubelet.manager.RemovePod(pod)
		}
		pass(10 * time.Second)
	})
}

// silence returns servers that never complete a response, by what is missing.
func silence() map[string]struct {
	spec  *corev1.Probe
	serve func(*testing.T) *peer
	// runs is how many times each side runs the probe. Each run takes one timeout.
	runs int
} {
	unresponsive := silent(func(t *testing.T) string {
		return probetest.Serve(t, func(conn net.Conn) { linger(conn, nil, 0) })
	})
	return map[string]struct {
		spec  *corev1.Probe
		serve func(*testing.T) *peer
		runs  int
	}{
		"HTTP, no connection": {httpGet(), unanswering(), 1},
		"HTTP, no reply":      {httpGet(), wire(linger), 1},
		"HTTP, no body":       {httpGet(), wire(then(say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), linger)), maxAttempts},
		"TLS, no handshake":   {httpGet(https), unresponsive, 1},
		"TCP, no connection":  {tcpSocket(), unanswering(), 1},
		"gRPC, no connection": {grpcService(""), unanswering(), 1},
		"gRPC, no settings":   {grpcService(""), unresponsive, 1},
		"gRPC, refused":       {grpcService(""), refusing(), 1},
		"gRPC, no answer":     {grpcService("hang"), healthServer(answers{}), 1},
	}
}

// TestTimeouts probes servers that never respond. Neither side may return before the timeout, to
// the millisecond, or take as long as another run would.
func TestTimeouts(t *testing.T) {
	const timeout = 3 * time.Second
	// Shorter than a timeout, so that one run too many takes too long.
	const slack = 2 * time.Second
	for name, tc := range silence() {
		for who, probe := range map[string]side{"kubelet": kubelet, "seamark": seamark} {
			t.Run(name+"/"+who, func(t *testing.T) {
				t.Parallel()
				server := tc.serve(t)
				start := time.Now()
				got := probe(t, at(tc.spec, server.port), server.ip, timeout)
				took := time.Since(start)
				if got.Conclusion == success {
					t.Errorf("got %+v, want no success", got)
				}
				if least := time.Duration(tc.runs) * timeout; took < least || took > least+slack {
					t.Errorf("the probe took %s, want %s", took, least)
				}
			})
		}
	}
}

// TestTimeoutEdge probes servers that respond shortly before and after the timeout. A response
// well before the timeout counts, and one well after it does not. In between, the result depends
// on the machine, for the kubelet too.
func TestTimeoutEdge(t *testing.T) {
	const timeout = 3 * time.Second
	// Seamark's prober closes the connection a second after the timeout. Less than that, so that a
	// missing timeout of its client is noticed.
	const around = 700 * time.Millisecond
	for _, off := range []time.Duration{-2000, -1500, -850, -100, -20, -5, -2, -1, 0, 1, 2, 5, 20, 100, 850, 1500, 2000} {
		for who, probe := range map[string]side{"kubelet": kubelet, "seamark": seamark} {
			t.Run(fmt.Sprintf("%+d/%s", off, who), func(t *testing.T) {
				t.Parallel()
				var mu sync.Mutex
				var answered time.Time
				server := wire(func(conn net.Conn, self *peer, n int) {
					<-time.After(timeout + off*time.Millisecond)
					mu.Lock()
					answered = time.Now()
					mu.Unlock()
					say(ok)(conn, self, n)
				})(t)
				start := time.Now()
				got := probe(t, at(httpGet(), server.port), server.ip, timeout)
				mu.Lock()
				defer mu.Unlock()
				inTime := !answered.IsZero() && answered.Sub(start) < timeout-around
				late := answered.IsZero() || answered.Sub(start) > timeout+around
				if inTime && got.Conclusion != success || late && got.Conclusion != failure {
					t.Errorf("got %+v for a response %s after the start", got, answered.Sub(start))
				}
			})
		}
	}
}
