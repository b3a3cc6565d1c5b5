// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/dryrun"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/remote"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
	"github.com/seamark-dev/seamark/test/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

const owned = `{"f:metadata":{"f:labels":{"f:role":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:status":{},"f:type":{}}}}}`

// withStatus sets the state of the container main.
func withStatus(pod *corev1.Pod, state corev1.ContainerState) *corev1.Pod {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: "containerd://1", State: state}}
	return pod
}

func running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-time.Hour))}}
}

func objects() []client.Object {
	idle := corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue}
	return []client.Object{
		withStatus(builders.Pod("games", "game-0").Label("app", "game").Label("role", "idle").Condition(idle).
			ManagedFields(v1alpha1.FieldManager, "status", owned).Build(), running()),
		withStatus(builders.Pod("games", "game-1").Label("app", "game").Node("node-2").Build(), running()),
		withStatus(builders.Pod("games", "game-2").Label("app", "game").Build(),
			corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}),
		builders.Pod("games", "game-3").Label("app", "game").Node("").Build(),
		builders.Pod("games", "proxy").Label("app", "proxy").Build(),
		builders.Marker("games", "early").Probe(builders.Probe("zone").Label(v1alpha1.ProbeSucceeded, "zone", "a")).Build(),
		builders.Marker("games", "game").Probe(builders.Probe("idle").Condition("game.io/idle").Label(v1alpha1.ProbeSucceeded, "role", "idle")).
			Probe(builders.Probe("map").Container("exporter").Condition("game.io/map")).Build(),
	}
}

// fakeTransport answers by the name of the pod.
type fakeTransport struct {
	probe   func(ctx context.Context, container remote.Container, target probing.Target) (probing.Outcome, error)
	running atomic.Int32
	most    atomic.Int32
}

type fakeProber struct {
	*fakeTransport
	container remote.Container
}

func (f *fakeTransport) Prober(container remote.Container) probing.Prober {
	return fakeProber{f, container}
}

func (f fakeProber) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	if n := f.running.Add(1); n > f.most.Load() {
		f.most.Store(n)
	}
	defer f.running.Add(-1)
	return f.probe(ctx, f.container, target)
}

// byPod succeeds in game-0 and fails in the others.
func byPod(_ context.Context, container remote.Container, _ probing.Target) (probing.Outcome, error) {
	if container.Pod.Name == "game-0" {
		return probing.Outcome{Success: true, Message: "no players"}, nil
	}
	return probing.Outcome{Message: "12 players\n3 spectators"}, nil
}

func timesOut(context.Context, remote.Container, probing.Target) (probing.Outcome, error) {
	return probing.Outcome{TimedOut: true, Message: "timed out after 1s"}, nil
}

func denied(_ context.Context, container remote.Container, _ probing.Target) (probing.Outcome, error) {
	return probing.Outcome{}, &remote.DeniedError{
		Missing: permission.Missing{Resource: permission.Exec, Verb: "create", Namespace: container.Pod.Namespace}, Err: errors.New("no role"),
	}
}

func deniedInSecond(ctx context.Context, container remote.Container, target probing.Target) (probing.Outcome, error) {
	if container.Pod.Name == "game-1" {
		return denied(ctx, container, target)
	}
	return byPod(ctx, container, target)
}

func broken(context.Context, remote.Container, probing.Target) (probing.Outcome, error) {
	return probing.Outcome{}, errors.New("exec of pod: connection reset by peer")
}

// execute runs the command in the namespace games.
func execute(t *testing.T, transport *fakeTransport, refuse func(any) bool, in string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	// Every probe takes 20 milliseconds.
	var ticks atomic.Int64
	clock := func() time.Time { return now.Add(time.Duration(ticks.Add(1)) * 20 * time.Millisecond) }
	return executeAt(t.Context(), t, clock, transport, refuse, in, append([]string{"--parallel=1"}, args...)...)
}

