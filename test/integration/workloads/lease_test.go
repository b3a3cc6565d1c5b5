// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
)

// TestControllersYieldToOpenKruise starts the program while the lease of OpenKruise's manager is held,
// and lets the lease expire.
func TestControllersYieldToOpenKruise(t *testing.T) {
	w := newWorldWithoutProgram(t, servers.Parallel(t))
	w.must(client.IgnoreAlreadyExists(w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}})))
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-manager"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("kruise-controller-manager-0"), LeaseDurationSeconds: new(int32(3600)),
			RenewTime: new(metav1.NewMicroTime(time.Now())),
		},
	}
	webhook := builders.OpenKruiseWebhook("kruise-system")
	w.must(w.client.Create(t.Context(), webhook))
	defer func() { w.must(w.client.Delete(context.Background(), webhook)) }()
	w.must(w.client.Create(t.Context(), lease))
	defer func() { w.must(w.client.Delete(context.Background(), lease)) }()
	set := w.cloneSet("web", 2)
	w.start()
	await.Until(t, "an event about the lease", func(ctx context.Context) (string, error) {
		var events corev1.EventList
		if err := w.client.List(ctx, &events, client.InNamespace("kruise-system")); err != nil {
			return "", err
		}
		for i := range events.Items {
			if events.Items[i].Reason == "SeamarkYields" && events.Items[i].InvolvedObject.Name == "kruise-manager" {
				return "", nil
			}
		}
		return fmt.Sprintf("%d events", len(events.Items)), nil
	})
	if yields := w.gauge("seamark_workloads_yielding", "CloneSet"); yields != 1 {
		t.Errorf("seamark_workloads_yielding is %g, want 1", yields)
	}
	pods, err := w.pods(t.Context(), "web")
	if w.must(err); len(pods) != 0 {
		t.Errorf("%d pods while OpenKruise's manager holds its lease, want none", len(pods))
	}
	// The lease expires: it is short now, and not renewed.
	w.patch(lease, `{"spec":{"leaseDurationSeconds":1}}`)
	w.settled(set, 2, "image:1")
	if yields := w.gauge("seamark_workloads_yielding", "CloneSet"); yields != 0 {
		t.Errorf("seamark_workloads_yielding is %g, want 0", yields)
	}
}

// gauge returns the value of a metric of the kind.
func (w *world) gauge(name, kind string) float64 {
	w.Helper()
	families, err := w.registry.Gather()
	w.must(err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == name && label.GetName() == "kind" && label.GetValue() == kind {
					return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
				}
			}
		}
	}
	w.must(errors.New("no metric " + name + " of kind " + kind))
	return 0
}
