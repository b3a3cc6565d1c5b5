// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

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
	lost := s.getPod(primary).Spec.NodeName
	successor := s.successor(lost)

	began := time.Now()
	s.killOn(lost, "kubelet")
	s.killOn(lost, "seamark-agent")
	s.podIs(primary, hasLabel("role", "unknown"), hasCondition("example.com/primary", corev1.ConditionUnknown))
	took := time.Since(began)
	since := func(at time.Time) time.Duration { return at.Sub(began).Round(time.Second) }
	ready, stale := s.nodeReady(lost), findCondition(s.getPod(primary), "example.com/primary")
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
		if s.getPod(name).Spec.NodeName != lost {
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
