// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// recorded records the writes of plans.
type recorded struct {
	calls []string
	err   error
}

func (r *recorded) Create(_ context.Context, node *metav1.PartialObjectMetadata, references string) (*v1alpha1.NodePodProbe, error) {
	r.calls = append(r.calls, strings.TrimSpace("create "+node.Name+" "+references))
	return &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{UID: "made", ResourceVersion: "100"}}, r.err
}

func (r *recorded) Refer(_ context.Context, npp *v1alpha1.NodePodProbe, references string, removed []string) (string, error) {
	r.calls = append(r.calls, strings.Join(append(strings.Fields("refer "+npp.Name+" "+references), removed...), " "))
	return "100000", r.err
}

func (r *recorded) WriteSlice(_ context.Context, node *metav1.PartialObjectMetadata, slice slicing.Slice) (*seamarkv1alpha1.ProbePlan, error) {
	written := planSlice(slice.Number, string(node.UID), slice.Pods...)
	written.ResourceVersion = "100000"
	r.calls = append(r.calls, fmt.Sprintf("write %s %d", written.Name, len(slice.Pods)))
	return written, r.err
}

func (r *recorded) Delete(_ context.Context, npp *v1alpha1.NodePodProbe) error {
	r.calls = append(r.calls, "delete "+npp.Name)
	return r.err
}

// count returns the number of the calls.
func (r *recorded) count(verb string) int {
	n := 0
	for _, call := range r.calls {
		if strings.HasPrefix(call, verb+" ") {
			n++
		}
	}
	return n
}

// Restore and DeleteReports record the requests for ProbeReports.
func (r *recorded) Restore(_ context.Context, npp *v1alpha1.NodePodProbe, value string) error {
	r.calls = append(r.calls, "restore "+npp.Name+": "+value)
	return r.err
}

func (r *recorded) DeletePlans(_ context.Context, node string) error {
	r.calls = append(r.calls, "delete plans of "+node)
	return r.err
}

func (r *recorded) DeleteReports(_ context.Context, node string) error {
	r.calls = append(r.calls, "delete reports of "+node)
	return r.err
}

func reconciler(t *testing.T, plans Plans, objects, live []client.Object) *Reconciler {
	t.Helper()
	reader := func(objects []client.Object) client.Reader {
		return fakeapi.Client(t, objects...).
			WithIndex(&corev1.Pod{}, gather.NodeNameField, func(object client.Object) []string {
				pod, ok := object.(*corev1.Pod)
				if !ok {
					return nil
				}
				return []string{pod.Spec.NodeName}
			}).WithReturnManagedFields().Build()
	}
	counters := metrics.New(prometheus.NewRegistry())
	slices, _ := plans.(Slices)
	return New(Options{
		Reader: gather.Reader{Client: reader(objects), Compiler: plan.NewCompiler(), Options: podview.Options{Defaults: plan.KubernetesDefaults()}},
		Live:   reader(live), Plans: plans, Slices: slices, Metrics: counters,
		Refusals: &problems.Refusals{}, Now: time.Now,
	})
}

func node(name, uid string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
}

func virtualNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet}}}
}

// slice returns the first ProbeReport of node-1, with the pods.
func slice(version string, pods ...string) *seamarkv1alpha1.ProbeReport {
	slice := &seamarkv1alpha1.ProbeReport{NodeName: "node-1"}
	slice.Name, slice.UID, slice.ResourceVersion = "node-1.0", "slice", version
	for _, pod := range pods {
		slice.Pods = append(slice.Pods, seamarkv1alpha1.PodReport{Namespace: "ns", Name: pod, UID: "uid-" + pod})
	}
	return slice
}

func nodePodProbe(name, owner string, spec v1alpha1.NodePodProbeSpec) *v1alpha1.NodePodProbe {
	controller := true
	return &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "npp", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(owner), Controller: &controller,
		}}},
		Spec: spec,
	}
}

// planSlice returns a ProbePlan of node-1 with the pods, of generation 3.
func planSlice(number int, owner string, pods ...v1alpha1.PodProbe) *seamarkv1alpha1.ProbePlan {
	slice := &seamarkv1alpha1.ProbePlan{NodeName: "node-1", Pods: pods}
	slice.Name, slice.UID, slice.Generation = seamarkv1alpha1.SliceName("node-1", number), "slice", 3
	slice.ResourceVersion = "30"
	slice.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: types.UID(owner)}}
	return slice
}

