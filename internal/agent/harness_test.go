// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) {
	// The default handlers wait until the time of the last error, which is that of the machine or of another bubble of synctest.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}

const (
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
)

// harness runs a reporter and a statusKeeper in a synctest bubble. It is their API server and
// event emitter.
type harness struct {
	*reporter
	status *statusKeeper
	t      *testing.T
	start  time.Time
	stop   func()

	// server guards the state of the API server and of the runtime, which follow.
	server sync.Mutex
	// runs are the UIDs of the pods with a running container.
	runs   map[string]bool
	object *v1alpha1.NodePodProbe
	slices map[string]*seamarkv1alpha1.ProbeReport
	faults
	log []string
}

// faults are how the API server fails.
type faults struct {
	// down makes requests fail, and delay is how long they take.
	down  bool
	delay time.Duration
	// denied are the errors of writes by slice, and slow is how long they take in addition.
	denied map[string]error
	slow   map[string]time.Duration
	// lost are the slices whose next response is lost after the write.
	lost map[string]bool
	// pruned makes the API server store only the fields that OpenKruise defines.
	pruned bool
}

func newHarness(t *testing.T, object *v1alpha1.NodePodProbe) *harness {
	return newHarnessWith(t, object, nil)
}

// newHarnessWith starts with the slices.
func newHarnessWith(t *testing.T, object *v1alpha1.NodePodProbe, stored map[string]*seamarkv1alpha1.ProbeReport) *harness {
	h := &harness{t: t, start: time.Now(), object: object, slices: map[string]*seamarkv1alpha1.ProbeReport{}}
	maps.Copy(h.slices, stored)
	metrics, log := agentmetrics.New(prometheus.NewRegistry()), testr.New(t)
	h.status = newStatusKeeper(h, 100*time.Millisecond, metrics, log)
	runs := func() (uids map[string]bool) {
		h.withServer(func() { uids = h.runs })
		return uids
	}
	h.reporter = newReporter("node", h, h.status, runs, 100*time.Millisecond, metrics, log)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { h.run(ctx, h) })
	running.Go(func() { h.status.run(ctx) })
	h.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		h.flush(t.Context(), h)
		h.status.flush(t.Context())
	})
	return h
}

// withServer calls f while it holds the lock of the API server.
func (h *harness) withServer(f func()) {
	h.server.Lock()
	defer h.server.Unlock()
	f()
}

// fail sets the faults of the API server.
func (h *harness) fail(f faults) { h.withServer(func() { h.faults = f }) }

// note adds a line to the log. It begins with the time since the start.
func (h *harness) note(format string, args ...any) {
	h.log = append(h.log, strings.TrimSpace(fmt.Sprintf("%s %s", time.Since(h.start), fmt.Sprintf(format, args...))))
}

// take returns the lines of the log and clears it.
func (h *harness) take() []string {
	synctest.Wait()
	h.server.Lock()
	defer h.server.Unlock()
	lines := h.log
	h.log = nil
	return lines
}

// wait waits as long as a request takes. It returns the error of a server that is down.
func (h *harness) wait(ctx context.Context, more time.Duration) error {
	var delay time.Duration
	h.withServer(func() { delay = h.delay })
	select {
	case <-time.After(delay + more):
	case <-ctx.Done():
		return ctx.Err()
	}
	h.server.Lock()
	defer h.server.Unlock()
	if h.down {
		h.note("refused")
		return errors.New("connection refused")
	}
	return nil
}

func (h *harness) ListSlices(ctx context.Context) ([]seamarkv1alpha1.ProbeReport, error) {
	if err := h.wait(ctx, 0); err != nil {
		return nil, err
	}
	h.server.Lock()
	defer h.server.Unlock()
	list := []seamarkv1alpha1.ProbeReport{}
	for _, name := range slices.Sorted(maps.Keys(h.slices)) {
		list = append(list, *h.slices[name].DeepCopy())
	}
	return list, nil
}

// WriteSlice replaces a slice as a nodeClient does.
func (h *harness) WriteSlice(ctx context.Context, slice *seamarkv1alpha1.ProbeReport, exists bool) (int, error) {
	var slow time.Duration
	h.withServer(func() { slow = h.slow[slice.Name] })
	if err := h.wait(ctx, slow); err != nil {
		return 1, err
	}
	h.server.Lock()
	defer h.server.Unlock()
	if err := h.denied[slice.Name]; err != nil {
		h.note("rejected %s", slice.Name)
		return 1, err
	}
	verb := "wrote"
	if h.slices[slice.Name] == nil && exists {
		verb = "recreated"
	}
	h.slices[slice.Name] = slice.DeepCopy()
	if h.lost[slice.Name] {
		delete(h.lost, slice.Name)
		h.note("lost %s:%s", slice.Name, statesIn(slice.Pods))
		return 1, errors.New("connection reset")
	}
	h.note("%s %s:%s", verb, slice.Name, statesIn(slice.Pods))
	return 1, nil
}

func (h *harness) DeleteSlice(ctx context.Context, name string) error {
	if err := h.wait(ctx, 0); err != nil {
		return err
	}
	h.server.Lock()
	defer h.server.Unlock()
	delete(h.slices, name)
	h.note("deleted %s", name)
	return nil
}

