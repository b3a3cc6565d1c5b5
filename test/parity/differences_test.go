// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	kubehttp "k8s.io/kubernetes/pkg/probe/http"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/expect"
)

// These tests cover the differences in docs/judging.md: what the kubelet does, and what Seamark
// does instead. If one fails, a row of that table is wrong.

// TestFreshContainer: the kubelet assumes a result for a container that it has not probed yet,
// which depends on the kind of probe. Seamark has the state Unknown, or none before the first
// result.
func TestFreshContainer(t *testing.T) {
	cases := map[kind]results.Result{readiness: results.Failure, liveness: results.Success, startup: results.Unknown}
	for k, want := range cases {
		t.Run(string(k), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, k)
				b.answers(errNoAnswer)
				b.containerRuns("c1", k != startup)
				pod := podWith(k, execProbe())
				b.manager.AddPod(t.Context(), pod)
				synctest.Wait()
				b.manager.RemovePod(pod)
				expect.Equal(t, "the kubelet assumes", []results.Result{want}, b.initial)
			})
		})
	}
	evaluator := thresholds.New(thresholds.PolicyOf(execProbe()), thresholds.Phase{})
	evaluator.ContainerChanged(time.Now(), thresholds.ContainerRun{ID: "c1", Running: true})
	if got := evaluator.State().State; got != "" {
		t.Errorf("Seamark's state is %q before any result, want none", got)
	}
	evaluator.Outcome(time.Now(), probing.Outcome{Success: true})
	evaluator.ContainerChanged(time.Now(), thresholds.ContainerRun{ID: "c2", Running: true})
	expect.Equal(t, "Seamark's state of a new container", "Unknown", evaluator.State().State)
}

// TestStreakAcrossRestart: the kubelet counts two failures of the old container and one of the
// new container as three in a row. Seamark counts one.
func TestStreakAcrossRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := execProbe(func(p *corev1.Probe) { p.FailureThreshold = 3 })
		b := newBench(t, readiness)
		b.answers(exited())
		b.containerRuns("c1", true)
		pod := podWith(readiness, spec)
		b.manager.AddPod(t.Context(), pod)
		evaluator := thresholds.New(thresholds.PolicyOf(spec), thresholds.Phase{})
		evaluator.ContainerChanged(time.Now(), thresholds.ContainerRun{ID: "c1", Running: true, StartedAt: time.Now()})
		pass(15 * time.Second)
		for range b.count() {
			evaluator.Outcome(time.Now(), probing.Outcome{})
		}
		b.containerRuns("c2", true)
		evaluator.ContainerChanged(time.Now(), thresholds.ContainerRun{ID: "c2", Running: true, StartedAt: time.Now()})
		pass(10 * time.Second)
		evaluator.Outcome(time.Now(), probing.Outcome{})
		b.manager.RemovePod(pod)
		if theirs, ours := b.state("c2"), evaluator.State().State; theirs != "Failed" || ours != "" {
			t.Errorf("after %s the kubelet's state is %q, want Failed, and Seamark's is %q, want none", b.times(), theirs, ours)
		}
	})
}

// TestContainerGone: the kubelet keeps the result of a container that the pod's status no longer
// contains. Seamark's state is Failed.
func TestContainerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, readiness)
		b.containerRuns("c1", true)
		pod := podWith(readiness, execProbe())
		b.manager.AddPod(t.Context(), pod)
		evaluator := thresholds.New(thresholds.PolicyOf(execProbe()), thresholds.Phase{})
		evaluator.ContainerChanged(time.Now(), thresholds.ContainerRun{ID: "c1", Running: true, StartedAt: time.Now()})
		evaluator.Outcome(time.Now(), probing.Outcome{Success: true})
		synctest.Wait()
		b.set()
		evaluator.ContainerGone(time.Now())
		pass(30 * time.Second)
		b.manager.RemovePod(pod)
		if theirs, ours := b.state("c1"), evaluator.State().State; theirs != "Succeeded" || ours != "Failed" {
			t.Errorf("the kubelet's state is %q, want Succeeded, and Seamark's is %q, want Failed", theirs, ours)
		}
	})
}

