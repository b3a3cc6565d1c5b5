// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent_test runs the agent against a real API server, with the rights of its service
// account, and a container runtime whose containers are entries in a map. The tests write the
// plans.
package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent"
	"github.com/seamark-dev/seamark/internal/agent/cri"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// shared is the API server of the package. Each test has a node and a namespace.
var shared *env.Env

func TestMain(m *testing.M) { env.Main(m, &shared) }

const (
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
)

// world is the fixture of one test: a node, its runtime and a namespace.
type world struct {
	*env.World
	runtime *critest.Runtime
	// rights is the configuration of the agent.
	rights *rest.Config
	node   string

	mu      sync.Mutex
	answers map[string]answer
	execs   map[string]int
}

// answer is the output, exit code and duration of a command.
type answer struct {
	stdout string
	code   int32
	after  time.Duration
}

// newWorld marks the test as parallel and returns its world on the API server.
func newWorld(t *testing.T, e *env.Env, events critest.Events) *world {
	t.Helper()
	t.Parallel()
	w := &world{
		World: env.NewWorld(t, e), runtime: critest.New(t, events), rights: e.Component(t, "seamark-agent"),
		node:    strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())),
		answers: map[string]answer{}, execs: map[string]int{},
	}
	w.runtime.OnExec(w.exec)
	t.Cleanup(func() {
		object := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: w.node}}
		ofNode := client.MatchingFields{"nodeName": w.node}
		err := errors.Join(client.IgnoreNotFound(w.Client.Delete(context.Background(), object)),
			w.Client.DeleteAllOf(context.Background(), &seamarkv1alpha1.ProbePlan{}, ofNode),
			w.Client.DeleteAllOf(context.Background(), &seamarkv1alpha1.ProbeReport{}, ofNode))
		if err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return w
}

// crds returns the options of the API servers that an agent meets.
func crds() map[string][]env.Option {
	return map[string][]env.Option{"Seamark's CRDs": nil, "upstream's CRDs": {env.UpstreamCRDs()}}
}

// exec returns the answer that the test set for the command's first word.
func (w *world) exec(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	name := request.GetCmd()[0]
	w.mu.Lock()
	said := w.answers[name]
	w.execs[name]++
	w.mu.Unlock()
	select {
	case <-time.After(said.after):
		return &runtimeapi.ExecSyncResponse{Stdout: []byte(said.stdout), ExitCode: said.code}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *world) setAnswer(command string, a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[command] = a
}

// ran returns how often a command ran.
func (w *world) ran(command string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.execs[command]
}

// startAgent runs an agent until the test ends or the returned function is called. The function
// returns how long the agent took to stop.
func (w *world) startAgent() (stop func() time.Duration) {
	w.Helper()
	return w.startAgentWith(w.rights)
}

// startAgentWith runs an agent with another configuration of its client and changed options.
func (w *world) startAgentWith(config *rest.Config, change ...func(*agent.Options)) (stop func() time.Duration) {
	w.Helper()
	registry := prometheus.NewRegistry()
	metrics := agentmetrics.New(registry)
	ctx, cancel := context.WithCancel(context.Background())
	runtime, err := cri.Dial(ctx, w.runtime.Socket(), metrics.RuntimeCalled)
	expect.NoError(w, err)
	options := agent.Options{
		ReportInterval: 100 * time.Millisecond,
		NodeName:       w.node, Config: config, Runtime: runtime, ExecConcurrency: 16, Version: "test",
		Metrics: metrics, Gatherer: registry, Log: logr.Discard(),
	}
	for _, c := range change {
		c(&options)
	}
	a, err := agent.New(options)
	expect.NoError(w, err)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stop = sync.OnceValue(func() time.Duration {
		start := time.Now()
		cancel()
		if err := <-done; err != nil {
			w.Errorf("run agent: %v", err)
		}
		took := time.Since(start)
		if err := runtime.Close(); err != nil {
			w.Errorf("close the runtime's client: %v", err)
		}
		return took
	})
	w.Cleanup(func() { stop() })
	return stop
}

// run starts a container and returns its ID.
func (w *world) run(pod string) string { return w.runSince(pod, time.Now()) }

// runSince starts a container in the past and returns its ID.
func (w *world) runSince(pod string, at time.Time) string {
	id := w.runtime.Create(identity.ContainerKey{PodUID: uidOf(pod), Name: "main"}, 0)
	w.runtime.Run(id, at)
	return id
}

func uidOf(pod string) types.UID { return types.UID("uid-" + pod) }

// pod returns the plan of a pod with exec probes, each named after its command.
func (w *world) pod(name string, probes ...string) v1alpha1.PodProbe {
	pod := v1alpha1.PodProbe{Name: name, Namespace: w.Namespace, UID: string(uidOf(name)), IP: "127.0.0.1"}
	for _, p := range probes {
		pod.Probes = append(pod.Probes, probe(p, corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{p}}}))
	}
	return pod
}

// probe returns the plan of a probe of the container main with a period of one second.
func probe(name string, handler corev1.ProbeHandler) v1alpha1.ContainerProbe {
	return v1alpha1.ContainerProbe{Name: "m#" + name, ContainerName: "main", Probe: v1alpha1.ContainerProbeSpec{
		Probe: corev1.Probe{ProbeHandler: handler, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1},
	}}
}