// referring returns the NodePodProbe of node-1 that refers to ProbePlans.
func referring(references string, status v1alpha1.NodePodProbeStatus) *v1alpha1.NodePodProbe {
	npp := nodePodProbe("node-1", "u", v1alpha1.NodePodProbeSpec{})
	npp.Annotations = map[string]string{v1alpha1.ProbePlansAnnotationKey: references}
	npp.Status = status
	return npp
}

func TestReconcile(t *testing.T) {
	pod := builders.Pod("ns", "a").Label("app", "game").Build()
	ended := pod.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	removing := referring("0:30", v1alpha1.NodePodProbeStatus{})
	removing.Spec.RemovedPods = []string{string(pod.UID)}
	removingOther := removing.DeepCopy()
	removingOther.Spec.RemovedPods = []string{"other"}
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p")).Build()
	compiled, err := plan.Compile(marker)
	expect.NoError(t, err)
	correct := plan.Node([]*corev1.Pod{pod}, []*plan.Marker{compiled}, plan.KubernetesDefaults())
	var many []v1alpha1.PodProbe
	for i := range slicing.MaxRemoved {
		many = append(many, v1alpha1.PodProbe{Namespace: "ns", Name: fmt.Sprint("gone-", i), UID: fmt.Sprint("gone-", i)})
	}
	many = append(many, correct.PodProbes...)
	inSpec := nodePodProbe("node-1", "u", correct)
	cases := map[string]struct {
		cached, live []client.Object
		want         string
	}{
		"node without pods": {cached: []client.Object{node("node-1", "u")}, want: "create node-1"},
		"node without plan": {cached: []client.Object{node("node-1", "u"), pod, marker}, want: "write node-1.0 1, create node-1 0:100000"},
		"ProbePlan, no NodePodProbe": {
			cached: []client.Object{node("node-1", "u"), pod, marker, planSlice(0, "u", correct.PodProbes...)}, want: "create node-1 0:30",
		},
		"correct plan": {
			cached: []client.Object{
				node("node-1", "u"), pod, marker, planSlice(0, "u", correct.PodProbes...), referring("0:30", v1alpha1.NodePodProbeStatus{}),
			},
		},
		"outdated plan": {
			cached: []client.Object{
				node("node-1", "u"), pod, marker, planSlice(0, "u"), referring("0:30", v1alpha1.NodePodProbeStatus{}),
			}, want: "write node-1.0 1, refer node-1 0:100000",
		},
		"ProbePlan of an earlier node": {
			cached: []client.Object{
				node("node-1", "u"), planSlice(0, "old"), referring("0:30", v1alpha1.NodePodProbeStatus{}),
			}, want: "write node-1.0 0, refer node-1 0:100000",
		},
		"ProbePlan created again": {
			cached: []client.Object{
				node("node-1", "u"), pod, marker, planSlice(0, "u", correct.PodProbes...), referring("0:7", v1alpha1.NodePodProbeStatus{}),
			}, want: "refer node-1 0:30",
		},
		"invalid references": {
			cached: []client.Object{
				node("node-1", "u"), pod, marker, planSlice(0, "u", correct.PodProbes...), referring("7", v1alpha1.NodePodProbeStatus{}),
			}, want: "refer node-1 0:30",
		},
		"pod is gone": {
			cached: []client.Object{
				node("node-1", "u"), marker, planSlice(0, "u", correct.PodProbes...), referring("0:30", v1alpha1.NodePodProbeStatus{}),
			}, want: "refer node-1 0:30 " + string(pod.UID),
		},
		"pod that the cache does not have yet": {cached: []client.Object{
			node("node-1", "u"), marker, planSlice(0, "u", correct.PodProbes...), referring("0:30", v1alpha1.NodePodProbeStatus{}),
		},
			live: []client.Object{pod}},
		"pod of OpenKruise that the cache does not have yet": {cached: []client.Object{node("node-1", "u"), marker, inSpec}, live: []client.Object{pod}},
		"planned pod runs on another node": {cached: []client.Object{
			node("node-1", "u"), marker, planSlice(0, "u", correct.PodProbes...), referring("0:30", v1alpha1.NodePodProbeStatus{}),
		},
			live: []client.Object{builders.Pod("ns", "a").Label("app", "game").Node("node-2").Build()}, want: "refer node-1 0:30 " + string(pod.UID)},
		"many pods that the cache does not have yet": {cached: []client.Object{
			node("node-1", "u"), marker, planSlice(0, "u", many...), referring("0:30", v1alpha1.NodePodProbeStatus{}),
		},
			live: []client.Object{pod}},
		"pod that has ended and is not cached": {cached: []client.Object{
			node("node-1", "u"), marker, planSlice(0, "u", correct.PodProbes...), referring("0:30", v1alpha1.NodePodProbeStatus{}),
		},
			live: []client.Object{ended}, want: "refer node-1 0:30 " + string(pod.UID)},
		"another pod with the name": {cached: []client.Object{
			node("node-1", "u"), marker, planSlice(0, "u", correct.PodProbes...), referring("0:30", v1alpha1.NodePodProbeStatus{}),
		},
			live: []client.Object{builders.Pod("ns", "a").Label("app", "game").UID("later").Build()}, want: "refer node-1 0:30 " + string(pod.UID)},
		"pod ends": {
			cached: []client.Object{
				node("node-1", "u"), ended, marker, planSlice(0, "u", correct.PodProbes...),
				referring("0:30", v1alpha1.NodePodProbeStatus{}),
			},
			want: "refer node-1 0:30 " + string(pod.UID),
		},
		"pod is removed": {cached: []client.Object{node("node-1", "u"), marker, planSlice(0, "u", correct.PodProbes...), removing}},
		"pod leaves its marker": {
			cached: []client.Object{
				node("node-1", "u"), pod, planSlice(0, "u", correct.PodProbes...),
				referring("0:30", v1alpha1.NodePodProbeStatus{}),
			},
			want: "write node-1.0 0, refer node-1 0:100000",
		},
		"place of a removed pod": {
			cached: []client.Object{node("node-1", "u"), pod, marker, planSlice(0, "u", v1alpha1.PodProbe{UID: "other"}), removingOther},
			want:   "write node-1.0 1, refer node-1 0:100000",
		},
		"plan of OpenKruise": {cached: []client.Object{node("node-1", "u"), pod, marker, inSpec}, want: "write node-1.0 1, refer node-1 0:100000"},
		"plan of OpenKruise, ProbePlans are written": {
			cached: []client.Object{node("node-1", "u"), pod, marker, inSpec, planSlice(0, "u", correct.PodProbes...)}, want: "refer node-1 0:30",
		},
		"OpenKruise, no probed pods": {
			cached: []client.Object{node("node-1", "u"), nodePodProbe("node-1", "u", v1alpha1.NodePodProbeSpec{})},
			want:   "refer node-1",
		},
		"plan of an earlier node": {cached: []client.Object{node("node-1", "u"), nodePodProbe("node-1", "old", correct)}, want: "delete node-1"},
		"plan of a later node": {
			cached: []client.Object{node("node-1", "u"), nodePodProbe("node-1", "later", correct)}, live: []client.Object{node("node-1", "later")},
		},
		"plan without node": {cached: []client.Object{inSpec}, want: "delete node-1"},
		"plan of a node that is not in the cache": {
			cached: []client.Object{inSpec}, live: []client.Object{node("node-1", "u")},
		},
		"no node, no plan":        {},
		"reports without node":    {cached: []client.Object{slice("1", "u")}, want: "delete reports of node-1"},
		"ProbePlans without node": {cached: []client.Object{planSlice(0, "u")}, want: "delete plans of node-1"},
		"plan and reports without node": {
			cached: []client.Object{inSpec, planSlice(0, "u"), slice("1", "u")}, want: "delete node-1, delete plans of node-1, delete reports of node-1",
		},
		"reports of a node that is not in the cache": {cached: []client.Object{slice("1", "u")}, live: []client.Object{node("node-1", "u")}},
		"slices of a virtual node": {
			cached: []client.Object{virtualNode("node-1"), slice("1", "u"), planSlice(0, "u")}, want: "delete plans of node-1, delete reports of node-1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plans := &recorded{}
			r := reconciler(t, plans, tc.cached, tc.live)
			request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}}
			for range 2 {
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			got := plans.calls
			// The deletions, and the creation of the NodePodProbe, are repeated until the cache has
			// them. Nothing else is written twice.
			if n := len(got); n > 1 && strings.HasPrefix(got[n-1], "create") && got[n-2] == got[n-1] {
				got = got[:n-1]
			} else if n > 1 && strings.HasPrefix(got[n-1], "delete") {
				got = got[:n/2]
			}
			expect.Equal(t, "writes", tc.want, strings.Join(got, ", "))
		})
	}
}