// sideBySide runs one probe on both sides and returns when each ran it. happen changes both
// sides and advances the time.
func sideBySide(t *testing.T, spec *corev1.Probe, happen func(b *bench, a *agent, pod *corev1.Pod)) (theirs, ours string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, readiness)
		b.containerRuns("c1", true)
		pod := podWith(readiness, spec)
		b.manager.AddPod(t.Context(), pod)
		a := newAgent(t, nil)
		a.containerRuns("c1")
		a.plan(t, spec)
		happen(b, a, pod)
		b.manager.RemovePod(pod)
		synctest.Wait()
		theirs, ours = b.times(), a.times()
	})
	return theirs, ours
}

// TestRunTimesThatDiffer covers what makes the two sides run their probes at different times.
func TestRunTimesThatDiffer(t *testing.T) {
	cases := map[string]struct {
		spec         *corev1.Probe
		happen       func(b *bench, a *agent, pod *corev1.Pod)
		theirs, ours string
	}{
		"new container is probed at once, not at the next tick": {
			spec: execProbe(),
			happen: func(b *bench, a *agent, _ *corev1.Pod) {
				pass(13 * time.Second)
				b.containerRuns("c2", true)
				a.containerRuns("c2")
				pass(12 * time.Second)
			},
			theirs: "0s c1, 10s c1, 20s c2", ours: "0s c1, 10s c1, 13s c2, 23s c2",
		},
		"first run after the initial delay, not at the next tick": {
			spec:   execProbe(func(p *corev1.Probe) { p.InitialDelaySeconds = 13 }),
			happen: func(*bench, *agent, *corev1.Pod) { pass(35 * time.Second) },
			theirs: "20s c1, 30s c1", ours: "13s c1, 23s c1, 33s c1",
		},
		"status update of a pod that is not ready": {
			spec: execProbe(),
			happen: func(b *bench, _ *agent, pod *corev1.Pod) {
				b.answers(exited())
				pass(13 * time.Second)
				status, _ := provider{bench: b}.GetPodStatus(pod.UID)
				b.manager.UpdatePodStatus(t.Context(), pod, &status)
				pass(2 * time.Second)
			},
			theirs: "0s c1, 10s c1, 13s c1", ours: "0s c1, 10s c1",
		},
		"edit takes effect at once, not in the next pod": {
			spec: execProbe(),
			happen: func(b *bench, a *agent, _ *corev1.Pod) {
				edited := execProbe(func(p *corev1.Probe) { p.PeriodSeconds = 3 })
				pass(12 * time.Second)
				b.manager.AddPod(t.Context(), podWith(readiness, edited))
				a.plan(t, edited)
				pass(5 * time.Second)
			},
			theirs: "0s c1, 10s c1", ours: "0s c1, 10s c1, 12s c1, 15s c1",
		},
		"container that has not passed its startup probe": {
			spec: execProbe(),
			happen: func(b *bench, a *agent, _ *corev1.Pod) {
				pass(time.Second)
				b.containerRuns("c2", false)
				a.containerRuns("c2")
				pass(15 * time.Second)
			},
			theirs: "0s c1", ours: "0s c1, 1s c2, 11s c2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			theirs, ours := sideBySide(t, tc.spec, tc.happen)
			expect.Equal(t, "kubelet and Seamark", []string{tc.theirs, tc.ours}, []string{theirs, ours})
		})
	}
}

