// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
)

// TestSetsSayWhyTheirEntriesAreNotWritten lets one of two configurations fail: only the sets of this one say why, until it
// is written.
func TestSetsSayWhyTheirEntriesAreNotWritten(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var current configurations
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for i := range current {
		current[i].Name, current[i].UID = entries.ConfigurationName(i), types.UID(entries.ConfigurationName(i))
		builder.WithObjects(current[i].DeepCopy())
	}
	refused := errors.New("denied by a policy")
	c := New(Options{Now: time.Now, Client: builder.WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
			if object.GetName() == entries.ConfigurationName(0) {
				return refused
			}
			return nil
		},
	}).Build()})
	plan := entries.Plan{Entered: map[types.UID]bool{"a": true, "b": true}}
	var sets []*v1alpha1.SidecarSet
	for i, name := range []string{"a", "b"} {
		sets = append(sets, &v1alpha1.SidecarSet{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Status:     v1alpha1.SidecarSetStatus{InForce: &v1alpha1.SidecarSetInForce{}},
		})
		plan.Lists[i] = []admissionregistrationv1.MutatingWebhook{entries.Server{}.Entry(sets[i])}
	}
	w := newWriter(c)
	written, err := w.put(t.Context(), &current, plan.Lists)
	if !errors.Is(err, refused) || written.Names()["a"] || !written.Names()["b"] {
		t.Fatalf("written %v, error %v", written.Names(), err)
	}
	c.fail(sets, plan, written, err)
	reason := func(set *v1alpha1.SidecarSet) string {
		c.describe(set, &set.Status)
		condition := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.SidecarSetInjecting)
		if condition == nil {
			return ""
		}
		if condition.Reason == "NotWritten" && !strings.Contains(condition.Message, refused.Error()) {
			t.Errorf("message %q", condition.Message)
		}
		return condition.Reason
	}
	if got := []string{reason(sets[0]), reason(sets[1])}; got[0] != "NotWritten" || got[1] != "" {
		t.Errorf("reasons %q, want NotWritten and none yet", got)
	}
	// The other configuration fails at the next attempt, and the entry of the first set is written.
	c.fail(sets, plan, entries.Lists{plan.Lists[0]}, err)
	if got := []bool{c.board.states["a"].failure != "", c.board.states["b"].failure != ""}; got[0] || !got[1] {
		t.Errorf("failures of the sets %v, want that of the second one only", got)
	}
	c.post(sets, plan, true)
	if got := []string{reason(sets[0]), reason(sets[1])}; got[0] != "Entered" || got[1] != "Entered" {
		t.Errorf("reasons %q after the next write, want Entered", got)
	}
}

// TestPauseOfEntries writes entries as often as the pauses permit.
func TestPauseOfEntries(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		took time.Duration
		// atOnce is the number of writes without a pause, and perHour the number of writes of the hour after.
		atOnce, perHour int
	}{
		"short writes count as the least one": {took: time.Millisecond, atOnce: 11, perHour: 3600},
		"writes take a tenth of the time":     {took: 250 * time.Millisecond, atOnce: 5, perHour: 1440},
		"long writes take a tenth, too":       {took: time.Minute, atOnce: 1, perHour: 6},
	} {
		t.Run(name, func(t *testing.T) {
			now := start
			w := newWriter(New(Options{Now: func() time.Time { return now }}))
			write := func() {
				now = now.Add(test.took)
				w.spend(test.took)
			}
			atOnce := 0
			for ; w.pause() == 0; atOnce++ {
				write()
			}
			writes := 0
			for end := now.Add(time.Hour); now.Before(end); writes++ {
				now = now.Add(w.pause() + time.Microsecond)
				write()
			}
			if tolerance := test.perHour/20 + 1; atOnce != test.atOnce || max(writes-test.perHour, test.perHour-writes) > tolerance {
				t.Errorf("%d writes at once and %d in the hour after, want %d and %d", atOnce, writes, test.atOnce, test.perHour)
			}
			before := w.pause()
			now = start.Add(-time.Hour)
			if pause := w.pause(); pause > before {
				t.Errorf("pause of %s instead of %s after the clock was corrected", pause, before)
			}
		})
	}
}
