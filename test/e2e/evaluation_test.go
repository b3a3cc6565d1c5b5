// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

// history watches the pod and returns the first statuses of the condition, each with its message.
func (s *suite) history(name, conditionType string, many int) []string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), cluster.Timeout)
	defer cancel()
	watcher, err := s.Client.Watch(ctx, &corev1.PodList{}, &ctrl.ListOptions{
		Namespace: s.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", name),
	})
	cluster.Must(s, err)
	defer watcher.Stop()
	var seen []string
	var last corev1.ConditionStatus
	for len(seen) < many {
		select {
		case <-ctx.Done():
			s.Fatalf("condition %s of pod %s: after %s only %q", conditionType, name, cluster.Timeout, seen)
		case event, open := <-watcher.ResultChan():
			if !open {
				s.Fatalf("the watch of pod %s ended", name)
			}
			pod, isPod := event.Object.(*corev1.Pod)
			if !isPod {
				s.Fatalf("the watch of pod %s returned %v", name, event.Object)
			}
			if c := findCondition(pod, conditionType); c != nil && c.Status != last {
				last = c.Status
				seen = append(seen, fmt.Sprintf("%s: %s", c.Status, c.Message))
			}
		}
	}
	return seen
}

// TestThresholds uses a probe with scripted results, so that the expected states follow from the
// thresholds and not from any clock.
func TestThresholds(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "scripted"}
	s.Create(newPod("scripted", idle, labels))
	s.running("scripted")
	const script = `n=$(($(cat /tmp/n 2>/dev/null || echo 0) + 1)); echo $n >/tmp/n
echo "run $n"; result=$(echo SSFFSFFFSFSS | cut -c$n); [ "${result:-S}" = S ]`
	s.Create(newMarker("scripted", labels,
		newProbe("scripted", shell(script), condition("test.dev/scripted"), thresholds(2, 3))))

	got := s.history("scripted", "test.dev/scripted", 3)
	want := []string{"True: run 2", "False: run 8", "True: run 12"}
	expect.Equal(t, "statuses of the condition", want, got)
}

func TestMessages(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "talker"}
	s.Create(newPod("talker", "touch /tmp/ok; echo first >/tmp/say; "+idle, labels))
	s.running("talker")
	s.Create(newMarker("talker", labels,
		newProbe("say", shell(sayAndCheck), condition("test.dev/say")),
		newProbe("both", shell(`echo to-stdout; echo to-stderr >&2; exit 3`), condition("test.dev/both")),
		newProbe("both-pass", shell(`echo to-stdout; echo to-stderr >&2`), condition("test.dev/both-pass")),
		// containerd returns an error for an output of 16 MiB or more.
		newProbe("huge", shell(`head -c 8000000 /dev/zero | tr '\0' x`), condition("test.dev/huge"), every(10)),
		newProbe("huge-fail", shell(`head -c 8000000 /dev/zero | tr '\0' x >&2; exit 3`), condition("test.dev/huge-fail"), every(10)),
		newProbe("binary", shell(`printf 'before \377\376 after'`), condition("test.dev/binary")),
		newProbe("no-program", corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/no/such/program"}}},
			condition("test.dev/no-program")),
	))

	s.podIs("talker",
		hasCondition("test.dev/say", corev1.ConditionTrue, "first"),
		hasCondition("test.dev/both", corev1.ConditionFalse, "to-stdout", "to-stderr"),
		hasCondition("test.dev/both-pass", corev1.ConditionTrue, "to-stdout", "to-stderr"),
		hasCondition("test.dev/huge", corev1.ConditionTrue, strings.Repeat("x", 900)),
		hasCondition("test.dev/huge-fail", corev1.ConditionFalse, strings.Repeat("x", 900)),
		hasCondition("test.dev/binary", corev1.ConditionTrue, "before", "after"),
		// As in the kubelet, a command that can't be started gives no result.
		lacksCondition("test.dev/no-program"),
	)
	if c := findCondition(s.Pod("talker"), "test.dev/huge"); len(c.Message) > 1024 {
		t.Errorf("message of %d bytes, want at most 1024", len(c.Message))
	}

	before := findCondition(s.Pod("talker"), "test.dev/say")
	s.exec("talker", "echo second >/tmp/say")
	s.podIs("talker", hasCondition("test.dev/say", corev1.ConditionTrue, "second"))
	after := findCondition(s.Pod("talker"), "test.dev/say")
	if !after.LastTransitionTime.Equal(&before.LastTransitionTime) {
		t.Errorf("lastTransitionTime changed from %s to %s although only the message changed", before.LastTransitionTime, after.LastTransitionTime)
	}
}

// hangs is a probe whose process runs much longer than the timeout.
const hangs = `echo started; exec sleep 86399`

