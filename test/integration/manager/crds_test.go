// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// A manager that starts before the CRDs are served is alive and not ready, says why, and works as
// soon as they are served. They arrive one after the other.
func TestManagerWaitsForCRDs(t *testing.T) {
	t.Parallel()
	own := env.Start(t, env.NoCRDs())
	w := newWorldWithoutManager(t, own)
	address := env.FreeAddress(t)
	lines := &logged{}
	program.StartManager(t, manager.Options{
		Config: own.Component(t, manager.Name), LeaderElection: true, LeaderElectionNamespace: env.SystemNamespace,
		HealthProbeBindAddress: address, Logger: funcr.New(lines.add, funcr.Options{}),
	})
	const all = "the API server does not serve nodepodprobes.apps.kruise.io/v1alpha1, podprobemarkers.apps.kruise.io/v1alpha1, " +
		"probeplans.seamark.dev/v1alpha1, probereports.seamark.dev/v1alpha1: apply the CRDs of Seamark"
	w.Until("the manager waits", func() error {
		answer := env.Get(t.Context(), address, "/readyz")
		return await.ErrorIf(answer != "503 crds: "+all+"\ncaches: not synced\n", "%s", answer)
	})
	before := w.Requested()
	const watched = 4 * time.Second
	(&fleet{world: w}).wait(watched)
	after := w.Requested()
	if answer := env.Get(t.Context(), address, "/healthz"); answer != "200 ok\n" {
		t.Errorf("/healthz: %q, want ok", answer)
	}
	if n := lines.count("Waiting for the CRDs"); n != 1 {
		t.Errorf("%d lines say that the manager waits for the CRDs, want 1:\n%s", n, lines)
	}
	t.Logf("requests in %s: %v", watched, after.Since(before))

	w.Must(own.InstallCRDs())
	w.ready(address)
	if n := lines.count("The API server serves the CRDs"); n != 1 {
		t.Errorf("%d lines say that the CRDs are served, want 1:\n%s", n, lines)
	}
	w.pod("a", w.node("late"))
	w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").Label(succeeded, "web", "1")))
	w.planned("late", "a/web#p")
	w.report("late", states{"web#p": succeeded})
	w.marked("a", "label web=1")
	if w.leader() == "" {
		t.Error("the manager works without the lease")
	}
}

// logged collects the lines of a log.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) add(_, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *logged) count(part string) int { return strings.Count(l.String(), part) }

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