// A ProbePlan that is refused does not keep the others of the node from being written, and the
// reconcile is repeated.
func TestRefusedSliceDoesNotBlockOthers(t *testing.T) {
	objects := []client.Object{
		node("node-1", "u"), referring("", v1alpha1.NodePodProbeStatus{}), builders.Marker("ns", "web").Probe(builders.Probe("p")).Build(),
	}
	for i := range 2*slicing.MaxPods + 1 {
		objects = append(objects, builders.Pod("ns", fmt.Sprintf("pod-%02d", i)).Label("app", "game").Build())
	}
	plans := &recorded{err: errors.New("refused")}
	r := reconciler(t, plans, objects, nil)
	_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}})
	want := []string{"write node-1.0 8", "write node-1.1 8", "write node-1.2 1"}
	if diff := cmp.Diff(want, plans.calls); diff != "" || !errors.Is(err, plans.err) {
		t.Errorf("error %v, calls (-want +got):\n%s", err, diff)
	}
	if r.Refusals.Reason(types.NamespacedName{Name: "node-1"}) == "" {
		t.Error("the refusal is not recorded")
	}
}

// The pods of a ProbePlan that was deleted and cannot be created again stay planned: the agent still
// runs it.
func TestDeletedSliceIsReferredToUntilItIsCreatedAgain(t *testing.T) {
	kept := planSlice(1, "u")
	objects := []client.Object{
		node("node-1", "u"), referring("0:10,1:20,2:30", v1alpha1.NodePodProbeStatus{}), kept,
		builders.Marker("ns", "web").Probe(builders.Probe("p")).Build(), builders.Pod("ns", "a").Label("app", "game").Build(),
	}
	plans := &refusing{}
	r := reconciler(t, plans, objects, nil)
	for step, want := range []string{"refer node-1 0:100000,1:30", "refer node-1 0:10,1:30"} {
		plans.refuses, plans.calls = step == 1, nil
		r.expectedHeaders.Forget("node-1")
		r.created.Forget("node-1")
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}}); (err != nil) != plans.refuses {
			t.Error(err)
		}
		expect.Equal(t, "writes", []string{"write node-1.0 1", want}, plans.calls)
	}
}