// plan writes the node's plan as ProbePlans, and the NodePodProbe that refers to them.
func (w *world) plan(pods ...v1alpha1.PodProbe) {
	w.Helper()
	ctx := w.Context()
	var stored seamarkv1alpha1.ProbePlanList
	expect.NoError(w, w.Client.List(ctx, &stored, client.MatchingFields{"nodeName": w.node}))
	var known []*seamarkv1alpha1.ProbePlan
	for i := range stored.Items {
		stored.Items[i].OwnerReferences = []metav1.OwnerReference{{}}
		known = append(known, &stored.Items[i])
	}
	references := slicing.References(known)
	for _, placed := range slicing.Place(pods, known, "") {
		slice := &seamarkv1alpha1.ProbePlan{
			ObjectMeta: metav1.ObjectMeta{Name: seamarkv1alpha1.SliceName(w.node, placed.Number)}, NodeName: w.node, Pods: placed.Pods,
		}
		var err error
		if placed.Stored == nil {
			err = w.Client.Create(ctx, slice)
		} else {
			slice.ResourceVersion = placed.Stored.ResourceVersion
			err = w.Client.Update(ctx, slice)
		}
		expect.NoErrorf(w, err, "write the plan")
		references[placed.Number] = slice.ResourceVersion
	}
	object := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{
		Name: w.node, Annotations: map[string]string{v1alpha1.ProbePlansAnnotationKey: slicing.FormatReferences(references)},
	}}
	err := w.Client.Create(ctx, object.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = w.Client.Patch(ctx, object, client.Merge)
	}
	expect.NoErrorf(w, err, "write the plan")
}

// object returns the NodePodProbe with the whole plan.
func (w *world) object() *v1alpha1.NodePodProbe {
	w.Helper()
	object, err := gather.Reader{Client: w.Client}.NodePlan(w.Context(), w.node)
	expect.NoError(w, err)
	return object
}

// slices returns the slices of the node's report, by name.
func (w *world) slices() map[string]seamarkv1alpha1.ProbeReport {
	w.Helper()
	list := &seamarkv1alpha1.ProbeReportList{}
	expect.NoError(w, w.Client.List(w.Context(), list, client.MatchingFields{"nodeName": w.node}))
	all := map[string]seamarkv1alpha1.ProbeReport{}
	for _, slice := range list.Items {
		all[slice.Name] = slice
	}
	return all
}

func (w *world) states() map[string]v1alpha1.ContainerProbeState {
	w.Helper()
	all := map[string]v1alpha1.ContainerProbeState{}
	for _, slice := range w.slices() {
		for _, pod := range slice.Pods {
			for _, state := range pod.Probes {
				all[pod.Name+" "+strings.TrimPrefix(state.Name, "m#")] = state
			}
		}
	}
	return all
}

// versions returns the resourceVersions of everything that the agent writes, by name.
func (w *world) versions() map[string]string {
	w.Helper()
	all := map[string]string{"status": w.object().ResourceVersion}
	for name, slice := range w.slices() {
		all[name] = slice.ResourceVersion
	}
	return all
}

// eventually waits until the condition holds. On a timeout, it fails the test with the last
// state that the condition returned.
func (w *world) eventually(condition func() (holds bool, state string)) {
	w.Helper()
	w.Until("the condition holds", func() error {
		holds, state := condition()
		return await.ErrorIf(!holds, "state: %s", state)
	})
}

// reported waits until a probe is reported in the state with a message that contains part.
func (w *world) reported(name string, state v1alpha1.ProbeState, part string) v1alpha1.ContainerProbeState {
	w.Helper()
	var found v1alpha1.ContainerProbeState
	w.eventually(func() (bool, string) {
		found = w.states()[name]
		return found.State == state && strings.Contains(found.Message, part),
			fmt.Sprintf("%s is %q %q, want %s %q", name, found.State, found.Message, state, part)
	})
	return found
}

// ranAgain waits until a command ran n more times.
func (w *world) ranAgain(command string, n int) {
	w.Helper()
	start := w.ran(command)
	w.eventually(func() (bool, string) {
		return w.ran(command) >= start+n, fmt.Sprintf("%s ran %d times, want %d", command, w.ran(command)-start, n)
	})
}

// events returns the events in the namespace, as "pod reason message".
func (w *world) events() []string {
	w.Helper()
	list := &corev1.EventList{}
	w.List(list)
	var lines []string
	for _, e := range list.Items {
		if e.Source.Component != "kruise-daemon-podprobe" || e.Source.Host != w.node || e.Type != corev1.EventTypeNormal ||
			e.InvolvedObject.UID != uidOf(e.InvolvedObject.Name) || e.InvolvedObject.FieldPath != "spec.containers{main}" {
			w.Errorf("unexpected event %+v", e)
		}
		for range max(e.Count, 1) {
			lines = append(lines, fmt.Sprintf("%s %s %s", e.InvolvedObject.Name, strings.TrimPrefix(e.Reason, "KruiseProbe"), e.Message))
		}
	}
	return lines
}
