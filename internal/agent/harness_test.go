// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	agentmetrics "github.com/seamark-dev/seamark/internal/metrics/agent"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/report"
	"github.com/seamark-dev/seamark/internal/streak"
	"github.com/seamark-dev/seamark/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
)

// harness runs a reporter in a synctest bubble. It is the reporter's API server and event
// emitter.
type harness struct {
	*reporter
	t     *testing.T
	start time.Time
	stop  func()

	// server guards the state of the API server, which follows.
	server sync.Mutex
	object *v1alpha1.NodePodProbe
	// down makes writes fail, and delay is how long they take.
	down  bool
	delay time.Duration
	log   []string
}

func newHarness(t *testing.T, object *v1alpha1.NodePodProbe) *harness {
	h := &harness{t: t, start: time.Now(), object: object}
	h.reporter = newReporter(h, 100*time.Millisecond, agentmetrics.New(prometheus.NewRegistry()), testr.New(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.run(ctx, h)
	}()
	h.stop = func() {
		cancel()
		<-done
	}
	return h
}

// withServer calls f while it holds the lock of the API server.
func (h *harness) withServer(f func()) {
	h.server.Lock()
	defer h.server.Unlock()
	f()
}

// note adds a line to the log. It begins with the time since the start.
func (h *harness) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf("%s %s", time.Since(h.start), fmt.Sprintf(format, args...)))
}

// WriteStatus applies a patch as the API server does.
func (h *harness) WriteStatus(ctx context.Context, patch []byte) (string, error) {
	var delay time.Duration
	h.withServer(func() { delay = h.delay })
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	h.server.Lock()
	defer h.server.Unlock()
	if h.down {
		h.note("refused")
		return "", errors.New("connection refused")
	}
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	var uid types.UID
	var status v1alpha1.NodePodProbeStatus
	if err := errors.Join(json.Unmarshal(patch, &operations), json.Unmarshal(operations[0].Value, &uid), json.Unmarshal(operations[1].Value, &status)); err != nil {
		h.t.Fatal(err)
	}
	if h.object == nil || h.object.UID != uid {
		h.note("no such object")
		return "", errors.New("UID test failed")
	}
	states := ""
	for _, pod := range status.PodProbeStatuses {
		for _, state := range pod.ProbeStates {
			states += fmt.Sprintf(" %s=%s(%s)", state.Name, state.State, state.Message)
		}
		for _, e := range pod.ProbeErrors {
			states += fmt.Sprintf(" %s!%s(%s)", e.Name, e.Reason, e.Message)
		}
	}
	h.note("wrote %d:%s", status.ObservedGeneration, states)
	h.edit(func(object *v1alpha1.NodePodProbe) { object.Status = status })
	return h.object.ResourceVersion, nil
}

// edit replaces the object with a changed copy that has a new resourceVersion.
func (h *harness) edit(change func(*v1alpha1.NodePodProbe)) {
	object := h.object.DeepCopy()
	change(object)
	version, err := strconv.Atoi(object.ResourceVersion)
	if err != nil {
		h.t.Fatal(err)
	}
	object.ResourceVersion = strconv.Itoa(version + 1)
	h.object = object
}

func (h *harness) Emit(reported []report.Event) {
	h.server.Lock()
	defer h.server.Unlock()
	for _, e := range reported {
		if e.Error {
			h.note("event %s %s", e.Probe.Name, e.Reason())
			continue
		}
		h.note("event %s %s", e.Probe.Name, e.State)
	}
}

// putInForce puts the plan of the object in force.
func (h *harness) putInForce() {
	var object *v1alpha1.NodePodProbe
	h.withServer(func() { object = h.object })
	h.Observe(object)
	h.InForce(object)
}

// observeStored passes the stored object to the reporter.
func (h *harness) observeStored() {
	var object *v1alpha1.NodePodProbe
	h.withServer(func() { object = h.object })
	h.Observe(object)
}

// transition moves a probe to a state now.
func (h *harness) transition(probe string, state v1alpha1.ProbeState, message string) {
	key := keyOf(probe)
	h.ProbeChanged(worker.Change{
		Key:        key,
		State:      streak.State{State: state, Message: message, LastProbe: time.Now(), LastTransition: time.Now()},
		Transition: &streak.Transition{To: state, Message: message, At: time.Now()},
	})
}

// trouble reports that a probe without results cannot run, or can if the message is empty.
func (h *harness) trouble(probe, message string) {
	change := worker.Change{Key: keyOf(probe)}
	if message != "" {
		change.State.Problem = streak.Problem{Reason: v1alpha1.ProbeCannotRun, Message: message, Since: time.Now()}
	}
	h.ProbeChanged(change)
}

// rerun reports another run of probe p. Its last transition was at since.
func (h *harness) rerun(state v1alpha1.ProbeState, since time.Time) {
	h.ProbeChanged(worker.Change{
		Key: keyOf("p"), State: streak.State{State: state, Message: "ok", LastProbe: time.Now(), LastTransition: since},
	})
}

func keyOf(probe string) probeid.Key {
	return probeid.Key{ContainerKey: probeid.ContainerKey{PodUID: "pod-uid", Name: "main"}, ID: probeid.ID{Marker: "m", Probe: probe}}
}

// pass advances the time.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// nodePlan returns an object of generation 1 whose pod has the probes m#p, m#q and m#r.
func nodePlan() *v1alpha1.NodePodProbe {
	pod := v1alpha1.PodProbe{Name: "pod", Namespace: "games", UID: "pod-uid", IP: "10.0.0.1"}
	for _, name := range []string{"m#p", "m#q", "m#r"} {
		pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{Name: name, ContainerName: "main"})
	}
	return &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "npp-1", Generation: 1, ResourceVersion: "100"},
		Spec:       v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{pod}},
	}
}
