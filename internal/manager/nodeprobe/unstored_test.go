// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// pruning stores ProbePlans as an API server does whose CRD has no field plan until it is extended.
type pruning struct {
	recorded
	slice    *seamarkv1alpha1.ProbePlan
	extended bool
}

func (p *pruning) WriteSlice(ctx context.Context, node *metav1.PartialObjectMetadata, slice slicing.Slice) (*seamarkv1alpha1.ProbePlan, error) {
	stored := (&seamarkv1alpha1.ProbePlan{Pods: slice.Pods}).DeepCopy()
	for i := range stored.Pods {
		for j := range stored.Pods[i].Probes {
			if p.extended {
				continue
			}
			stored.Pods[i].Probes[j].Plan = ""
		}
	}
	if !equality.Semantic.DeepEqual(p.slice.Pods, stored.Pods) {
		p.slice.Pods = stored.Pods
		p.slice.Generation++
		p.slice.ResourceVersion += "0"
	}
	_, err := p.recorded.WriteSlice(ctx, node, slice)
	return p.slice.DeepCopy(), err
}

// A CRD without some of the fields costs one write that changes nothing per ProbePlan, however often
// the plan is compiled. The write is repeated after a while without an event of a pod.
func TestPlanThatIsStoredWithoutSomeFields(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p")).Build()
	marker.UID = "uid-web"
	pods := []client.Object{builders.Pod("ns", "a").Label("app", "game").Build(), builders.Pod("ns", "b").Label("app", "game").Build()}
	plans := &pruning{slice: planSlice(0, "u")}
	plans.slice.ResourceVersion = "1"
	r := reconciler(t, plans, nil, nil)
	now := time.Unix(1_700_000_000, 0)
	r.Now = func() time.Time { return now }
	for _, step := range []struct {
		pods, writes int
		after        time.Duration
		extended     bool
		retry        time.Duration
	}{
		{pods: 1, writes: 2, retry: unstoredFor},
		{pods: 2, writes: 4, retry: unstoredFor},
		{pods: 1, writes: 6, retry: unstoredFor},
		{pods: 1, writes: 6, after: time.Minute, retry: unstoredFor - time.Minute},
		{pods: 1, writes: 7, after: unstoredFor - time.Minute, retry: unstoredFor},
		{pods: 1, writes: 7, after: unstoredFor - 1, extended: true, retry: 1},
		{pods: 1, writes: 8, after: 1, extended: true},
		{pods: 2, writes: 9, extended: true},
	} {
		now = now.Add(step.after)
		plans.extended = step.extended
		var result reconcile.Result
		for range 5 {
			objects := []client.Object{node("node-1", "u"), marker, referring("0:1", v1alpha1.NodePodProbeStatus{}), plans.slice.DeepCopy()}
			cached := reconciler(t, plans, append(objects, pods[:step.pods]...), nil)
			r.Reader.Client = cached.Reader.Client
			var err error
			if result, err = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}}); err != nil {
				t.Fatal(err)
			}
		}
		expect.Equal(t, "pods planned", step.pods, len(plans.slice.Pods))
		if writes := plans.count("write"); writes != step.writes || result.RequeueAfter != step.retry {
			t.Errorf("%d writes with %d pods and a requeue after %s, want %d and %s", writes, step.pods, result.RequeueAfter, step.writes, step.retry)
		}
	}
}

// withoutRemoved stores NodePodProbes as an API server does whose CRD has no field removedPods.
type withoutRemoved struct{ recorded }

func (w *withoutRemoved) Refer(ctx context.Context, npp *v1alpha1.NodePodProbe, references string, removed []string) (string, error) {
	version, err := w.recorded.Refer(ctx, npp, references, removed)
	if references == npp.Annotations[v1alpha1.ProbePlansAnnotationKey] {
		version = npp.ResourceVersion
	}
	return version, err
}

// TestRemovedPodsAreNotStored checks that a pod that the NodePodProbe cannot remove leaves its ProbePlan soon.
func TestRemovedPodsAreNotStored(t *testing.T) {
	gone := planSlice(0, "u", v1alpha1.PodProbe{Namespace: "ns", Name: "gone", UID: "gone"})
	plans := &withoutRemoved{}
	r := reconciler(t, plans, []client.Object{node("node-1", "u"), gone, referring("0:30", v1alpha1.NodePodProbeStatus{})}, nil)
	for i := range 4 {
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}})
		if err != nil || (result.RequeueAfter > 0) != (i == 0) {
			t.Fatalf("pass %d: requeued after %s, error %v", i, result.RequeueAfter, err)
		}
	}
	want := []string{"refer node-1 0:30 gone", "write node-1.0 0", "refer node-1 0:100000"}
	expect.Equal(t, "writes", want, plans.calls)
}
