// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
	"github.com/seamark-dev/seamark/test/floor"
)

// newBench returns a reconciler with the objects in its cache.
func newBench(b testing.TB, pods []*corev1.Pod, markers []*v1alpha1.PodProbeMarker) *Reconciler {
	b.Helper()
	stores := gather.Stores{
		Pods: fakeapi.NewStore(b, gather.PodIndexers(), pods), Markers: fakeapi.NewStore(b, gather.MarkerIndexers(), markers), Slices: fakeapi.NewStore[*seamarkv1alpha1.ProbeReport](b, gather.SliceIndexers(), nil),
	}
	return New(Options{
		Reader:   gather.Reader{Client: &store{}, Compiler: plan.NewCompiler(), Options: podview.Options{Defaults: plan.KubernetesDefaults()}, Stores: stores},
		Refusals: &problems.Refusals{},
	})
}

// checking returns a function that checks so many of the markers of a namespace with 10 pods, and with others that only
// a marker that is not checked may select. All markers have 32 probes, and declare the same labels for all pods.
func checking(b *testing.B, markers, checked, others int) func() {
	b.Helper()
	var pods []*corev1.Pod
	for i := range 10 {
		pods = append(pods, game(fmt.Sprint("p", i)).Build())
	}
	for i := range others {
		pods = append(pods, builders.Pod("ns", fmt.Sprint("other", i)).Label("app", "other").Node("n").Build())
	}
	all := many(markers, 32)
	r := newBench(b, pods, all)
	return func() {
		found, err := r.survey(b.Context(), all[:checked])
		if err != nil || found["m000"].matched != 10 {
			b.Fatalf("found %+v, error %v", found, err)
		}
		for _, marker := range all[:checked] {
			found[marker.Name].findings(marker)
		}
	}
}

// BenchmarkCheck checks one marker with rivals, and all of the largest namespace in one pass. The
// floor is the check of a marker without rivals.
func BenchmarkCheck(b *testing.B) {
	for _, rivals := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(rivals, " rivals"), func(b *testing.B) {
			floor.Compare(b, "x_of_alone", checking(b, rivals+1, 1, 0), checking(b, 1, 1, 0))
		})
	}
	b.Run("all of 1000", func(b *testing.B) {
		floor.Compare(b, "x_of_alone", checking(b, 1000, 1000, 0), checking(b, 1, 1, 0))
	})
	b.Run("1000 other pods", func(b *testing.B) {
		floor.Compare(b, "x_of_alone", checking(b, 1, 1, 1000), checking(b, 1, 1, 0))
	})
}

// BenchmarkRelease looks for what is left of the markers that one pass handles, of 1,000 that are
// being deleted, in 1,000 pods that all have their marks.
func BenchmarkRelease(b *testing.B) {
	var pods []*corev1.Pod
	var all []*v1alpha1.PodProbeMarker
	var tasks []task
	for i := range 1000 {
		pods, all = append(pods, marked(fmt.Sprint("p", i))), append(all, deleted(fmt.Sprint("m", i)))
	}
	for _, marker := range all[:maxWrites] {
		tasks = append(tasks, task{marker: marker})
	}
	r := newBench(b, pods, all)
	for b.Loop() {
		if found, err := r.findRemains(b.Context(), all, tasks); err != nil || len(found.objects) != len(pods) {
			b.Fatalf("%d pods with marks, error %v", len(found.objects), err)
		}
	}
}

// BenchmarkRecount counts the states of 300 markers with 100 pods each in one namespace, all of which have
// changed, or whose nodes are gone. The floor is one marker with 100 pods.
func BenchmarkRecount(b *testing.B) {
	counting := func(markers int, down staleness.Outage) func() {
		var pods []*corev1.Pod
		var all []*v1alpha1.PodProbeMarker
		var reports []*seamarkv1alpha1.ProbeReport
		for m := range markers {
			name := fmt.Sprintf("m%03d", m)
			all = append(all, stored(builders.Marker("ns", name).Selector("app", name).Probe(label("p", name).StaleAfter(30))))
			for i := range 100 {
				node := fmt.Sprint("n", i)
				pod := builders.Pod("ns", fmt.Sprintf("%s-%02d", name, i)).Label("app", name).Node(node).
					Label(name, "1").ManagedFields("seamark", "status", `{"f:metadata":{"f:labels":{"f:`+name+`":{}}}}`).Build()
				pods = append(pods, pod)
				report := &seamarkv1alpha1.ProbeReport{NodeName: node, Pods: []seamarkv1alpha1.PodReport{{
					Namespace: "ns", Name: pod.Name, UID: string(pod.UID),
					Probes: []v1alpha1.ContainerProbeState{{Name: name + "#p", State: v1alpha1.ProbeSucceeded}},
				}}}
				report.Name = seamarkv1alpha1.SliceName(node, m)
				reports = append(reports, report)
			}
		}
		r := newBench(b, pods, all)
		r.Reader.Stores.Slices = fakeapi.NewStore(b, gather.SliceIndexers(), reports)
		r.Reader.Outages = func(string) staleness.Outage { return down }
		return func() {
			byMarker, err := r.count(b.Context(), all)
			expect.NoError(b, err)
			var status v1alpha1.PodProbeMarkerStatus
			if byMarker["m000"].Fill(&status); status.Succeeded != 100 {
				b.Fatalf("counted %+v", status)
			}
		}
	}
	for name, down := range map[string]staleness.Outage{"current": {}, "nodes are gone": {Cause: staleness.NodeGone, Length: time.Second}} {
		b.Run(name, func(b *testing.B) { floor.Compare(b, "x_of_100_pods", counting(300, down), counting(1, down)) })
	}
}
