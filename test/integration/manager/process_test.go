// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// writes counts the writes of the resources that the manager writes, since before.
func (w *world) writes(before env.Requests) map[string]int {
	w.Helper()
	after := w.Requested()
	all := map[string]int{}
	for request, count := range after.Since(before) {
		switch request.Resource {
		case "pods", "nodepodprobes", "probeplans", "probereports", "podprobemarkers", "events":
			if request.IsWrite() {
				all[fmt.Sprintf("%s %s/%s %s", request.Verb, request.Resource, request.Subresource, request.Code)] += count
			}
		}
	}
	return all
}

// versions returns the resource version of every pod, marker, plan and ProbeReport.
func (w *world) versions() map[string]string {
	w.Helper()
	all := map[string]string{}
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Pod"), v1alpha1.GroupVersion().WithKind("PodProbeMarker"), v1alpha1.GroupVersion().WithKind("NodePodProbe"),
		seamarkv1alpha1.GroupVersion().WithKind("ProbePlan"), seamarkv1alpha1.GroupVersion().WithKind("ProbeReport"),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		w.Must(w.Client.List(w.Context(), list))
		for _, object := range list.Items {
			if object.Namespace == "" || object.Namespace == w.Namespace {
				all[kind.Kind+" "+object.Name] = object.ResourceVersion
			}
		}
	}
	return all
}

// TestRestart restarts the manager with states that a new manager could get wrong: a key
// conflict, a mark of a failed probe, and an ended pod.
func TestRestart(t *testing.T) {
	e := servers.Parallel(t)
	stop := startManager(t, e)
	w := newWorldWithoutManager(t, e)
	defer w.clean()
	w.node("restart")
	for _, name := range []string{"a", "b", "ended"} {
		w.pod(name, "restart")
	}
	w.marker(builders.Marker(w.Namespace, "web").Probe(documented()))
	w.marker(builders.Marker(w.Namespace, "api").Probe(builders.Probe("p").Label(failed, "gameserver-idle", "api")))
	w.planned("restart", "a/web#Idle", "b/web#Idle", "ended/web#Idle", "a/api#p", "b/api#p", "ended/api#p")
	w.report("restart", states{"web#Idle": succeeded, "api#p": failed})
	want := []string{"label gameserver-idle=api", "annotation controller.kubernetes.io/pod-deletion-cost=-10", "condition game.io/idle=True"}
	for _, pod := range []string{"a", "b", "ended"} {
		w.marked(pod, want...)
	}
	ended := w.stored("ended")
	w.Delete(ended)
	w.matched("web", 2)
	w.matched("api", 2)
	w.settle(3)
	stop()

	before := w.Requested()
	versions := w.versions()
	startManager(t, e)
	w.settle(4)
	if writes := w.writes(before); len(writes) > 0 {
		t.Errorf("writes after a restart: %v", writes)
	}
	for name, version := range w.versions() {
		if versions[name] != version {
			t.Errorf("a restart changed %s from version %s to %s", name, versions[name], version)
		}
	}
}

// TestChangesWhileDown changes states, markers and pods while no manager runs.
func TestChangesWhileDown(t *testing.T) {
	e := servers.Parallel(t)
	stop := startManager(t, e)
	w := newWorldWithoutManager(t, e)
	defer w.clean()
	w.node("down")
	a, b := w.pod("a", "down"), w.pod("b", "down")
	w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").Label(succeeded, "web", "1")))
	w.marker(builders.Marker(w.Namespace, "api").Probe(builders.Probe("p").Label(succeeded, "api", "1")))
	w.planned("down", "a/web#p", "b/web#p", "a/api#p", "b/api#p")
	w.report("down", states{"web#p": succeeded, "api#p": succeeded})
	w.marked("a", "label web=1", "label api=1")
	w.marked("b", "label web=1", "label api=1")
	w.matched("web", 2)
	w.matched("api", 2)
	stop()

	w.report("down", states{"web#p": failed, "api#p": succeeded})
	w.Delete(w.markerNamed("api"))
	w.Patch(b, `{"metadata":{"labels":{"app":"db"}}}`)
	w.Delete(a, client.GracePeriodSeconds(0))
	w.pod("a", "down")
	w.pod("c", "down")
	startManager(t, e)
	w.planned("down", "a/web#p", "c/web#p")
	w.marked("a")
	w.marked("b")
	w.report("down", states{"web#p": succeeded})
	w.marked("a", "label web=1")
	w.marked("c", "label web=1")
	w.matched("web", 2)
}

