// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration_test tests the migration from OpenKruise in
// docs/migrate-from-openkruise.md. It starts an API server with OpenKruise's CRDs, creates the
// objects that its controllers leave, and starts Seamark's manager and agent while a watch
// records every version of every pod. Nodes and pods are plain objects without kubelets, and
// containers are entries in a map.
package migration_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent"
	"github.com/seamark-dev/seamark/internal/agent/cri"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

const (
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
	unknown   = v1alpha1.ProbeUnknown
)

func TestMain(m *testing.M) { env.Main(m, nil) }

// world is the fixture of one test: a cluster with one node on which OpenKruise ran.
type world struct {
	*env.World
	runtime *critest.Runtime
	node    string

	mu sync.Mutex
	// pods holds the pod of each container ID. says holds the exit codes and runs the numbers
	// of runs, by "pod command".
	pods map[string]string
	says map[string]int32
	runs map[string]int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{
		World: env.NewWorld(t, env.Start(t, env.UpstreamCRDs())), runtime: critest.New(t, critest.Streamed), node: "node-1",
		pods: map[string]string{}, says: map[string]int32{}, runs: map[string]int{},
	}
	w.runtime.OnExec(w.exec)
	node := &corev1.Node{}
	node.Name = w.node
	w.Create(node)
	return w
}

func (w *world) exec(_ context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := w.pods[request.GetContainerId()] + " " + request.GetCmd()[0]
	w.runs[key]++
	return &runtimeapi.ExecSyncResponse{ExitCode: w.says[key]}, nil
}

// run starts the pod's container, with a start time before all reports.
func (w *world) run(pod *corev1.Pod) {
	id := w.runtime.Create(identity.ContainerKey{PodUID: pod.UID, Name: "main"}, 0)
	w.mu.Lock()
	w.pods[id] = pod.Name
	w.mu.Unlock()
	w.runtime.Run(id, time.Now().Add(-time.Hour))
}

func (w *world) exits(pod, command string, code int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.says[pod+" "+command] = code
}

func (w *world) ran(pod, command string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[pod+" "+command]
}

// startManager runs a manager with the rights of its service account and OpenKruise's probe
// defaults until the test ends or the returned function is called.
func (w *world) startManager() (stop func()) {
	w.Helper()
	return program.StartManager(w, manager.Options{
		Config:   w.Component(w, manager.Name),
		Defaults: plan.Defaults{InitialDelaySeconds: 1, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1},
	})
}

// startAgent runs the node's agent with the rights of its service account until the test
// ends.
func (w *world) startAgent() {
	w.Helper()
	config := w.Component(w, "seamark-agent")
	metrics := agentmetrics.New(prometheus.NewRegistry())
	runtime, err := cri.Dial(context.Background(), w.runtime.Socket(), metrics.RuntimeCalled)
	w.Must(err)
	a, err := agent.New(agent.Options{
		ReportInterval: 100 * time.Millisecond,
		NodeName:       w.node, Config: config, Runtime: runtime, ExecConcurrency: 16, Version: "test",
		Metrics: metrics, Log: logr.Discard(),
	})
	w.Must(err)
	env.Run(w, func(ctx context.Context) error {
		defer func() { _ = runtime.Close() }()
		return a.Run(ctx)
	})
}

// marks returns the labels, annotations and conditions of the pod, except the conditions that
// Kubernetes sets.
func marks(pod *corev1.Pod) map[string]string {
	all := map[string]string{}
	for key, value := range pod.Labels {
		all["label "+key] = value
	}
	for key, value := range pod.Annotations {
		all["annotation "+key] = value
	}
	for _, c := range pod.Status.Conditions {
		if strings.Contains(string(c.Type), "/") {
			all["condition "+string(c.Type)] = string(c.Status)
		}
	}
	return all
}

func words(marks map[string]string) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(marks)) {
		all = append(all, key+"="+marks[key])
	}
	return all
}

// marked waits until the pod has exactly these marks and its label app.
func (w *world) marked(pod string, want ...string) {
	w.Helper()
	want = append(want, "label app=game")
	slices.Sort(want)
	found := &corev1.Pod{ObjectMeta: w.Meta(pod)}
	w.Shows(found, fmt.Sprintf("pod %s has the marks %v", pod, want), func() error {
		got := words(marks(found))
		return await.ErrorIf(!slices.Equal(got, want), "it has %v", got)
	})
}
