// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// npp returns a NodePodProbe that plans the pods, which are in namespace ns.
func npp(node string, generation, observed int64, pods ...v1alpha1.PodProbe) *v1alpha1.NodePodProbe {
	return &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: node, UID: types.UID("uid-" + node), Generation: generation},
		Spec:       v1alpha1.NodePodProbeSpec{PodProbes: pods},
		Status:     v1alpha1.NodePodProbeStatus{ObservedGeneration: observed},
	}
}

func pod(name string, probes ...string) v1alpha1.PodProbe {
	p := v1alpha1.PodProbe{Namespace: "ns", Name: name, UID: name}
	for _, probe := range probes {
		p.Probes = append(p.Probes, v1alpha1.ContainerProbe{Name: probe})
	}
	return p
}

func reported(npp *v1alpha1.NodePodProbe, pod, probe string, state v1alpha1.ProbeState) *v1alpha1.NodePodProbe {
	npp.Status.PodProbeStatuses = append(npp.Status.PodProbeStatuses, v1alpha1.PodProbeStatus{
		Namespace: "ns", Name: pod, UID: pod, ProbeStates: []v1alpha1.ContainerProbeState{{Name: probe, State: state}},
	})
	return npp
}

func slice(node, pod, probe string, state v1alpha1.ProbeState) *seamarkv1alpha1.ProbeReport {
	return &seamarkv1alpha1.ProbeReport{NodeName: node, Pods: []seamarkv1alpha1.PodReport{{
		Namespace: "ns", Name: pod, UID: pod, Probes: []v1alpha1.ContainerProbeState{{Name: probe, State: state}},
	}}}
}

