// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/builders"
)

// BenchmarkReportToMark measures the time from the agent's write of a report until a watch of
// pods shows the label. The floor is the minimum without a manager: two writes, one of the
// NodePodProbe and one of the pod, and the watch.
func BenchmarkReportToMark(b *testing.B) {
	w := newWorld(b, shared)
	pod := w.pod("a", w.node("latency"))
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").
		Label(succeeded, "state", string(succeeded)).Label(failed, "state", string(failed))))
	w.planned("latency", "a/web#p")
	pods, err := shared.Client.Watch(b.Context(), &corev1.PodList{}, client.InNamespace(w.namespace))
	w.must(err)
	defer pods.Stop()
	npp, err := w.getPlan(b.Context(), "latency")
	w.must(err)

	var took, floor []time.Duration
	state := failed
	for b.Loop() {
		if state == failed {
			state = succeeded
		} else {
			state = failed
		}
		start := time.Now()
		w.report("latency", states{"web#p": state})
		seen(pods, "state", string(state))
		took = append(took, time.Since(start))

		value := fmt.Sprint(len(took))
		start = time.Now()
		w.label(npp, value)
		w.label(pod, value)
		seen(pods, "floor", value)
		floor = append(floor, time.Since(start))
	}
	slices.Sort(took)
	slices.Sort(floor)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)/2])/float64(floor[len(floor)/2]), "x_of_two_writes")
}

// label writes a label that no marker uses.
func (w *world) label(object client.Object, value string) {
	w.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"floor":%q}}}`, value))
	w.must(w.client.Patch(w.Context(), object, patch))
}

// seen waits until the watch shows the label.
func seen(pods watch.Interface, key, value string) {
	for event := range pods.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Labels[key] == value {
			return
		}
	}
}
