// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func reader(t *testing.T, serverless bool, objects ...client.Object) gather.Reader {
	t.Helper()
	return gather.Reader{
		Client:   fakeapi.Client(t, objects...).Build(),
		Compiler: plan.NewCompiler(),
		Options:  podview.Options{Defaults: plan.KubernetesDefaults(), Serverless: serverless},
	}
}

// broken is a client that fails every request.
type broken struct{}

var errBroken = errors.New("broken client")

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errBroken
}

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error { return errBroken }

func TestMarkersOmitsThoseThatDoNotCompile(t *testing.T) {
	invalid := builders.Marker("ns", "invalid").Build()
	invalid.Spec.Selector = nil
	r := reader(t, false, invalid, builders.Marker("ns", "web").Build(), builders.Marker("other", "api").Build())
	markers, err := r.Markers(t.Context(), "ns")
	expect.NoError(t, err)
	names := make([]string, 0, len(markers))
	for _, m := range markers {
		names = append(names, m.Key().String())
	}
	expect.Equal(t, "markers", []string{"ns/web"}, names)
}

func TestPod(t *testing.T) {
	states := []v1alpha1.ContainerProbeState{{Name: "web#idle", State: v1alpha1.ProbeSucceeded}}
	npp := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Status: v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{
			{Namespace: "ns", Name: "a", UID: "uid-a", ProbeStates: states},
		}},
	}
	slice := &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{Name: "node-4.0"}, NodeName: "node-4",
		Pods: []seamarkv1alpha1.PodReport{{Namespace: "ns", Name: "a", UID: "uid-a", Probes: states}},
	}
	node := func(name, kind string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.NodeTypeLabel: kind}}}
	}
	marker := builders.Marker("ns", "web").Probe(builders.Probe("idle").Condition("game.io/idle")).
		Probe(builders.Probe("bare").Label(v1alpha1.ProbeSucceeded, "a", "b")).Build()
	idle := identity.ID{Marker: "web", Probe: "idle"}
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a").Label("app", "game") }
	provided := v1alpha1.ContainerProbeState{Name: "web#idle", State: v1alpha1.ProbeFailed}
	cases := map[string]struct {
		serverless bool
		pod        *builders.PodBuilder
		place      podview.NodeKind
		probes     []string
		report     mark.PodReport
	}{
		"reported by the agent": {
			pod: pod(), probes: []string{"idle", "bare"},
			report: mark.PodReport{Reported: true, States: mark.States{idle: states[0]}},
		},
		"reported in a ProbeReport": {
			pod: pod().Node("node-4"), probes: []string{"idle", "bare"},
			report: mark.PodReport{Reported: true, States: mark.States{idle: states[0]}},
		},
		"ProbeReport of another node":        {pod: pod().Node("node-5"), probes: []string{"idle", "bare"}},
		"different UID":                      {pod: pod().UID("later"), probes: []string{"idle", "bare"}, report: mark.PodReport{Reported: true}},
		"not bound":                          {pod: pod().Node("")},
		"no NodePodProbe":                    {pod: pod().Node("node-2"), probes: []string{"idle", "bare"}},
		"on kubelet node":                    {serverless: true, pod: pod().Node("node-2"), place: podview.KubeletNode, probes: []string{"idle", "bare"}},
		"on unknown node":                    {serverless: true, pod: pod().Node("node-3"), probes: []string{"idle", "bare"}},
		"on virtual node, without providers": {pod: pod().Node("virtual"), probes: []string{"idle", "bare"}},
		"reported by the provider": {
			serverless: true, pod: pod().Node("virtual").Condition(corev1.PodCondition{Type: "game.io/idle", Status: "False"}),
			place: podview.VirtualNode, probes: []string{"idle"},
			report: mark.PodReport{Reported: true, Provider: true, States: mark.States{idle: provided}},
		},
		"on virtual node, not initialized": {
			serverless: true, pod: pod().Node("virtual").Initialized("False"),
			place: podview.VirtualNode, report: mark.PodReport{Reported: true, Provider: true, States: mark.States{}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := reader(t, tc.serverless, npp, slice, marker, node("node-2", ""), node("virtual", "virtual-kubelet"))
			markers, err := r.Markers(t.Context(), "ns")
			expect.NoError(t, err)
			got, err := r.Pod(t.Context(), tc.pod.Build(), markers)
			expect.NoError(t, err)
			var probes []string
			for _, probe := range got.Plan.Probes {
				probes = append(probes, probe.ID.Probe)
			}
			if diff := cmp.Diff(tc.probes, probes); diff != "" || got.NodeKind != tc.place {
				t.Errorf("place %d, want %d; probes (-want +got):\n%s", got.NodeKind, tc.place, diff)
			}
			expect.Equal(t, "report", tc.report, got.Report)
			planned, err := r.Plan(t.Context(), tc.pod.Build(), markers)
			if diff := cmp.Diff(got.Plan, planned); diff != "" || err != nil {
				t.Errorf("plan without report, error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestReaderReturnsErrorsOfTheClient(t *testing.T) {
	r := gather.Reader{Client: broken{}, Compiler: plan.NewCompiler(), Options: podview.Options{Serverless: true}}
	pod, marker := builders.Pod("ns", "a").Build(), builders.Marker("ns", "web").Build()
	calls := map[string]func(context.Context) error{
		"Markers":       func(ctx context.Context) error { _, err := r.Markers(ctx, "ns"); return err },
		"Pod":           func(ctx context.Context) error { _, err := r.Pod(ctx, pod, nil); return err },
		"Plan":          func(ctx context.Context) error { _, err := r.Plan(ctx, pod, nil); return err },
		"ProviderPlan":  func(ctx context.Context) error { _, err := r.ProviderPlan(ctx, pod); return err },
		"NodeKind":      func(ctx context.Context) error { _, err := r.NodeKind(ctx, pod); return err },
		"Slices":        func(ctx context.Context) error { _, err := r.Slices(ctx, "n"); return err },
		"Report":        func(ctx context.Context) error { _, err := r.Report(ctx, "n"); return err },
		"NodePodProbe":  func(ctx context.Context) error { _, err := r.NodePodProbe(ctx, "n"); return err },
		"LivePod":       func(ctx context.Context) error { _, err := r.LivePod(ctx, client.ObjectKeyFromObject(pod)); return err },
		"NodePods":      func(ctx context.Context) error { _, err := r.NodePods(ctx, "n"); return err },
		"NamespacePods": func(ctx context.Context) error { _, err := r.NamespacePods(ctx, "ns"); return err },
		"SelectedPods":  func(ctx context.Context) error { _, err := r.SelectedPods(ctx, marker); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			if err := call(t.Context()); !errors.Is(err, errBroken) {
				t.Errorf("error %v, want %v", err, errBroken)
			}
		})
	}
}

// filling is an informer that is not synced.
type filling struct{ fakeapi.Store }

func (filling) HasSynced() bool { return false }

func report(node string, number int) *seamarkv1alpha1.ProbeReport {
	return &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%d", node, number)}, NodeName: node}
}

func TestReaderListsFromSyncedStores(t *testing.T) {
	pods := []client.Object{
		builders.Pod("ns", "a").Label("app", "game").Node("n").Build(), builders.Pod("ns", "b").Label("app", "db").Node("n").Build(),
		builders.Pod("ns", "c").Label("app", "game").Node("m").Build(), builders.Pod("other", "d").Label("app", "game").Node("n").Build(),
	}
	marker := builders.Marker("ns", "web").Selector("app", "game").Build()
	markers := []client.Object{marker, builders.Marker("other", "web").Build()}
	reports := []client.Object{report("n", 0), report("n", 1), report("m", 0)}
	want := map[string][]string{
		"reports": {"n.0", "n.1"},
		"node":    {"ns/a", "ns/b", "other/d"}, "namespace": {"ns/a", "ns/b", "ns/c"}, "selected": {"ns/a", "ns/c"}, "markers": {"ns/web"}, "of labels": {"ns/web"},
	}
	synced := gather.Reader{
		Client: broken{}, Compiler: plan.NewCompiler(),
		Stores: gather.Stores{
			Pods: fakeapi.NewStore(t, gather.PodIndexers(), pods), Markers: fakeapi.NewStore(t, gather.MarkerIndexers(), markers),
			Slices: fakeapi.NewStore(t, gather.SliceIndexers(), reports),
		},
	}
	all := fakeapi.Client(t, slices.Concat(pods, markers, reports)...).WithIndex(&corev1.Pod{}, gather.NodeNameField, func(object client.Object) []string {
		return []string{object.(*corev1.Pod).Spec.NodeName} //nolint:forcetypeassert // a panic fails the test
	}).Build()
	bare := gather.Reader{Client: all, Compiler: plan.NewCompiler()}
	unsynced, empty := bare, filling{fakeapi.NewStore[any](t, nil, nil)}
	unsynced.Stores = gather.Stores{Pods: empty, Markers: empty, Slices: empty}
	for name, r := range map[string]gather.Reader{
		"synced": synced, "not synced": unsynced, "no stores": bare,
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string][]string{
				"node":      names(func() ([]*corev1.Pod, error) { return r.NodePods(t.Context(), "n") }),
				"namespace": names(func() ([]*corev1.Pod, error) { return r.NamespacePods(t.Context(), "ns") }),
				"selected":  names(func() ([]*corev1.Pod, error) { return r.SelectedPods(t.Context(), marker) }),
			}
			found, err := r.Markers(t.Context(), "ns")
			expect.NoError(t, err)
			for _, m := range found {
				got["markers"] = append(got["markers"], m.Key().String())
			}
			if found, err = r.MarkersOf(t.Context(), "ns", map[string]string{"app": "db"}, map[string]string{"app": "game", "tier": "1"}); err != nil {
				t.Fatal(err)
			}
			for _, m := range found {
				got["of labels"] = append(got["of labels"], m.Key().String())
			}
			slicesOf, err := r.Slices(t.Context(), "n")
			expect.NoError(t, err)
			for _, slice := range slicesOf {
				got["reports"] = append(got["reports"], slice.Name)
			}
			slices.Sort(got["reports"])
			expect.Equal(t, "objects", want, got)
		})
	}
}

// names returns the sorted names of the pods, or the error.
func names(list func() ([]*corev1.Pod, error)) []string {
	pods, err := list()
	if err != nil {
		return []string{err.Error()}
	}
	found := make([]string, 0, len(pods))
	for _, pod := range pods {
		found = append(found, client.ObjectKeyFromObject(pod).String())
	}
	slices.Sort(found)
	return found
}
