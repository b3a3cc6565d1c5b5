// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
)

// command returns a handler that takes about n bytes.
func command(n int) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{strings.Repeat("a", n)}}}
}

// aged returns a pod that was created at the second.
func aged(namespace, name string, second int) *corev1.Pod {
	pod := builders.Pod(namespace, name).UID(namespace+"-"+name).Label("app", "game").Build()
	pod.CreationTimestamp = metav1.NewTime(time.Unix(int64(second), 0))
	return pod
}

// TestFitHonestMaximum: 250 pods with 8 probes each, of ordinary size, are all planned.
func TestFitHonestMaximum(t *testing.T) {
	var pods []*corev1.Pod
	var markers []*v1alpha1.PodProbeMarker
	http := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
		Path: "/internal/health/matchmaking", Port: intstr.FromInt32(8080),
		HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "server.example.com"}},
	}}
	shell := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{
		"/bin/sh", "-c", "redis-cli -h localhost info replication | grep -q role:master",
	}}}
	for i := range 4 {
		markers = append(markers, builders.Marker("production", fmt.Sprintf("replica-of-database-%d", i)).
			Probe(builders.Probe("readiness").Handler(http)).Probe(builders.Probe("role-primary").Handler(shell)).Build())
	}
	for i := range 250 {
		pod := aged("production", fmt.Sprintf("database-5d8f7c9b6d-%05d", i), i)
		pod.UID = "0b2c9a5e-6f0c-4d55-9df2-5c1d7c1a9b3e"
		pod.Status.PodIP = "fd00:10:244:1234::abcd"
		pods = append(pods, pod)
	}
	whole := plan.Node(pods, compile(t, markers...), plan.KubernetesDefaults())
	fitted, short := plan.Fit(whole, pods, plan.MaxBytes)
	t.Logf("%d of %d bytes, %d with the report", plan.Size(whole), plan.MaxBytes, stored(t, whole))
	if len(short) > 0 || len(fitted.PodProbes) != 250 {
		t.Errorf("%d pods planned with shortages %v, want all 250", len(fitted.PodProbes), short)
	}
}