func statesIn(pods []seamarkv1alpha1.PodReport) string {
	text := ""
	for _, pod := range pods {
		for _, state := range pod.Probes {
			text += fmt.Sprintf(" %s=%s(%s)", state.Name, state.State, state.Message)
		}
		for _, e := range pod.Errors {
			text += fmt.Sprintf(" %s!%s(%s)", e.Name, e.Reason, e.Message)
		}
	}
	return text
}

// WriteStatus replaces the status as the API server does: equal content is no write.
func (h *harness) WriteStatus(ctx context.Context, uid types.UID, status v1alpha1.NodePodProbeStatus) (string, error) {
	if err := h.wait(ctx, 0); err != nil {
		return "", err
	}
	h.server.Lock()
	defer h.server.Unlock()
	if h.object == nil || h.object.UID != uid {
		h.note("no such object")
		return "", errors.New("UID test failed")
	}
	if h.pruned {
		status = v1alpha1.NodePodProbeStatus{PodProbeStatuses: status.PodProbeStatuses}
	}
	if equality.Semantic.DeepEqual(h.object.Status, status) {
		h.note("status unchanged")
		return h.object.ResourceVersion, nil
	}
	states := ""
	for _, pod := range status.PodProbeStatuses {
		states += statesIn([]seamarkv1alpha1.PodReport{{Probes: pod.ProbeStates}})
	}
	h.note("status %d:%s", status.ObservedGeneration, states)
	h.edit(func(object *v1alpha1.NodePodProbe) { object.Status = *status.DeepCopy() })
	return h.object.ResourceVersion, nil
}

// edit replaces the object with a changed copy that has a new resourceVersion.
func (h *harness) edit(change func(*v1alpha1.NodePodProbe)) {
	object := h.object.DeepCopy()
	change(object)
	version, err := strconv.Atoi(object.ResourceVersion)
	expect.NoError(h.t, err)
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

// putInForce puts the plan of the object in force, as a follower does. States that must be in the
// first report are set before: the reporter does not wait for those that follow.
func (h *harness) putInForce() {
	<-h.listed
	h.observeStored()
	var object *v1alpha1.NodePodProbe
	h.withServer(func() { object = h.object })
	h.Restore(object)
	h.InForce(object)
}

// replan puts the next plan in force.
func (h *harness) replan(generation int64, pods []v1alpha1.PodProbe) {
	var object *v1alpha1.NodePodProbe
	h.withServer(func() {
		h.edit(func(o *v1alpha1.NodePodProbe) { o.Generation, o.Spec.PodProbes = generation, pods })
		object = h.object
	})
	h.Observe(object)
	h.InForce(object)
}

// observeStored passes the stored object to the reporter and the keeper of the status.
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
		State:      thresholds.State{State: state, Message: message, LastProbe: time.Now(), LastTransition: time.Now()},
		Transition: &thresholds.Transition{To: state, Message: message, At: time.Now()},
	})
}

// turn moves probe p of a pod of manyPods to a state now.
func (h *harness) turn(pod int, state v1alpha1.ProbeState) {
	key := keyOf("p")
	key.PodUID = types.UID(fmt.Sprintf("uid-%03d", pod))
	h.ProbeChanged(worker.Change{
		Key:        key,
		State:      thresholds.State{State: state, Message: strconv.Itoa(pod), LastProbe: time.Now(), LastTransition: time.Now()},
		Transition: &thresholds.Transition{To: state, At: time.Now()},
	})
}

// trouble reports that a probe without results cannot run, or can if the message is empty.
func (h *harness) trouble(probe, message string) {
	change := worker.Change{Key: keyOf(probe)}
	if message != "" {
		change.State.Problem = thresholds.Problem{Reason: v1alpha1.ProbeCannotRun, Message: message, Since: time.Now()}
	}
	h.ProbeChanged(change)
}

// rerun reports another run of probe p. Its last transition was at since.
func (h *harness) rerun(state v1alpha1.ProbeState, since time.Time) {
	h.report(state, "ok", since)
}

// say runs probe p with another message and no change of the state, which is Succeeded since then.
func (h *harness) say(message string, since time.Time) { h.report(succeeded, message, since) }

func (h *harness) report(state v1alpha1.ProbeState, message string, since time.Time) {
	h.ProbeChanged(worker.Change{
		Key: keyOf("p"), State: thresholds.State{State: state, Message: message, LastProbe: time.Now(), LastTransition: since},
	})
}

func keyOf(probe string) identity.Key {
	return identity.Key{ContainerKey: identity.ContainerKey{PodUID: "pod-uid", Name: "main"}, ID: identity.ID{Marker: "m", Probe: probe}}
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

// manyPods returns an object of generation 1 with n pods, each with the probe m#p. The node owns
// it.
func manyPods(n int) *v1alpha1.NodePodProbe {
	object := nodePlan()
	object.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Node", Name: "node", UID: "node-1", Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	object.Spec.PodProbes = nil
	for i := range n {
		object.Spec.PodProbes = append(object.Spec.PodProbes, v1alpha1.PodProbe{
			Name: fmt.Sprintf("pod-%03d", i), Namespace: "games", UID: fmt.Sprintf("uid-%03d", i), IP: "10.0.0.1",
			Probes: []v1alpha1.ContainerProbe{{Name: "m#p", ContainerName: "main"}},
		})
	}
	return object
}
