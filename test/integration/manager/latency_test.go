// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/builders"
)

// BenchmarkReportToMark measures one pod from its agent's report, the write of it
// included, until a watch of pods shows the label.
func BenchmarkReportToMark(b *testing.B) {
	w := newWorld(b, shared)
	w.pod("a", w.node("latency"))
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").
		Label(succeeded, "state", string(succeeded)).Label(failed, "state", string(failed))))
	w.planned("latency", "a/web#p")
	watch, err := shared.Client.Watch(b.Context(), &corev1.PodList{}, client.InNamespace(w.namespace))
	w.must(err)
	defer watch.Stop()

	var took []time.Duration
	state := failed
	for b.Loop() {
		if state == failed {
			state = succeeded
		} else {
			state = failed
		}
		start := time.Now()
		w.report("latency", states{"web#p": state})
		for event := range watch.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Labels["state"] == string(state) {
				break
			}
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
