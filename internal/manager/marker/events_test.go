// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestPodUpdates(t *testing.T) {
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a").Label("app", "game") }
	cases := map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"no relevant change": {before: pod().Build(), after: pod().Annotation("a", "b").Build()},
		"other label":        {before: pod().Build(), after: pod().Label("team", "a").Build()},
		"starts to match":    {before: pod().Label("app", "db").Build(), after: pod().Build(), want: true},
		"stops matching":     {before: pod().Build(), after: pod().Label("app", "db").Build(), want: true},
		"ends":               {before: pod().Build(), after: pod().Terminating().Build(), want: true},
		"other pod":          {before: pod().Build(), after: pod().UID("2").Container("db").Build(), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newWorld(t)
			f.addMarkers(stored(builders.Marker("ns", "web").Probe(label("p", "web"))))
			f.addPods(tc.before)
			expect.Equal(t, "enqueued the namespace", tc.want, f.update(tc.after))
		})
	}
}

// Reports make the markers due whose errors change, in the source that takes effect.
func TestReportEvents(t *testing.T) {
	entry := func(message string) []seamarkv1alpha1.PodReport {
		return []seamarkv1alpha1.PodReport{{
			Namespace: "ns", Name: "a", UID: "uid-a",
			Errors: []v1alpha1.ContainerProbeError{{Name: "web#p", Reason: v1alpha1.ProbeCannotRun, Message: message}},
		}}
	}
	slice := func(pods []seamarkv1alpha1.PodReport) *seamarkv1alpha1.ProbeReport {
		return &seamarkv1alpha1.ProbeReport{NodeName: "n", Pods: pods}
	}
	status := func(inReports bool, pods []seamarkv1alpha1.PodReport) *v1alpha1.NodePodProbe {
		npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		npp.Status.ProbeReports = inReports
		for _, pod := range pods {
			npp.Status.PodProbeStatuses = append(npp.Status.PodProbeStatuses, v1alpha1.PodProbeStatus{
				Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			})
		}
		return npp
	}
	type (
		sliceUpdate  = event.TypedUpdateEvent[*seamarkv1alpha1.ProbeReport]
		statusUpdate = event.TypedUpdateEvent[*v1alpha1.NodePodProbe]
	)
	cases := map[string]struct {
		// stored is what a ProbeReport of the node has.
		stored []seamarkv1alpha1.PodReport
		do     func(f *world)
		want   bool
	}{
		"new ProbeReport": {want: true, do: func(f *world) {
			f.r.sliceEvents().Create(t.Context(), event.TypedCreateEvent[*seamarkv1alpha1.ProbeReport]{Object: slice(entry("a"))}, f.queue)
		}},
		"same error": {do: func(f *world) {
			f.r.sliceEvents().Update(t.Context(), sliceUpdate{ObjectOld: slice(entry("a")), ObjectNew: slice(entry("a"))}, f.queue)
		}},
		"other error": {want: true, do: func(f *world) {
			f.r.sliceEvents().Update(t.Context(), sliceUpdate{ObjectOld: slice(entry("a")), ObjectNew: slice(entry("b"))}, f.queue)
		}},
		"ProbeReport is deleted": {want: true, do: func(f *world) {
			f.r.sliceEvents().Delete(t.Context(), event.TypedDeleteEvent[*seamarkv1alpha1.ProbeReport]{Object: slice(entry("a"))}, f.queue)
		}},
		"status without effect": {stored: entry("a"), do: func(f *world) {
			f.r.statusEvents().Update(t.Context(), statusUpdate{ObjectOld: status(true, nil), ObjectNew: status(true, entry("a"))}, f.queue)
		}},
		"status takes effect": {want: true, stored: entry("a"), do: func(f *world) {
			f.r.statusEvents().Update(t.Context(), statusUpdate{ObjectOld: status(true, nil), ObjectNew: status(false, entry("a"))}, f.queue)
		}},
		"NodePodProbe is deleted": {want: true, stored: entry("a"), do: func(f *world) {
			f.r.statusEvents().Delete(t.Context(), event.TypedDeleteEvent[*v1alpha1.NodePodProbe]{Object: status(false, entry("a"))}, f.queue)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newWorld(t)
			f.slices = []seamarkv1alpha1.ProbeReport{*slice(tc.stored)}
			tc.do(f)
			due, _ := f.r.agenda.take("ns", f.now)
			if got := len(due) == 1 && due[0].marker == "web"; got != tc.want || got != (len(fakeapi.Drain(f.queue)) > 0) {
				t.Errorf("due markers %v, want the marker: %t", due, tc.want)
			}
		})
	}
}
