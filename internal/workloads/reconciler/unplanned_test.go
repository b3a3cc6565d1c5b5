// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestReasonWithoutStepIsReportedOnce(t *testing.T) {
	set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid"}}
	server := fakeapi.Client(t, set).WithStatusSubresource(set).Build()
	recorder := record.NewFakeRecorder(10)
	at := time.Unix(1000, 0)
	b := NewBase(Options{Client: server, Metrics: noMetrics{}, Recorder: recorder, Now: func() time.Time { return at }})
	b.Kind = cloneset.Kind()
	var versions []string
	for _, reason := range []error{errors.New("a is broken"), errors.New("a is broken"), errors.New("b is broken")} {
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		after := cloneset.Unplanned(set, reason, at)
		if err := b.Unplanned(t.Context(), set, reason, &set.Status, &after); !errors.Is(err, reason) {
			t.Errorf("error %v, want %v: the set is not tried again with a backoff", err, reason)
		}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		c := set.Status.Conditions[0]
		if c.Status != corev1.ConditionTrue || c.Message != reason.Error() {
			t.Errorf("condition %+v, want the message %q", c, reason)
		}
		versions = append(versions, set.ResourceVersion)
		at = at.Add(time.Minute)
	}
	if versions[0] != versions[1] || versions[1] == versions[2] {
		t.Errorf("resource versions %v, want a write for each new reason", versions)
	}
	close(recorder.Events)
	var events []string
	for event := range recorder.Events {
		events = append(events, event)
	}
	if diff := cmp.Diff([]string{"Warning FailedScale a is broken", "Warning FailedScale b is broken"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
