// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	metrics "github.com/seamark-dev/seamark/internal/workloads/metrics"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

func TestGuardReadsTheLeaseInItsNamespace(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kruise", Name: "kruise-manager"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: new(metav1.NewMicroTime(now))},
	}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for namespace, open := range map[string]bool{"kruise": false, "kruise-system": true} {
		t.Run(namespace, func(t *testing.T) {
			gate := workload.NewGate()
			g := &guard{
				live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(lease.DeepCopy()).Build(), namespace: namespace,
				gates:   map[string]*workload.Gate{"CloneSet": gate},
				metrics: metrics.New(prometheus.NewRegistry(), "CloneSet"), recorder: record.NewFakeRecorder(1),
				log: logr.Discard(), now: func() time.Time { return now },
			}
			if err := g.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			if gate.Open() != open {
				t.Errorf("the gate is open: %t, want %t", gate.Open(), open)
			}
		})
	}
}