func TestFit(t *testing.T) {
	marker := func(namespace, name string, bytes int) *v1alpha1.PodProbeMarker {
		return builders.Marker(namespace, name).Probe(builders.Probe("p").Handler(command(bytes))).Build()
	}
	shortage := func(namespace, marker string, pods int, example string) plan.Shortage {
		return plan.Shortage{Namespace: namespace, ID: identity.ID{Marker: marker, Probe: "p"}, Pods: pods, Example: example}
	}
	cases := map[string]struct {
		pods    []*corev1.Pod
		markers []*v1alpha1.PodProbeMarker
		want    string
		short   []plan.Shortage
	}{
		"everything fits": {
			pods:    []*corev1.Pod{aged("big", "a", 1), aged("small", "b", 2)},
			markers: []*v1alpha1.PodProbeMarker{marker("big", "m", 4000), marker("small", "m", 4000)},
			want:    "a: m#p, b: m#p",
		},
		"the other namespace keeps its share": {
			pods:    []*corev1.Pod{aged("big", "a", 1), aged("big", "b", 2), aged("big", "c", 3), aged("small", "d", 4)},
			markers: []*v1alpha1.PodProbeMarker{marker("big", "m", 4000), marker("small", "m", 4000)},
			want:    "a: m#p, d: m#p",
			short:   []plan.Shortage{shortage("big", "m", 2, "b")},
		},
		"unused share goes to the others": {
			pods:    []*corev1.Pod{aged("big", "a", 1), aged("big", "b", 2), aged("big", "c", 3), aged("small", "d", 4)},
			markers: []*v1alpha1.PodProbeMarker{marker("big", "m", 4000), marker("small", "m", 10)},
			want:    "a: m#p, b: m#p, d: m#p",
			short:   []plan.Shortage{shortage("big", "m", 1, "c")},
		},
		"oldest pods first": {
			pods:    []*corev1.Pod{aged("big", "a", 3), aged("big", "b", 2), aged("big", "c", 1)},
			markers: []*v1alpha1.PodProbeMarker{marker("big", "m", 4000)},
			want:    "b: m#p, c: m#p",
			short:   []plan.Shortage{shortage("big", "m", 1, "a")},
		},
		"a huge marker takes nothing from a small one": {
			pods:    []*corev1.Pod{aged("big", "a", 1), aged("big", "b", 2)},
			markers: []*v1alpha1.PodProbeMarker{marker("big", "huge", 6000), marker("big", "small", 10)},
			want:    "a: huge#p small#p, b: small#p",
			short:   []plan.Shortage{shortage("big", "huge", 1, "b")},
		},
		"a probe larger than the budget": {
			pods:    []*corev1.Pod{aged("big", "a", 1)},
			markers: []*v1alpha1.PodProbeMarker{marker("big", "huge", 20_000), marker("big", "small", 10)},
			want:    "a: small#p",
			short:   []plan.Shortage{shortage("big", "huge", 1, "a")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			whole := plan.Node(tc.pods, compile(t, tc.markers...), plan.KubernetesDefaults())
			fitted, short := plan.Fit(whole, tc.pods, 10_000)
			var got []string
			for _, pod := range fitted.PodProbes {
				names := make([]string, 0, len(pod.Probes))
				for _, probe := range pod.Probes {
					names = append(names, probe.Name)
				}
				got = append(got, pod.Name+": "+strings.Join(names, " "))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.short, short); diff != "" {
				t.Errorf("shortages (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzFit generates namespaces with markers of very different sizes.
func FuzzFit(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 2))
		pods, markers := randomDemand(rng)
		compiled := compile(t, markers...)
		whole := plan.Node(pods, compiled, plan.KubernetesDefaults())
		maxBytes := 32 + rng.IntN(plan.Size(whole)*5/4)
		before := wire(t, whole)
		fitted, short := plan.Fit(whole, pods, maxBytes)
		if after := wire(t, whole); after != before {
			t.Error("the whole plan is modified")
		}
		if size := plan.Size(fitted); size > max(maxBytes, plan.Size(v1alpha1.NodePodProbeSpec{})) {
			t.Errorf("the plan has %d bytes, more than %d", size, maxBytes)
		}
		if size, most := stored(t, fitted), maxBytes*1524/900; size > max(most, stored(t, v1alpha1.NodePodProbeSpec{})) {
			t.Errorf("plan and report have %d bytes, more than %d", size, most)
		}
		checkShares(t, whole, fitted, maxBytes)
		missing := len(names(whole)) - len(names(fitted))
		for _, s := range short {
			missing -= s.Pods
		}
		if missing != 0 {
			t.Errorf("shortages and missing probes differ by %d", missing)
		}
		rng.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		rng.Shuffle(len(compiled), func(i, j int) { compiled[i], compiled[j] = compiled[j], compiled[i] })
		again, _ := plan.Fit(plan.Node(pods, compiled, plan.KubernetesDefaults()), pods, maxBytes)
		if diff := cmp.Diff(wire(t, fitted), wire(t, again)); diff != "" {
			t.Errorf("different order gives a different plan:\n%s", diff)
		}
	})
}

// stored returns the size of the plan and its report, without messages.
func stored(t *testing.T, spec v1alpha1.NodePodProbeSpec) int {
	t.Helper()
	npp := v1alpha1.NodePodProbe{Spec: spec}
	for _, pod := range spec.PodProbes {
		status := v1alpha1.PodProbeStatus{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID}
		for _, probe := range pod.Probes {
			status.ProbeStates = append(status.ProbeStates, v1alpha1.ContainerProbeState{
				Name: probe.Name, State: v1alpha1.ProbeSucceeded, Plan: probe.Plan, ContainerID: strings.Repeat("c", 64),
				LastProbeTime: metav1.Unix(1_700_000_000, 0), LastTransitionTime: metav1.Unix(1_700_000_000, 0),
			})
		}
		npp.Status.PodProbeStatuses = append(npp.Status.PodProbeStatuses, status)
	}
	return len(wireOf(t, npp.Spec)) + len(wireOf(t, npp.Status.PodProbeStatuses))
}

func wireOf(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestReportOfFittedPlanCanBeStored fills a node with the probes that take more bytes in the report
// than in the plan: with long names and short commands.
func TestReportOfFittedPlanCanBeStored(t *testing.T) {
	b := builders.Marker("ns", strings.Repeat("m", 253))
	for i := range 32 {
		b.Probe(builders.Probe(fmt.Sprintf("%0253d", i)).Handler(tcp()))
	}
	var pods []*corev1.Pod
	for i := range 250 {
		pods = append(pods, aged("ns", fmt.Sprint("pod-", i), i))
	}
	fitted, short := plan.Fit(plan.Node(pods, compile(t, b.Build()), plan.KubernetesDefaults()), pods, plan.MaxBytes)
	size := stored(t, fitted)
	t.Logf("%d bytes in the plan, %d bytes with the report, %d probes", plan.Size(fitted), size, len(names(fitted)))
	if size > 1524<<10 || size < 1400<<10 || len(short) == 0 {
		t.Errorf("plan and report have %d bytes with %d shortages, want nearly %d bytes", size, len(short), 1524<<10)
	}
}

// checkShares checks that a namespace that needs less than an equal share of the budget loses
// nothing, and that a plan within the budget is complete.
func checkShares(t *testing.T, whole, fitted v1alpha1.NodePodProbeSpec, maxBytes int) {
	t.Helper()
	bytes, planned, kept := map[string]int{}, map[string]int{}, map[string]int{}
	total := 0
	for _, pod := range whole.PodProbes {
		one := v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{pod}}
		// Rounding, the digits of ports and the rest of a state.
		const slack = 64
		size := max(plan.Size(one), stored(t, one)*900/1524) + slack*(1+len(pod.Probes))
		bytes[pod.Namespace] += size
		total += size
		planned[pod.Namespace] += len(pod.Probes)
	}
	for _, pod := range fitted.PodProbes {
		kept[pod.Namespace] += len(pod.Probes)
	}
	for namespace, demand := range bytes {
		if (total <= maxBytes || demand <= maxBytes/len(bytes)) && kept[namespace] != planned[namespace] {
			t.Errorf("namespace %s needs %d of %d bytes and has %d of %d probes", namespace, demand, maxBytes, kept[namespace], planned[namespace])
		}
	}
}

func randomDemand(rng *rand.Rand) ([]*corev1.Pod, []*v1alpha1.PodProbeMarker) {
	var pods []*corev1.Pod
	var markers []*v1alpha1.PodProbeMarker
	for n := range 1 + rng.IntN(4) {
		namespace := fmt.Sprint("ns-", n)
		for m := range 1 + rng.IntN(3) {
			b := builders.Marker(namespace, fmt.Sprint("marker-", m))
			for i := range 1 + rng.IntN(4) {
				probe := builders.Probe(fmt.Sprint("p", i)).Handler(command(1 << rng.IntN(14)))
				if rng.IntN(3) == 0 {
					probe.Handler(tcp())
				}
				b.Probe(probe)
			}
			markers = append(markers, b.Build())
		}
		for i := range 1 + rng.IntN(12) {
			pod := aged(namespace, fmt.Sprint("pod-", i), rng.IntN(5))
			if rng.IntN(5) == 0 {
				// Any user who may create pods can set these annotations.
				pod.Annotations = map[string]string{
					corev1.MirrorPodAnnotationKey: "x", "kubernetes.io/config.hash": strings.Repeat("h", 1<<rng.IntN(12)),
				}
			}
			pods = append(pods, pod)
		}
	}
	return pods, markers
}
