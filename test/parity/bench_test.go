// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/prober"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	"k8s.io/kubernetes/pkg/kubelet/status"
	utilexec "k8s.io/utils/exec"
)

// kind is one of the kubelet's three kinds of probes.
type kind string

const (
	readiness kind = "readiness"
	liveness  kind = "liveness"
	startup   kind = "startup"
)

const (
	podUID    = types.UID("uid")
	container = "main"
)

// bench runs the kubelet's own probe manager in a synctest bubble, with a pod's status and a
// runtime that the test controls.
type bench struct {
	manager prober.Manager
	start   time.Time
	verdicts

	mu      sync.Mutex
	status  corev1.PodStatus
	answer  func(id string, n int) (time.Duration, string, error)
	runs    []string
	command []string
}

// newBench returns a manager that started long ago, so that it does not spread first probes.
func newBench(t *testing.T, k kind) *bench {
	t.Helper()
	b := freshBench(k)
	pass(24 * time.Hour)
	b.start = time.Now()
	return b
}

// freshBench returns a manager that starts now. The bench keeps the results of one kind.
func freshBench(k kind) *bench {
	b := &bench{start: time.Now(), verdicts: verdicts{states: map[string]results.Result{}}}
	b.answer = func(string, int) (time.Duration, string, error) { return 0, "", nil }
	kept := map[kind]results.Manager{readiness: results.NewManager(), liveness: results.NewManager(), startup: results.NewManager()}
	kept[k] = &b.verdicts
	b.manager = prober.NewManager(provider{bench: b}, kept[liveness], kept[readiness], kept[startup], b, &record.FakeRecorder{})
	return b
}

// pass advances the time in a bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// provider implements the methods of the kubelet's status manager that probes use.
type provider struct {
	status.Manager

	bench *bench
}

func (p provider) GetPodStatus(types.UID) (corev1.PodStatus, bool) {
	p.bench.mu.Lock()
	defer p.bench.mu.Unlock()
	return *p.bench.status.DeepCopy(), true
}

// RunInContainer is the kubelet's call of the runtime. It records when it was called.
func (b *bench) RunInContainer(_ context.Context, id kubecontainer.ContainerID, command []string, _ time.Duration) ([]byte, error) {
	b.mu.Lock()
	b.runs = append(b.runs, fmt.Sprint(time.Since(b.start), " ", id.ID))
	b.command = command
	took, output, err := b.answer(id.ID, len(b.runs))
	b.mu.Unlock()
	if took > 0 {
		<-time.After(took)
	}
	return []byte(output), err
}

// count returns how often the runtime was called.
func (b *bench) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.runs)
}

func (b *bench) times() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.runs, ", ")
}

// answers sets the result of the runtime.
func (b *bench) answers(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = func(string, int) (time.Duration, string, error) { return 0, "", err }
}

// exited returns the error of a command that failed.
func exited() error { return utilexec.CodeExitError{Err: errNoAnswer, Code: 1} }

// containerRuns sets the pod's container to running since now.
func (b *bench) containerRuns(id string, started bool) {
	b.set(corev1.ContainerStatus{
		Name: container, ContainerID: "test://" + id, Started: &started,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	})
}

// containerEnds sets the pod's container to exited with code 1.
func (b *bench) containerEnds(id string) {
	b.set(corev1.ContainerStatus{
		Name: container, ContainerID: "test://" + id, Started: new(false),
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
	})
}

func (b *bench) set(statuses ...corev1.ContainerStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: statuses}
}

// podWith returns a pod whose container has one probe.
func podWith(k kind, probe *corev1.Probe) *corev1.Pod {
	c := corev1.Container{Name: container}
	switch k {
	case readiness:
		c.ReadinessProbe = probe
	case liveness:
		c.LivenessProbe = probe
	case startup:
		c.StartupProbe = probe
	}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "ns", UID: podUID},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{c}},
	}
}

func execProbe(edits ...func(*corev1.Probe)) *corev1.Probe {
	p := &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"idle"}}},
		TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 1,
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

// verdicts is the kubelet's cache of results. The first result of a container is the value that
// the worker assumes before the first run: it is kept separately and counts as Unknown.
type verdicts struct {
	mu      sync.Mutex
	states  map[string]results.Result
	initial []results.Result
}

var _ results.Manager = (*verdicts)(nil)

func (v *verdicts) Get(id kubecontainer.ContainerID) (results.Result, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	result, found := v.states[id.ID]
	return result, found
}

func (v *verdicts) Set(id kubecontainer.ContainerID, result results.Result, _ *corev1.Pod) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.states[id.ID]; !known {
		v.initial = append(v.initial, result)
		result = results.Unknown
	}
	v.states[id.ID] = result
}

func (v *verdicts) Remove(id kubecontainer.ContainerID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.states, id.ID)
}

func (v *verdicts) Updates() <-chan results.Update { return nil }

// state returns the kubelet's result of a container as the name of a Seamark state.
func (v *verdicts) state(id string) string {
	result, _ := v.Get(kubecontainer.ContainerID{Type: "test", ID: id})
	switch result {
	case results.Success:
		return "Succeeded"
	case results.Failure:
		return "Failed"
	default:
		return "Unknown"
	}
}
