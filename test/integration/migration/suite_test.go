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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent"
	"github.com/seamark-dev/seamark/internal/agent/cri"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
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

// record holds the marks of every version of the pods in a namespace, as seen by a watch.
type record struct {
	mu sync.Mutex
	// versions holds the distinct marks of each pod, in order.
	versions map[string][]map[string]string
	// writes counts the versions of each pod.
	writes map[string]int
}

// startRecord watches the pods from now until the test ends.
func startRecord(w *world) *record {
	w.Helper()
	r := &record{versions: map[string][]map[string]string{}, writes: map[string]int{}}
	w.FollowPods(func(event watch.Event) {
		if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted {
			r.see(pod)
		}
	})
	return r
}

func (r *record) see(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes[pod.Name]++
	seen, now := r.versions[pod.Name], marks(pod)
	if len(seen) == 0 || !maps.Equal(seen[len(seen)-1], now) {
		r.versions[pod.Name] = append(seen, now)
	}
}

// written returns the number of versions of the pod.
func (r *record) written(pod string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes[pod]
}

// changes returns the values of each mark of the pod that changed, such as
// "label idle: true, -". A dash means that the mark is absent.
func (r *record) changes(pod string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := map[string]bool{}
	for _, version := range r.versions[pod] {
		for key := range version {
			keys[key] = true
		}
	}
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		var values []string
		for _, version := range r.versions[pod] {
			value, found := version[key]
			if !found {
				value = "-"
			}
			if len(values) == 0 || values[len(values)-1] != value {
				values = append(values, value)
			}
		}
		if len(values) > 1 {
			changes = append(changes, key+": "+strings.Join(values, ", "))
		}
	}
	return changes
}

// openKruise writes the objects of OpenKruise's controllers as they do: with updates, and with
// their user agents, from which the API server derives the field managers.
type openKruise struct {
	*world
	manager, daemon client.Client
}

func newOpenKruise(w *world) *openKruise {
	w.Helper()
	as := func(userAgent string) client.Client {
		config := rest.CopyConfig(w.Config)
		config.UserAgent = userAgent
		return w.ClientOf(w, config)
	}
	return &openKruise{world: w, manager: as("kruise-manager/NodePodProbe-controller"), daemon: as("kruise-daemon-podprobe")}
}

// follows adds the finalizer to the marker and sets its status.
func (k *openKruise) follows(ctx context.Context, marker *v1alpha1.PodProbeMarker, pods int64) {
	k.Helper()
	controllerutil.AddFinalizer(marker, v1alpha1.PodProbeMarkerFinalizer)
	k.Must(k.manager.Update(ctx, marker))
	marker.Status.ObservedGeneration, marker.Status.MatchedPods = marker.Generation, pods
	k.Must(k.manager.Status().Update(ctx, marker))
}

// plans creates the node's NodePodProbe, without an owner, and adds the marker's probes for
// each pod. Fields that the marker leaves unset stay unset.
func (k *openKruise) plans(ctx context.Context, marker *v1alpha1.PodProbeMarker, pods ...*corev1.Pod) *v1alpha1.NodePodProbe {
	k.Helper()
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: k.node}}
	k.Must(k.manager.Create(ctx, npp))
	for _, pod := range pods {
		planned := v1alpha1.PodProbe{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), IP: pod.Status.PodIP}
		for _, probe := range marker.Spec.Probes {
			planned.Probes = append(planned.Probes, v1alpha1.ContainerProbe{
				Name: marker.Name + "#" + probe.Name, ContainerName: probe.ContainerName, Probe: probe.Probe,
			})
		}
		npp.Spec.PodProbes = append(npp.Spec.PodProbes, planned)
	}
	k.Must(k.manager.Update(ctx, npp))
	return npp
}

// reports adds a pod's states to the status as the daemon does. A missing time of the last
// probe represents a version of the daemon that did not write it.
func (k *openKruise) reports(ctx context.Context, npp *v1alpha1.NodePodProbe, pod *corev1.Pod, states ...v1alpha1.ContainerProbeState) {
	k.Helper()
	npp.Status.PodProbeStatuses = append(npp.Status.PodProbeStatuses, v1alpha1.PodProbeStatus{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), ProbeStates: states,
	})
	k.Must(k.daemon.Status().Update(ctx, npp))
}

func state(name string, state v1alpha1.ProbeState) v1alpha1.ContainerProbeState {
	changed := metav1.NewTime(time.Now().Add(-10 * time.Minute).Truncate(time.Second))
	return v1alpha1.ContainerProbeState{Name: name, State: state, LastProbeTime: changed, LastTransitionTime: changed}
}

// marks updates the pod's status with all marks at once.
func (k *openKruise) marks(ctx context.Context, pod *corev1.Pod, labels, annotations map[string]string, idle corev1.ConditionStatus) {
	k.Helper()
	k.Get(pod)
	for key, value := range labels {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
	}
	for key, value := range annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
	}
	if idle != "" {
		changed := metav1.NewTime(time.Now().Add(-10 * time.Minute).Truncate(time.Second))
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: "game.io/idle", Status: idle, LastProbeTime: changed, LastTransitionTime: changed,
		})
	}
	k.Must(k.manager.Status().Update(ctx, pod))
}

// createPod creates a running pod on the node.
func (k *openKruise) createPod(ctx context.Context, name string) *corev1.Pod {
	k.Helper()
	pod, err := env.CreatePod(ctx, k.Client, builders.Pod(k.Namespace, name).Label("app", "game").Node(k.node).Build())
	k.Must(err)
	k.run(pod)
	return pod
}