// TestHold: the kubelet's liveness and startup probes pause after their result until a new
// container starts. A marker's probe continues, because it does not restart containers.
func TestHold(t *testing.T) {
	for k, err := range map[kind]error{liveness: exited(), startup: nil} {
		t.Run(string(k), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, k)
				b.answers(err)
				b.containerRuns("c1", k != startup)
				pod := podWith(k, execProbe())
				b.manager.AddPod(t.Context(), pod)
				a := newAgent(t, nil)
				a.containerRuns("c1")
				a.plan(t, execProbe())
				pass(25 * time.Second)
				b.manager.RemovePod(pod)
				synctest.Wait()
				if b.times() != "0s c1" || a.times() != "0s c1, 10s c1, 20s c1" {
					t.Errorf("the kubelet ran at %s, Seamark at %s", b.times(), a.times())
				}
			})
		})
	}
}

// TestCommandAsWritten: the kubelet replaces $(NAME) in a command with the container's plain
// variables, and $$ with $. Seamark runs the command as written.
func TestCommandAsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := execProbe()
		spec.Exec.Command = []string{"idle", "$(MODE)", "$$(MODE)", "$(OTHER)"}
		b := newBench(t, readiness)
		b.containerRuns("c1", true)
		pod := podWith(readiness, spec)
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: "fast"}}
		b.manager.AddPod(t.Context(), pod)
		synctest.Wait()
		b.manager.RemovePod(pod)
		target, err := probing.Parse(spec, "")
		expect.NoError(t, err)
		want := [][]string{{"idle", "fast", "$(MODE)", "$(OTHER)"}, {"idle", "$(MODE)", "$$(MODE)", "$(OTHER)"}}
		expect.Equal(t, "kubelet and Seamark", want, [][]string{b.command, target.Exec.Command})
	})
}

// TestSwitchOfProtocols: the kubelet waits forever for a server that switches the protocol and
// then sends nothing. Seamark gives up without a result.
func TestSwitchOfProtocols(t *testing.T) {
	const timeout = 300 * time.Millisecond
	reply := "HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
	release := make(chan struct{})
	hold := func(net.Conn, *peer, int) { <-release }

	theirs := wire(then(say(reply), hold))(t)
	request, err := kubehttp.NewRequestForHTTPGetAction(at(httpGet(), theirs.port).HTTPGet, &corev1.Container{}, theirs.ip, "probe")
	expect.NoError(t, err)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _, _ = kubehttp.New(false).Probe(request, timeout)
	}()
	ours := wire(then(say(reply), hold))(t)
	if got := seamark(t, at(httpGet(), ours.port), ours.ip, timeout); got.Conclusion != nothing {
		t.Errorf("Seamark returns %+v, want no result", got)
	}
	select {
	case <-returned:
		t.Error("the kubelet's probe returned: the difference no longer exists")
	default:
	}
	close(release)
	<-returned
}

// TestRejectedProbes covers probes that never work in the kubelet, or that it sends to other
// hosts. Seamark does not include them in a plan.
func TestRejectedProbes(t *testing.T) {
	cases := map[string]struct {
		spec *corev1.Probe
		want conclusion
		says string
	}{
		"path with a scheme and no host": {httpGet(path("mailto:x")), failure, "httpGet.path"},
		"colon before the first slash":   {httpGet(path("a:b/c%")), failure, "httpGet.path"},
		"host":                           {httpGet(func(a *corev1.HTTPGetAction) { a.Host = "127.0.0.1" }), success, "httpGet.host"},
		"lower-case scheme":              {httpGet(func(a *corev1.HTTPGetAction) { a.Scheme = "http" }), success, "httpGet.scheme"},
		"unknown scheme":                 {httpGet(func(a *corev1.HTTPGetAction) { a.Scheme = "FTP" }), failure, "httpGet.scheme"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := wire(say(ok))(t)
			theirs := kubelet(t, at(tc.spec, server.port), server.ip, ample)
			ours := seamark(t, at(tc.spec, server.port), server.ip, ample)
			if theirs.Conclusion != tc.want || ours.Conclusion != rejected || !strings.Contains(ours.Message, tc.says) {
				t.Errorf("the kubelet returns %+v, want %s; Seamark returns %+v, want a rejection of %s", theirs, tc.want, ours, tc.says)
			}
		})
	}
}
