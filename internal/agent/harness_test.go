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

// desk is a reporter in a synctest bubble, whose API server and event log it is.
type desk struct {
	*reporter
	t     *testing.T
	start time.Time
	stop  func()

	// server guards what follows: the world outside of the reporter.
	server sync.Mutex
	object *v1alpha1.NodePodProbe
	// away makes writes fail, delay makes them take long.
	away  bool
	delay time.Duration
	log   []string
}

func newDesk(t *testing.T, object *v1alpha1.NodePodProbe) *desk {
	d := &desk{t: t, start: time.Now(), object: object}
	d.reporter = newReporter(d, 100*time.Millisecond, agentmetrics.New(prometheus.NewRegistry()), testr.New(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.run(ctx, d)
	}()
	d.stop = func() {
		cancel()
		<-done
	}
	return d
}

// world changes what is outside of the reporter.
func (d *desk) world(change func()) {
	d.server.Lock()
	defer d.server.Unlock()
	change()
}

// note adds a line to the log, with the time since the start before it.
func (d *desk) note(format string, args ...any) {
	d.log = append(d.log, fmt.Sprintf("%s %s", time.Since(d.start), fmt.Sprintf(format, args...)))
}

// WriteStatus applies a patch as the API server does.
func (d *desk) WriteStatus(ctx context.Context, patch []byte) (string, error) {
	var delay time.Duration
	d.world(func() { delay = d.delay })
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	d.server.Lock()
	defer d.server.Unlock()
	if d.away {
		d.note("refused")
		return "", errors.New("connection refused")
	}
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	var uid types.UID
	var status v1alpha1.NodePodProbeStatus
	if err := errors.Join(json.Unmarshal(patch, &operations), json.Unmarshal(operations[0].Value, &uid), json.Unmarshal(operations[1].Value, &status)); err != nil {
		d.t.Fatal(err)
	}
	if d.object == nil || d.object.UID != uid {
		d.note("no such object")
		return "", errors.New("the test of the UID failed")
	}
	states := ""
	for _, pod := range status.PodProbeStatuses {
		for _, state := range pod.ProbeStates {
			states += fmt.Sprintf(" %s=%s(%s)", state.Name, state.State, state.Message)
		}
	}
	d.note("wrote %d:%s", status.ObservedGeneration, states)
	d.edit(func(object *v1alpha1.NodePodProbe) { object.Status = status })
	return d.object.ResourceVersion, nil
}

// edit replaces the object by a changed copy with another resourceVersion.
func (d *desk) edit(change func(*v1alpha1.NodePodProbe)) {
	object := d.object.DeepCopy()
	change(object)
	version, err := strconv.Atoi(object.ResourceVersion)
	if err != nil {
		d.t.Fatal(err)
	}
	object.ResourceVersion = strconv.Itoa(version + 1)
	d.object = object
}

func (d *desk) Emit(reported []report.Event) {
	d.server.Lock()
	defer d.server.Unlock()
	for _, e := range reported {
		d.note("event %s %s", e.Probe.Name, e.State)
	}
}

// put has the object's plan in force.
func (d *desk) put() {
	var object *v1alpha1.NodePodProbe
	d.world(func() { object = d.object })
	d.Observe(object)
	d.InForce(object)
}

// see has the reporter see the object as it is stored now.
func (d *desk) see() {
	var object *v1alpha1.NodePodProbe
	d.world(func() { object = d.object })
	d.Observe(object)
}

// tell moves a probe to a state now.
func (d *desk) tell(probe string, state v1alpha1.ProbeState, message string) {
	key := keyOf(probe)
	d.ProbeChanged(worker.Change{
		Key:        key,
		State:      streak.State{State: state, Message: message, LastProbe: time.Now(), LastTransition: time.Now()},
		Transition: &streak.Transition{To: state, Message: message, At: time.Now()},
	})
}

// rerun reports another run of the probe p whose state has stayed since then.
func (d *desk) rerun(state v1alpha1.ProbeState, since time.Time) {
	d.ProbeChanged(worker.Change{
		Key: keyOf("p"), State: streak.State{State: state, Message: "ok", LastProbe: time.Now(), LastTransition: since},
	})
}

func keyOf(probe string) probeid.Key {
	return probeid.Key{ContainerKey: probeid.ContainerKey{PodUID: "pod-uid", Name: "main"}, ID: probeid.ID{Marker: "m", Probe: probe}}
}

// pass lets time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// nodePlan is an object of generation 1 whose pod has the probes m#p, m#q and m#r.
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