// executeAt runs the command with the clock.
func executeAt(ctx context.Context, t *testing.T, clock func() time.Time, transport *fakeTransport, refuse func(any) bool, in string, args ...string,
) (stdout, stderr string, code int) {
	t.Helper()
	streams, input, out, errOut := genericiooptions.NewTestIOStreams()
	streams.Out, streams.ErrOut = printing.Safe(out), printing.Safe(errOut)
	input.WriteString(in)
	c := fakeapi.Client(t, objects()...).WithReturnManagedFields().WithInterceptorFuncs(fakeapi.Before(func(_ string, object any) error {
		if refuse == nil || !refuse(object) {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no role"))
	})).Build()
	flags := cluster.NewFlags(streams, "test")
	o := &Options{IOStreams: streams, Cluster: flags, now: clock}
	o.connect = func() (cluster.Connection, error) { return cluster.Connection{Client: c, Namespace: "games"}, nil }
	o.open = func(*rest.Config) (connected, error) { return transport, nil }
	command := newCommand(o, "seamark")
	command.SilenceUsage = true
	command.SetArgs(args)
	command.SetIn(input)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	err := command.ExecuteContext(ctx)
	return out.String(), errOut.String(), exit.Code(err)
}

// connected has another name because tests name their transport so.
type connected = transport

const marker = `apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: game}
spec:
  selector: {matchLabels: {app: game}}
  probes:
  - name: idle
    containerName: main
    probe: {exec: {command: [/idle]}, failureThreshold: 1}
    markerPolicy: [{state: Succeeded, labels: {role: idle, zone: a}}, {state: Failed, labels: {role: busy}}]
    podConditionType: game.io/idle
`

// injected is a workload whose container main is that of a SidecarSet.
const injected = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: game}
spec: {selector: {matchLabels: {app: game}}, template: {metadata: {labels: {app: game}}, spec: {containers: [{name: web}]}}}
---
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: main}
spec: {selector: {matchLabels: {app: game}}, containers: [{name: main, image: main}]}
`

func TestGolden(t *testing.T) {
	invalid := strings.ReplaceAll(strings.ReplaceAll(marker, "exec", "exce"), "state: Failed", "state: Down")
	onlyReads := func(object any) bool {
		switch object.(type) {
		case *corev1.Pod, *corev1.PodList:
			return false
		default:
			return true
		}
	}
	for name, test := range map[string]struct {
		args   []string
		in     string
		probe  func(context.Context, remote.Container, probing.Target) (probing.Outcome, error)
		refuse func(any) bool
		code   int
	}{
		"file":            {args: []string{"-f", "-"}, in: marker, code: exit.Failed},
		"success":         {args: []string{"-f", "-", "game-0"}, in: marker},
		"sidecarset":      {args: []string{"-f", "-", "game-0"}, in: marker + injected},
		"wide":            {args: []string{"-f", "-", "-o", "wide"}, in: marker, code: exit.Failed},
		"json":            {args: []string{"-f", "-", "pod/game-1", "-o", "json"}, in: marker, code: exit.Failed},
		"name":            {args: []string{"-f", "-", "-o", "name"}, in: marker, code: exit.Failed},
		"limit":           {args: []string{"-f", "-", "--limit", "1"}, in: marker},
		"stored":          {args: []string{"-m", "game"}, code: exit.Failed},
		"stored-probe":    {args: []string{"-m", "game#idle", "game-0"}},
		"unselected-pods": {args: []string{"-f", "-", "proxy", "game-3"}, in: marker, code: exit.Failed},
		"no-pods":         {args: []string{"-f", "-"}, in: strings.ReplaceAll(marker, "app: game", "app: gone"), code: exit.Failed},
		"times-out":       {args: []string{"-f", "-", "game-1", "-o", "wide"}, in: marker, probe: timesOut, code: exit.Failed},
		"network": {
			args: []string{"-f", "-", "game-0", "-o", "wide"}, in: strings.ReplaceAll(marker, "exec: {command: [/idle]}", "tcpSocket: {port: 80}"),
		},
		"no-result":       {args: []string{"-f", "-", "game-1"}, in: marker, probe: broken, code: exit.Failed},
		"denied":          {args: []string{"-f", "-", "game-0"}, in: marker, probe: denied, code: exit.Access},
		"denied-partly":   {args: []string{"-f", "-", "game-0", "game-1"}, in: marker, probe: deniedInSecond, code: exit.Failed},
		"developer":       {args: []string{"-f", "-", "game-0"}, in: marker, refuse: onlyReads},
		"nothing-allowed": {args: []string{"-f", "-"}, in: marker, refuse: func(any) bool { return true }, code: exit.Access},
		"misspelled-pod":  {args: []string{"-f", "-", "gmae-0"}, in: marker, code: exit.Failed},
		"unknown-marker":  {args: []string{"-m", "gme"}, code: exit.Failed},
		"unknown-probe":   {args: []string{"-f", "-", "-m", "game#idel"}, in: marker, code: exit.Failed},
		"invalid-marker":  {args: []string{"-f", "-"}, in: invalid, code: exit.Usage},
		"invalid-yaml":    {args: []string{"-f", "-"}, in: "a: [", code: exit.Usage},
		"no-marker":       {args: []string{"-f", "-"}, in: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", code: exit.Usage},
		"other-namespace": {
			args: []string{"-f", "-", "-n", "shop"}, in: strings.ReplaceAll(marker, "name: game}", "name: game, namespace: games}"), code: exit.Usage,
		},
		"nothing":          {code: exit.Usage},
		"argument-missing": {args: []string{"none.yaml", "game-0"}, code: exit.Usage},
		"invalid-numbers":  {args: []string{"-m", "game/", "--limit", "0", "--parallel", "33"}, code: exit.Usage},
		"expect":           {args: []string{"-m", "game", "--expect", "Failed", "game-1"}, code: exit.Failed},
		"expect-failed":    {args: []string{"-m", "game#idle", "--expect", "failed", "game-1"}},
		"expect-invalid":   {args: []string{"-m", "game", "--expect", "Unknown"}, code: exit.Usage},
		"for-invalid":      {args: []string{"-m", "game", "--for", "0s"}, code: exit.Usage},
		"for-too-long":     {args: []string{"-m", "game", "--for", "61m"}, code: exit.Usage},
		"for-no-duration":  {args: []string{"-m", "game", "--for", "30"}, code: exit.Usage},
		"invalid-output":   {args: []string{"-m", "game", "-o", "xml"}, code: exit.Usage},
		"missing-file":     {args: []string{"-f", "none.yaml"}, code: exit.Usage},
		"pods-above-limit": {args: []string{"-m", "game", "a", "b", "--limit", "1"}, code: exit.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			run := byPod
			if test.probe != nil {
				run = test.probe
			}
			stdout, stderr, code := execute(t, &fakeTransport{probe: run}, test.refuse, test.in, test.args...)
			expect.Equal(t, "exit code", test.code, code)
			golden.Compare(
				t, filepath.Join("testdata", name+".golden"), "$ seamark test "+strings.Join(test.args, " ")+"\n"+stdout+"--- standard error\n"+stderr,
			)
		})
	}
}

// Files are accepted as arguments and with -f, and folders too.
func TestFilesAreArgumentsOrFlags(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "marker.yaml")
	expect.NoError(t, os.WriteFile(file, []byte(marker), 0o600))
	for _, args := range [][]string{{"-"}, {file}, {"-f", file}, {"-f", folder}, {folder}, {folder + "/"}} {
		stdout, stderr, code := execute(t, &fakeTransport{probe: byPod}, nil, marker, append(args, "game-0")...)
		if code != exit.OK || !strings.Contains(stdout, "game-0   game#idle   main        Succeeded") {
			t.Errorf("%q: exit code %d, output %q and errors %q", args, code, stdout, stderr)
		}
	}
}

func TestOutputIsSafe(t *testing.T) {
	hostile := &fakeTransport{probe: func(_ context.Context, c remote.Container, _ probing.Target) (probing.Outcome, error) {
		if c.Pod.Name == "game-0" {
			return probing.Outcome{Success: true, Message: texttest.Hostile}, nil
		}
		return probing.Outcome{}, errors.New(texttest.Hostile)
	}}
	for _, args := range [][]string{{"-f", "-"}, {"-f", "-", "-o", "wide"}} {
		stdout, stderr, _ := execute(t, hostile, nil, marker, args...)
		texttest.Check(t, stdout+stderr)
	}
}

func TestParallel(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	transport := &fakeTransport{probe: func(context.Context, remote.Container, probing.Target) (probing.Outcome, error) {
		// Both probes run at once, or the test does not end.
		both.Done()
		both.Wait()
		return probing.Outcome{Success: true}, nil
	}}
	if _, stderr, code := execute(t, transport, nil, marker, "-f", "-", "--parallel", "2", "game-0", "game-1"); code != exit.OK {
		t.Errorf("exit code %d, want 0: %s", code, stderr)
	}
	transport = &fakeTransport{probe: byPod}
	execute(t, transport, nil, marker, "-f", "-", "--parallel", "1")
	expect.Equal(t, "probes at the same time", 1, transport.most.Load())
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := runner{now: time.Now, parallel: 1, transport: &fakeTransport{probe: func(ctx context.Context, _ remote.Container, _ probing.Target) (probing.Outcome, error) {
		cancel()
		<-ctx.Done()
		return probing.Outcome{}, fmt.Errorf("exec: %w", context.Cause(ctx))
	}}}
	interrupted := attemptOf(t)
	r.run(ctx, []*attempt{interrupted})
	expect.Equal(t, "result", resultError, interrupted.Result)
}

// attemptOf returns an attempt of a probe in game-0.
func attemptOf(t *testing.T) *attempt {
	t.Helper()
	pod := withStatus(builders.Pod("games", "game-0").Label("app", "game").Build(), running())
	compiled := compile([]*v1alpha1.PodProbeMarker{builders.Marker("games", "game").Probe(builders.Probe("idle").Condition("game.io/idle")).Build()})
	tried, err := dryrun.New(pod, compiled[0], nil)
	expect.NoError(t, err)
	return newAttempt(tried, tried.Probes[0])
}
