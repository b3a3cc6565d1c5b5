// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// indexed is a client that gets pods from an indexer, as the manager's cache does. There is nothing else.
type indexed struct {
	client.Reader
	pods toolscache.Indexer
}

func (i indexed) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	pod, ok := object.(*corev1.Pod)
	found, exists, err := i.pods.GetByKey(key.String())
	if stored, isPod := found.(*corev1.Pod); ok && exists && isPod {
		*pod = *stored
		return err
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// contested returns a reconciler with an exclusive policy in a namespace with so many pods, 100 per node. The
// first pod has the marks. All or none of the others claim them. They have their marks.
func contested(b *testing.B, n int, all bool) *Reconciler {
	b.Helper()
	marker := builders.Marker("ns", "db").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").
		Label(v1alpha1.ProbeUnknown, "role", "unknown").Label(v1alpha1.ProbeFailed, "role", "replica").
		Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{})).Build()
	compiled, err := plan.Compile(marker)
	expect.NoError(b, err)
	ticket := compiled.Exclusives()[0].Ticket
	var pods []*corev1.Pod
	var reports []*seamarkv1alpha1.ProbeReport
	for i := range n {
		node, role, state := fmt.Sprint("n", i/100), "replica", v1alpha1.ProbeFailed
		switch {
		case i == 0:
			role, state = "primary", v1alpha1.ProbeSucceeded
		case all:
			role, state = "unknown", v1alpha1.ProbeSucceeded
		}
		pod := builders.Pod("ns", fmt.Sprint("p", i)).Label("app", "game").Label("role", role).Node(node).
			ManagedFields("seamark", "status", `{"f:metadata":{"f:labels":{"f:role":{}}}}`).Build()
		if i == 0 {
			pod = builders.Pod("ns", "p0").Label("app", "game").Label("role", role).Label(ticket, "").Node(node).
				ManagedFields("seamark", "status", `{"f:metadata":{"f:labels":{"f:role":{},"f:`+ticket+`":{}}}}`).Build()
		}
		if pods = append(pods, pod); i%100%8 == 0 {
			reports = append(
				reports, &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: seamarkv1alpha1.SliceName(node, i%100/8)}, NodeName: node},
			)
		}
		slice := reports[len(reports)-1]
		slice.Pods = append(slice.Pods, seamarkv1alpha1.PodReport{Namespace: "ns", Name: pod.Name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{{
			Name: "db#p", State: state, LastTransitionTime: metav1.NewTime(time.Unix(int64(n-i), 0)),
		}}})
	}
	r := reconciler(b, &recorded{})
	stored := fakeapi.NewStore(b, gather.PodIndexers(), pods)
	r.Reader.Client = indexed{pods: stored.Indexer}
	r.Reader.Stores = gather.Stores{
		Pods: stored, Markers: fakeapi.NewStore(
			b, gather.MarkerIndexers(), []*v1alpha1.PodProbeMarker{marker},
		), Slices: fakeapi.NewStore(b, gather.SliceIndexers(), reports),
	}
	return r
}

// BenchmarkExclusive reconciles pods of one group that have their marks.
func BenchmarkExclusive(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		for claims, all := range map[string]bool{"one claims": false, "all claim": true} {
			b.Run(fmt.Sprint(n, " pods, ", claims), func(b *testing.B) {
				r, i := contested(b, n, all), 0
				for j := range n {
					reconcileOne(b, r, fmt.Sprint("p", j))
				}
				b.ReportAllocs()
				for b.Loop() {
					name := types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("p", i%n)}
					if _, err := r.Reconcile(b.Context(), reconcile.Request{NamespacedName: name}); err != nil {
						b.Fatal(err)
					}
					i++
				}
				if written := r.Pods.(*recorded); len(written.labels)+len(written.removed) > 0 { //nolint:forcetypeassert // a panic fails the benchmark
					b.Fatalf("written %+v", written)
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*float64(n), "s/all")
			})
		}
	}
}

// BenchmarkManyPolicies reconciles a pod of 1,000 in a namespace with as many exclusive policies as its pods can have: 32 in
// each of 64 markers.
func BenchmarkManyPolicies(b *testing.B) {
	var markers []*v1alpha1.PodProbeMarker
	for i := range plan.MaxMarkers {
		marker := builders.Marker("ns", fmt.Sprint("m", i))
		for j := range 32 {
			marker.Probe(builders.Probe(fmt.Sprint("p", j)).Label(v1alpha1.ProbeSucceeded, fmt.Sprintf("k-%d-%d", i, j), "primary").
				Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{PerLabel: "shard"}))
		}
		markers = append(markers, marker.Build())
	}
	var pods []*corev1.Pod
	for i := range 1000 {
		pod := builders.Pod("ns", fmt.Sprint("p", i)).Label("app", "game").Label("shard", fmt.Sprint(i%2)).Node(fmt.Sprint("n", i/100))
		pods = append(pods, pod.Build())
	}
	r := reconciler(b, &recorded{})
	stored := fakeapi.NewStore(b, gather.PodIndexers(), pods)
	r.Reader.Client = indexed{pods: stored.Indexer}
	r.Reader.Stores = gather.Stores{
		Pods: stored, Markers: fakeapi.NewStore(b, gather.MarkerIndexers(), markers),
		Slices: fakeapi.NewStore(b, gather.SliceIndexers(), []*seamarkv1alpha1.ProbeReport{}),
	}
	for _, pod := range pods {
		reconcileOne(b, r, pod.Name)
	}
	for b.Loop() {
		reconcileOne(b, r, "p1")
	}
}