// refusing refuses ProbePlans.
type refusing struct {
	recorded
	refuses bool
}

func (p *refusing) WriteSlice(ctx context.Context, node *metav1.PartialObjectMetadata, slice slicing.Slice) (*seamarkv1alpha1.ProbePlan, error) {
	written, err := p.recorded.WriteSlice(ctx, node, slice)
	if p.refuses {
		return nil, errors.New("refused")
	}
	return written, err
}

// A ProbePlan that the cache does not have yet is not created twice, unless the cache never gets it.
func TestCreatedSliceCountsUntilTheCacheHasIt(t *testing.T) {
	objects := []client.Object{
		node("node-1", "u"), referring("", v1alpha1.NodePodProbeStatus{}), builders.Marker("ns", "web").Probe(builders.Probe("p")).Build(),
		builders.Pod("ns", "a").Label("app", "game").Build(),
	}
	plans := &recorded{}
	r := reconciler(t, plans, objects, nil)
	now := time.Unix(1_700_000_000, 0)
	r.Now = func() time.Time { return now }
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}}
	for _, step := range []struct {
		after  time.Duration
		writes int
	}{{0, 1}, {time.Second, 1}, {createdFor - 2*time.Second, 1}, {time.Second, 2}} {
		now = now.Add(step.after)
		result, err := r.Reconcile(t.Context(), request)
		if err != nil || plans.count("write") != step.writes || result.RequeueAfter != createdFor {
			t.Errorf("after %s: %v, requeued after %s, error %v, want %d writes", step.after, plans.calls, result.RequeueAfter, err, step.writes)
		}
	}
}
