// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
)

// TestManyRivals: a tenant creates many markers for the same keys and pods, and deletes them. At most
// 64 of them count for a pod, and the marker of another tenant gets its status and is released as if
// there were no others.
func TestManyRivals(t *testing.T) {
	const rivals, pods = 150, 10
	w := newWorld(t, shared)
	f := &fleet{world: w}
	node := w.node("rivals")
	for i := range pods {
		w.pod(fmt.Sprint("p", i), node)
	}
	oldest := w.marker(builders.Marker(w.namespace, "z-first").Probe(builders.Probe("p").Label(succeeded, "key", "first")))
	w.until("the next second, because the age of markers is in seconds", func(context.Context) (string, error) {
		if time.Now().Unix() > oldest.CreationTimestamp.Unix() {
			return "", nil
		}
		return "it is the same", nil
	})
	f.each(rivals, func(ctx context.Context, i int) error {
		b := builders.Marker(w.namespace, fmt.Sprintf("m%03d", i))
		for j := range 4 {
			b.Probe(builders.Probe(fmt.Sprint("p", j)).Label(succeeded, fmt.Sprint("key-", j), "1"))
		}
		return w.client.Create(ctx, b.Unsaved().Build())
	})
	w.condition("m149", v1alpha1.ConditionProbesResolved, "TooManyMarkers", "All probes: more than 64 markers select the pod, "+
		"and only the oldest count (10 of 10 matched pods, such as p0: z-first, m000, m001 and 61 more).")
	npp, err := w.getPlan(t.Context(), node)
	w.must(err)
	for i := range npp.Spec.PodProbes {
		// The oldest marker has one probe, and the others that count have four.
		if n := len(npp.Spec.PodProbes[i].Probes); n != 1+63*4 {
			t.Errorf("%d probes are planned for pod %s, want %d", n, npp.Spec.PodProbes[i].Name, 1+63*4)
		}
	}

	other := newWorldWithoutManager(t, shared)
	other.poll = await.Poll{Interval: 20 * time.Millisecond, Timeout: 5 * time.Second}
	other.pod("modest", node)
	w.must(w.client.DeleteAllOf(t.Context(), &v1alpha1.PodProbeMarker{}, client.InNamespace(w.namespace)))
	start := time.Now()
	marker := other.marker(builders.Marker(other.namespace, "modest").Probe(builders.Probe("p").Label(succeeded, "a", "b")))
	other.matched("modest", 1)
	status := time.Since(start)
	other.must(other.client.Delete(t.Context(), marker))
	other.gone("modest")
	t.Logf("the other tenant's marker has a status after %s and is released after %s", status.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	w.gone("m149")
}