func TestCensus(t *testing.T) {
	web := probe{namespace: "ns", ID: identity.ID{Marker: "web", Probe: "p"}}
	of := func(succeeded, failed, unknown, none int) map[probe]stateCounts {
		return map[probe]stateCounts{web: {
			v1alpha1.ProbeSucceeded: succeeded, v1alpha1.ProbeFailed: failed, v1alpha1.ProbeUnknown: unknown, noResult: none,
		}}
	}
	provided := func(namespace string, states mark.States) podview.Pod {
		return podview.Pod{
			Object: builders.Pod(namespace, "a").Build(), Plan: plan.PodPlan{Probes: []plan.PlannedProbe{{ID: web.ID}}}, Report: mark.PodReport{States: states},
		}
	}
	marker := []v1alpha1.PodProbeMarker{*builders.Marker("ns", "web").Probe(builders.Probe("p")).Build()}
	cases := map[string]struct {
		markers  []v1alpha1.PodProbeMarker
		plans    []*v1alpha1.NodePodProbe
		slices   []*seamarkv1alpha1.ProbeReport
		provided []podview.Pod
		want     map[probe]stateCounts
	}{
		"no markers":    {want: map[probe]stateCounts{}},
		"no pods":       {markers: marker, want: of(0, 0, 0, 0)},
		"no result yet": {markers: marker, plans: []*v1alpha1.NodePodProbe{npp("a", 1, 1, pod("x", "web#p"))}, want: of(0, 0, 0, 1)},
		"every state on two nodes": {
			markers: marker,
			plans: []*v1alpha1.NodePodProbe{
				reported(reported(npp("a", 1, 1, pod("x", "web#p"), pod("y", "web#p")), "x", "web#p", "Succeeded"), "y", "web#p", "Failed"),
				reported(reported(npp("b", 1, 1, pod("v", "web#p"), pod("w", "web#p")), "v", "web#p", "Unknown"), "w", "web#p", "Succeeded"),
			},
			want: of(2, 1, 1, 0),
		},
		"every state in ProbeReports": {
			markers: marker,
			plans:   []*v1alpha1.NodePodProbe{npp("a", 1, 1, pod("x", "web#p"), pod("y", "web#p")), npp("b", 1, 1, pod("v", "web#p"), pod("w", "web#p"))},
			slices: []*seamarkv1alpha1.ProbeReport{
				slice("a", "x", "web#p", "Succeeded"), slice("a", "y", "web#p", "Failed"), slice("b", "v", "web#p", "Unknown"),
			},
			want: of(1, 1, 1, 1),
		},
		"ProbeReport without effect": {
			markers: marker,
			plans:   []*v1alpha1.NodePodProbe{reported(npp("a", 1, 1, pod("x", "web#p")), "x", "web#p", "Succeeded")},
			slices:  []*seamarkv1alpha1.ProbeReport{slice("a", "x", "web#p", "Failed")},
			want:    of(1, 0, 0, 0),
		},
		"state no longer planned": {
			markers: marker,
			plans:   []*v1alpha1.NodePodProbe{reported(npp("a", 2, 1), "x", "web#p", "Succeeded")},
			want:    of(0, 0, 0, 0),
		},
		"deleted marker": {
			plans: []*v1alpha1.NodePodProbe{reported(npp("a", 1, 1, pod("x", "web#p")), "x", "web#p", "Succeeded")},
			want:  map[probe]stateCounts{},
		},
		"same marker name in another namespace": {
			markers: []v1alpha1.PodProbeMarker{*builders.Marker("other", "web").Probe(builders.Probe("p")).Build()},
			plans:   []*v1alpha1.NodePodProbe{reported(npp("a", 1, 1, pod("x", "web#p")), "x", "web#p", "Succeeded")},
			want: map[probe]stateCounts{
				{namespace: "other", ID: web.ID}: newStateCounts(),
			},
		},
		"agents and providers": {
			markers: marker,
			plans:   []*v1alpha1.NodePodProbe{reported(npp("a", 1, 1, pod("x", "web#p")), "x", "web#p", "Failed")},
			provided: []podview.Pod{
				provided("ns", mark.States{web.ID: {State: "Succeeded"}}), provided("ns", nil),
				provided("other", mark.States{web.ID: {State: "Succeeded"}}),
			},
			want: of(1, 1, 0, 1),
		},
		"invalid state and name": {
			markers: marker,
			plans:   []*v1alpha1.NodePodProbe{reported(npp("a", 1, 1, pod("x", "web#p", "web")), "x", "web#p", "Perhaps")},
			want:    of(0, 0, 0, 1),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			slicesOf := func(node string) ([]*seamarkv1alpha1.ProbeReport, error) {
				return slices.DeleteFunc(slices.Clone(tc.slices), func(s *seamarkv1alpha1.ProbeReport) bool { return s.NodeName != node }), nil
			}
			got, err := countStates(tc.markers, tc.plans, slicesOf, tc.provided)
			expect.NoError(t, err)
			expect.Equal(t, "census", tc.want, got, cmp.AllowUnexported(probe{}))
		})
	}
}

func TestPending(t *testing.T) {
	const second = time.Second
	now := time.Unix(1_700_000_000, 0)
	stored := map[string]*v1alpha1.NodePodProbe{}
	p := NewPending(func() time.Time { return now }, func(node string) *v1alpha1.NodePodProbe { return stored[node] })
	see := func(npp *v1alpha1.NodePodProbe) {
		stored[npp.Name] = npp
		p.OnUpdate(nil, npp)
	}
	ages := func(want map[string]time.Duration) {
		t.Helper()
		expect.Equal(t, "ages", want, p.Ages())
	}
	see(npp("a", 1, 1))
	ages(map[string]time.Duration{})
	// A change of a ProbePlan changes the generation of the whole plan.
	stored["a"] = npp("a", 2, 1)
	p.OnAdd(&seamarkv1alpha1.ProbePlan{NodeName: "a"}, false)
	see(npp("b", 1, 0))
	now = now.Add(second)
	ages(map[string]time.Duration{"a": second, "b": second})

	// A newer plan does not restart the wait.
	see(npp("a", 3, 1))
	ages(map[string]time.Duration{"a": second, "b": second})
	// An agent that advances restarts the wait.
	see(npp("a", 3, 2))
	ages(map[string]time.Duration{"a": 0, "b": second})
	see(npp("a", 3, 3))
	ages(map[string]time.Duration{"b": second})

	// A recreated object restarts it too.
	again := npp("b", 1, 0)
	again.UID = "later"
	see(again)
	ages(map[string]time.Duration{"b": 0})
	delete(stored, "b")
	p.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "b", Obj: again})
	ages(map[string]time.Duration{})
}