func TestLeaderElectionAndHealth(t *testing.T) {
	e := servers.Parallel(t)
	w := newWorldWithoutManager(t, e)
	defer w.clean()
	electing := func() (stop func(), health string) {
		health = env.FreeAddress(t)
		return program.StartManager(t, manager.Options{
			Config: e.Component(t, manager.Name), LeaderElection: true, LeaderElectionNamespace: env.SystemNamespace,
			HealthProbeBindAddress: health,
		}), health
	}
	stopFirst, first := electing()
	w.ready(first)
	w.pod("a", w.node("elected"))
	_, second := electing()
	w.ready(second)

	before := w.leader()
	stopFirst()
	if after := w.leader(); before == "" || after == before {
		t.Errorf("lease holder %q after the manager that held it stopped, before %q: want a released lease", after, before)
	}
	// The lease lasts 15 seconds. The other manager takes over a released one at its next attempt, within 5 seconds.
	w.Poll.Timeout = 10 * time.Second
	w.Until("the other manager leads", func() error { return await.ErrorIf(w.leader() == "", "nobody holds the lease") })
	w.Poll.Timeout = await.Timeout
	w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").Label(succeeded, "web", "1")))
	w.planned("elected", "a/web#p")
}

// leader returns the holder of the managers' lease.
func (w *world) leader() string {
	w.Helper()
	lease := &coordinationv1.Lease{}
	w.Must(w.Client.Get(w.Context(), client.ObjectKey{Namespace: env.SystemNamespace, Name: manager.Name}, lease))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func (w *world) ready(address string) {
	w.Helper()
	w.Until(address+" is ready", func() error {
		for _, path := range []string{"/healthz", "/readyz"} {
			if answer := env.Get(w.Context(), address, path); !strings.HasPrefix(answer, "200") {
				return fmt.Errorf("%s: %s", path, answer)
			}
		}
		return nil
	})
}

// TestUpstreamCRDs runs the manager with upstream's CRDs, which have fewer fields and no rules.
func TestUpstreamCRDs(t *testing.T) {
	t.Parallel()
	upstream := env.Start(t, env.UpstreamCRDs())
	w := newWorld(t, upstream)
	w.pod("a", w.node("upstream"))
	w.marker(builders.Marker(w.Namespace, "web").Probe(documented()).
		Probe(builders.Probe("db").Container("db").Condition("game.io/db")))
	// Seamark's own rules reject this marker, so the manager ignores it.
	w.marker(builders.Marker(w.Namespace, "native").Probe(builders.Probe("p").Condition("Ready")))
	w.planned("upstream", "a/web#Idle")
	w.report("upstream", states{"web#Idle": succeeded})
	w.marked("a", "label gameserver-idle=true", "annotation controller.kubernetes.io/pod-deletion-cost=-10", "condition game.io/idle=True")
	w.matched("web", 1)
	w.event("web", "ContainerNotFound", `container "db" not found`)
	w.event("native", "InvalidSpec", "Ready")
	w.settle(3)

	// The API server does not store the status conditions; the manager must not retry.
	before := w.Requested()
	w.Patch(w.markerNamed("web"), `{"metadata":{"annotations":{"a":"b"}}}`)
	w.settle(3)
	if writes := w.writes(before); len(writes) != 1 || writes["PATCH podprobemarkers/ 200"] != 1 {
		t.Errorf("writes %v, want only that of the test", writes)
	}
	w.report("upstream", states{"web#Idle": failed})
	w.marked("a", "label gameserver-idle=false", "annotation controller.kubernetes.io/pod-deletion-cost=10", "condition game.io/idle=False")
	w.Delete(w.markerNamed("web"))
	w.marked("a")
}

// TestStandby checks that a manager that waits for the lease does not accumulate work in its
// queues: it may wait for months. The queues are those of the process.
func TestStandby(t *testing.T) {
	e := servers.Serial(t)
	w := newWorldWithoutManager(t, e)
	defer w.clean()
	before := queued(t)
	for range 2 {
		health := env.FreeAddress(t)
		program.StartManager(t, manager.Options{
			Config: e.Component(t, manager.Name), LeaderElection: true, LeaderElectionNamespace: env.SystemNamespace,
			HealthProbeBindAddress: health,
		})
		w.ready(health)
	}
	w.node("standby")
	w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").Label(succeeded, "web", "1")))
	for i := range 10 {
		w.pod(fmt.Sprint("pod-", i), "standby")
	}
	w.matched("web", 10)
	w.report("standby", states{"web#p": succeeded})
	w.marked("pod-9", "label web=1")
	w.Until("all queues are empty", func() error {
		more := queued(t) - before
		return await.ErrorIf(more > 0, "%v queued requests", more)
	})
}

// queued returns the number of requests in the queues of this process's managers.
func queued(t *testing.T) float64 {
	families, err := ctrlmetrics.Registry.Gather()
	expect.NoError(t, err)
	sum := 0.0
	for _, family := range families {
		if family.GetName() != "workqueue_depth" {
			continue
		}
		for _, metric := range family.GetMetric() {
			sum += metric.GetGauge().GetValue()
		}
	}
	return sum
}

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
	expect.Equal(t, "/healthz", "200 ok\n", env.Get(t.Context(), address, "/healthz"))
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