func TestHangingProbe(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "hanging"}
	s.Create(newPod("hanging", idle, labels))
	s.running("hanging")
	s.Create(newMarker("hanging", labels,
		newProbe("hangs", shell(hangs), condition("test.dev/hangs"), timeout(1), every(3)),
		newProbe("ticks", shell(`echo tick >>/tmp/ticks`), condition("test.dev/ticks")),
	))

	s.podIs("hanging",
		hasCondition("test.dev/hangs", corev1.ConditionFalse, "timed out"),
		hasCondition("test.dev/ticks", corev1.ConditionTrue))
	s.Eventually("twelve runs of the other probe", func(context.Context) error {
		ticks := strings.Count(s.exec("hanging", "cat /tmp/ticks"), "tick")
		return await.ErrorIf(ticks < 12, "%d ticks", ticks)
	})
	// At most one run is in progress at any time.
	if left := strings.Count(s.exec("hanging", "ps -o args"), "sleep 86399"); left > 1 {
		t.Errorf("%d processes of the hanging probe in the container, want at most one", left)
	}
	s.edit("hanging", func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = m.Spec.Probes[1:] })
	s.podIs("hanging", lacksCondition("test.dev/hangs"))
	s.Eventually("no process of the hanging probe remains", func(context.Context) error {
		left := strings.Count(s.exec("hanging", "ps -o args"), "sleep 86399")
		return await.ErrorIf(left > 0, "%d processes", left)
	})
}

// staleAfter is the staleAfterSeconds of examples/one-primary.
const staleAfter = 30 * time.Second

// TestLostNode kills the agent and the kubelet of the node of the primary for good. Its pod loses the label,
// a replica on another node gets it, and the label returns with the node.
func TestLostNode(t *testing.T) {
	s := newSuite(t)
	nodes := &corev1.NodeList{}
	cluster.Must(t, s.Client.List(t.Context(), nodes))
	if len(nodes.Items) < 2 {
		t.Skip("the cluster has one node: `make test-e2e-nodes` runs this test")
	}
	manifests, err := filepath.Abs("../../examples/one-primary")
	cluster.Must(t, err)
	s.Kubectl("apply", "-f", manifests)
	const primary = "ledger-2"
	s.podIs(primary, hasLabel("role", "primary"))
	s.podIs("ledger-1", hasLabel("role", "unknown"))
	lost := s.Pod(primary).Spec.NodeName
	successor := s.successor(lost)

	began := time.Now()
	s.killOn(lost, "kubelet")
	s.killOn(lost, "seamark-agent")
	s.podIs(primary, hasLabel("role", "unknown"), hasCondition("example.com/primary", corev1.ConditionUnknown))
	took := time.Since(began)
	since := func(at time.Time) time.Duration { return at.Sub(began).Round(time.Second) }
	ready, stale := s.nodeReady(lost), findCondition(s.Pod(primary), "example.com/primary")
	if want := ready.LastTransitionTime.Add(staleAfter); stale.Reason != v1alpha1.ReasonStale || !stale.LastTransitionTime.Time.Equal(want) {
		t.Errorf("condition %+v, want reason %s since %s: %s after the node became not ready", stale, v1alpha1.ReasonStale, want, staleAfter)
	}
	s.podIs(successor, hasLabel("role", "primary"))
	t.Logf("node not ready after %s, label removed after %s, moved to %s after %s",
		since(ready.LastTransitionTime.Time), took.Round(time.Second), successor, since(time.Now()))

	began = time.Now()
	s.clusterUp()
	s.podIs(primary, hasLabel("role", "primary"), hasCondition("example.com/primary", corev1.ConditionTrue))
	s.podIs(successor, hasLabel("role", "unknown"))
	t.Logf("label returned %s after the kubelet was started", since(time.Now()))
	s.systemReady("agent")
}

// successor returns the pod with the highest term on another node.
func (s *suite) successor(lost string) string {
	s.Helper()
	for _, name := range []string{"ledger-1", "ledger-0"} {
		if s.Pod(name).Spec.NodeName != lost {
			return name
		}
	}
	s.Fatalf("all pods are on node %s", lost)
	return ""
}

// nodeReady returns the condition Ready of a lost node.
func (s *suite) nodeReady(name string) corev1.NodeCondition {
	s.Helper()
	node := &corev1.Node{}
	cluster.Must(s, s.Client.Get(s.Context(), ctrl.ObjectKey{Name: name}, node))
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
	if at < 0 {
		s.Fatalf("node %s is not lost: conditions %+v", name, node.Status.Conditions)
	}
	return node.Status.Conditions[at]
}

// killOn kills a program of one node: it must run.
func (s *suite) killOn(node, name string) {
	s.Helper()
	ofNode := func(args []string) bool {
		return s.program(name)(args) && (slices.Contains(args, "--node-name="+node) || slices.Contains(args, "--hostname-override="+node))
	}
	found := processes(s, ofNode)
	if len(found) == 0 {
		s.Fatalf("no process of %s on node %s", name, node)
	}
	for _, pid := range found {
		expect.NoErrorf(s, syscall.Kill(pid, syscall.SIGKILL), "kill %s with process ID %d", name, pid)
	}
}