// brokenCache fails to list.
type brokenCache struct{ client.Reader }

func (brokenCache) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no cache")
}

// registered returns a registry with all metrics of a manager whose caches hold the objects.
func registered(t *testing.T, leads chan struct{}, objects ...client.Object) *prometheus.Registry {
	t.Helper()
	scheme := runtime.NewScheme()
	expect.NoError(t, v1alpha1.AddToScheme(scheme))
	start := time.Unix(1_700_000_000, 0)
	plans := map[string]*v1alpha1.NodePodProbe{}
	pending := NewPending(func() time.Time { return start }, func(node string) *v1alpha1.NodePodProbe { return plans[node] })
	for _, object := range objects {
		if npp, ok := object.(*v1alpha1.NodePodProbe); ok {
			plans[npp.Name] = npp
		}
		pending.OnAdd(object, true)
	}
	pending.now = func() time.Time { return start.Add(90 * time.Second) }
	registry := prometheus.NewPedanticRegistry()
	New(registry).Watch("v1", Caches{
		Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Pending: pending, Leads: leads,
		Slices: func(_ context.Context, node string) ([]*seamarkv1alpha1.ProbeReport, error) {
			return []*seamarkv1alpha1.ProbeReport{slice(node, "x", "web#p", "Failed")}, nil
		},
		Plans: func(context.Context) ([]*v1alpha1.NodePodProbe, error) {
			return slices.Collect(maps.Values(plans)), nil
		},
		Provided: func(context.Context) ([]podview.Pod, error) { return nil, nil },
	})
	return registry
}

func TestCollector(t *testing.T) {
	leads := make(chan struct{})
	registry := registered(t, leads,
		builders.Marker("ns", "web").Probe(builders.Probe("p")).Build(),
		npp("node-a", 1, 1, pod("x", "web#p"), pod("y", "web#p")),
		npp("node-b", 4, 3), npp("node-c", 1, 1),
	)
	names := []string{
		"seamark_manager_probed_pods", "seamark_manager_node_planned_probes",
		"seamark_manager_node_plan_pending_seconds", "seamark_manager_plans",
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(""), names...); err != nil {
		t.Errorf("series of a manager that does not lead: %v", err)
	}
	close(leads)
	const want = `
# HELP seamark_manager_node_plan_pending_seconds Time since the node's agent last advanced to a newer plan, or since a newer plan was available, whichever is later; no series for a node whose agent runs the latest plan. Exported by the leader only.
# TYPE seamark_manager_node_plan_pending_seconds gauge
seamark_manager_node_plan_pending_seconds{node="node-b"} 90
# HELP seamark_manager_node_planned_probes Probes in the plan of a node; no series for a node without probes. Exported by the leader only.
# TYPE seamark_manager_node_planned_probes gauge
seamark_manager_node_planned_probes{node="node-a"} 2
# HELP seamark_manager_plans NodePodProbes by whether the agent runs the latest plan: true or false. Exported by the leader only.
# TYPE seamark_manager_plans gauge
seamark_manager_plans{in_force="false"} 1
seamark_manager_plans{in_force="true"} 2
# HELP seamark_manager_probed_pods Pods with a planned probe by reported state: Succeeded, Failed, Unknown, or NoResult before the first report. Exported by the leader only.
# TYPE seamark_manager_probed_pods gauge
seamark_manager_probed_pods{marker="web",namespace="ns",probe="p",state="Failed"} 1
seamark_manager_probed_pods{marker="web",namespace="ns",probe="p",state="NoResult"} 1
seamark_manager_probed_pods{marker="web",namespace="ns",probe="p",state="Succeeded"} 0
seamark_manager_probed_pods{marker="web",namespace="ns",probe="p",state="Unknown"} 0
`
	expect.Success(t, testutil.GatherAndCompare(registry, strings.NewReader(want), names...))
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

func TestCollectorReportsListErrors(t *testing.T) {
	leads := make(chan struct{})
	close(leads)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(Caches{Reader: brokenCache{}, Pending: NewPending(time.Now, nil), Leads: leads}))
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), "list markers: no cache") {
		t.Errorf("error %v, want one that names the failed list", err)
	}
}
