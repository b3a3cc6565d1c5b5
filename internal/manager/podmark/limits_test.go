// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// The cache always has another label than the one that was written, as if another client reset it.
func TestWritesOfAnAlternatingPodAreLimited(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "healthy", "true")).Build()
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	server := &recorded{}
	r := reconciler(t, server, marker, builders.Pod("ns", "a").Label("app", "game").Build(), reported("uid-a", "Succeeded"))
	now := time.Unix(1_700_000_000, 0)
	r.Now = func() time.Time { return now }
	end := now.Add(10 * time.Minute)
	for now.Before(end) {
		r.expectations.Forget(key)
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		expect.NoError(t, err)
		why, _ := r.limits.problem(key)
		expect.Equal(t, "the marker gets the limit", why, problemOfPod(r).Limited)
		now = now.Add(min(result.RequeueAfter, time.Second/10) + time.Millisecond)
	}
	// The burst, the backing off, and one write per 30 seconds.
	if n := len(server.labels); n < 20 || n > 5+5+20 {
		t.Errorf("%d writes in 10 minutes, want about 29", n)
	}
	r.forget(key)
	if r.limits.pods.Len() > 0 {
		t.Error("the limit of a deleted pod is kept")
	}
}

// A probe changes its state every second. When the quota is used up, there is a write every 5 seconds,
// with the state of that moment.
func TestWritesOfAFlappingProbeAreLimited(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p").
		Label(v1alpha1.ProbeSucceeded, "healthy", "true").Label(v1alpha1.ProbeFailed, "healthy", "false")).Build()
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	events := record.NewFakeRecorder(10)
	server := &recorded{}
	r := reconciler(t, server)
	start := time.Unix(1_700_000_000, 0)
	now := start
	r.Now, r.Recorder = func() time.Time { return now }, events
	for ; now.Before(start.Add(2 * time.Minute)); now = now.Add(time.Second) {
		state, value := v1alpha1.ProbeSucceeded, "true"
		if now.Unix()%2 > 0 {
			state, value = v1alpha1.ProbeFailed, "false"
		}
		r.Reader.Client = fakeapi.Client(t, marker, builders.Pod("ns", "a").Label("app", "game").Build(), reported("uid-a", state)).
			WithReturnManagedFields().Build()
		writes := len(server.labels)
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		expect.NoError(t, err)
		if wrote := len(server.labels) > writes; wrote && server.labels[writes]["healthy"] != value {
			t.Errorf("after %s, wrote %v, want the newest state %s", now.Sub(start), server.labels[writes], value)
		} else if wait := result.RequeueAfter; !wrote && server.labels[writes-1]["healthy"] != value && (wait <= 0 || wait > problems.MarkInterval) {
			t.Errorf("after %s, the write waits for %s", now.Sub(start), wait)
		}
	}
	if n := len(server.labels); n < 50 || n > quota+2*60/5 {
		t.Errorf("%d writes in 2 minutes, want at most %d", n, quota+2*60/5)
	}
	if got := problemOfPod(r).Limited; got != problems.LimitRate {
		t.Errorf("the marker gets the limit %q", got)
	}
	if event := <-events.Events; !strings.Contains(event, "because they change more often than every 5s: label healthy") || len(events.Events) > 0 {
		t.Errorf("event %q, and %d more", event, len(events.Events))
	}
}

// problemOfPod returns the problem of pod a with marker web.
func problemOfPod(r *Reconciler) problems.Mark {
	return r.Problems.OfMarker(types.NamespacedName{Namespace: "ns", Name: "web"})[types.NamespacedName{Namespace: "ns", Name: "a"}]
}
