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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seamark-dev/seamark/internal/workloads/metrics"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestForeignLeaseOfOpenKruise(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kruise", Name: "kruise-manager"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: new(metav1.NewMicroTime(now))},
	}
	scheme, err := newScheme()
	expect.NoError(t, err)
	// installed is the namespace of the Service of OpenKruise's webhooks, if there is one.
	for name, test := range map[string]struct {
		namespace, installed string
		paused               bool
	}{
		"held":                         {"kruise", "kruise", true},
		"in another namespace":         {"kruise-system", "kruise-system", false},
		"without OpenKruise":           {"kruise", "", false},
		"OpenKruise is somewhere else": {"kruise", "kruise-system", false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{lease.DeepCopy()}
			if test.installed != "" {
				objects = append(objects, builders.OpenKruiseWebhook(test.installed))
			}
			pause := reconciler.NewPause()
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			f := &foreignLease{
				live: live, namespace: test.namespace,
				pauses:  map[string]*reconciler.Pause{"CloneSet": pause},
				metrics: metrics.New(prometheus.NewRegistry()), recorder: record.NewFakeRecorder(1),
				log: logr.Discard(), now: func() time.Time { return now },
			}
			expect.NoError(t, f.look(t.Context()))
			expect.Equal(t, "the pause is active", test.paused, pause.Active())
			// Its webhooks are removed before its manager.
			expect.NoError(t, client.IgnoreNotFound(live.Delete(t.Context(), builders.OpenKruiseWebhook(""))))
			expect.NoError(t, f.look(t.Context()))
			expect.Equal(t, "without webhooks, the pause is active", test.paused, pause.Active())
		})
	}
}

func TestForeignLease(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// look is one look: at a time after the start, at a lease with a renewal at a time after the start.
	type look struct {
		at, renewed time.Duration
		holder      string
		absent      bool
		held        bool
	}
	cases := map[string][]look{
		"no lease":                     {{absent: true}},
		"released lease":               {{}},
		"renewed":                      {{at: 0, renewed: -time.Second, holder: "a", held: true}, {at: 60 * time.Second, renewed: 59 * time.Second, holder: "a", held: true}},
		"expires":                      {{at: 0, renewed: -time.Second, holder: "a", held: true}, {at: 16 * time.Second, renewed: -time.Second, holder: "a"}},
		"left behind long ago":         {{renewed: -time.Hour, holder: "a"}},
		"clock of the holder is late":  {{renewed: -50 * time.Second, holder: "a", held: true}, {at: 5 * time.Second, renewed: -45 * time.Second, holder: "a", held: true}},
		"clock of the holder is early": {{renewed: time.Hour, holder: "a", held: true}, {at: 20 * time.Second, renewed: time.Hour, holder: "a"}},
		"acquired again":               {{renewed: -time.Hour, holder: "a"}, {at: time.Minute, renewed: time.Minute, holder: "b", held: true}},
		"deleted":                      {{renewed: -time.Second, holder: "a", held: true}, {at: time.Second, absent: true}},
	}
	for name, looks := range cases {
		t.Run(name, func(t *testing.T) {
			var seen observation
			for i, l := range looks {
				lease := &coordinationv1.Lease{}
				if !l.absent {
					lease = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
						HolderIdentity: new(l.holder), RenewTime: new(metav1.NewMicroTime(start.Add(l.renewed))), LeaseDurationSeconds: new(int32(15)),
					}}
				}
				var held bool
				if seen, held = seen.next(lease, start.Add(l.at)); held != l.held {
					t.Errorf("look %d: held %t, want %t", i, held, l.held)
				}
			}
		})
	}
}
