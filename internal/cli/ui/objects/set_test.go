// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/ui/objects"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// server has a CloneSet with three pods that are not available, and a pod of another one. refuse returns the error of the answer to
// a list or a get of the object.
func server(t *testing.T, updated int32, refuse func(object any) error) client.Client {
	t.Helper()
	set := &v1alpha1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "set"},
		Spec: v1alpha1.CloneSetSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Lifecycle: &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{"busy": "true"}}},
		},
		Status: v1alpha1.CloneSetStatus{
			Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UpdatedReplicas: updated, UpdatedAvailableReplicas: updated, ExpectedUpdatedReplicas: 3,
		},
	}
	pod := func(name string, owner types.UID) *builders.PodBuilder {
		return builders.Pod("ns", name).Label("app", "web").Node("n").Owner(metav1.OwnerReference{UID: owner, Controller: new(true)})
	}
	event := func(name, uid string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "ns", Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: "CloneSet", Name: "web", UID: types.UID(uid)},
			Type:           "Warning", Reason: "FailedUpdate", Message: "quota", LastTimestamp: metav1.Unix(10, 0),
		}
	}
	field := func(get func(e *corev1.Event) string) client.IndexerFunc {
		return func(object client.Object) []string { return []string{get(object.(*corev1.Event))} }
	}
	return fakeapi.Client(t, set,
		pod("web-0", "set").Build(), pod("web-1", "set").Phase(corev1.PodFailed).Build(), pod("other", "other").Build(),
		pod("web-2", "set").Label(pub.LifecycleStateKey, string(pub.LifecycleStatePreparingUpdate)).Label("busy", "true").Build(),
		event("own", "set"), event("earlier", "earlier"),
	).WithIndex(&corev1.Event{}, "involvedObject.kind", field(func(e *corev1.Event) string { return e.InvolvedObject.Kind })).
		WithIndex(&corev1.Event{}, "involvedObject.name", field(func(e *corev1.Event) string { return e.InvolvedObject.Name })).
		WithInterceptorFuncs(fakeapi.Before(func(_ string, object any) error { return refuse(object) })).Build()
}

func TestSet(t *testing.T) {
	t.Parallel()
	id := model.SetID{Namespace: "ns", Kind: "CloneSet", Name: "web"}
	waits := []model.PodWait{
		{Name: "web-1", Why: "failed", Problem: true}, {Name: "web-0", Why: "is not ready"},
		{Name: "web-2", Why: "spec.lifecycle.inPlaceUpdate holds it in the state PreparingUpdate until the label busy=true is removed"},
	}
	events := []model.Event{{Type: "Warning", Reason: "FailedUpdate", Message: "quota", Count: 1, Last: time.Unix(10, 0).UTC()}}
	for name, test := range map[string]struct {
		updated int32
		// refused is a type that the user may not read.
		refused string
		want    model.SetDetails
	}{
		"in progress": {1, "", model.SetDetails{Waits: waits, WaitCount: 3, Events: events}},
		"complete":    {3, "*v1.PodList", model.SetDetails{Waits: []model.PodWait{}, Events: events}},
		"no pods": {1, "*v1.PodList", model.SetDetails{
			Waits: []model.PodWait{}, PodsNote: "no permission to list pods in namespace ns", Events: events,
		}},
		"no events": {1, "*v1.EventList", model.SetDetails{
			Waits: waits, WaitCount: 3, Events: []model.Event{}, Note: "no permission to list events in namespace ns",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := objects.Set(t.Context(), server(t, test.updated, func(object any) error {
				if fmt.Sprintf("%T", object) == test.refused {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no role"))
				}
				return nil
			}), id, time.Unix(100, 0))
			expect.NoError(t, err)
			expect.Equal(t, "details", test.want, got)
		})
	}
}

func TestSetErrors(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "clonesets"}
	for name, test := range map[string]struct {
		kind, name string
		err        error
		status     int
	}{
		"not found":  {"CloneSet", "gone", nil, http.StatusNotFound},
		"other kind": {"SidecarSet", "web", nil, http.StatusNotFound},
		"forbidden":  {"CloneSet", "web", apierrors.NewForbidden(resource, "", nil), http.StatusForbidden},
		"broken":     {"CloneSet", "web", errors.New("broken"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := model.SetID{Namespace: "ns", Kind: test.kind, Name: test.name}
			_, err := objects.Set(t.Context(), server(t, 1, func(any) error { return test.err }), id, time.Time{})
			refusal := &web.Refusal{}
			errors.As(err, &refusal)
			if err == nil || refusal.Status != test.status {
				t.Errorf("error %v, want one with status %d", err, test.status)
			}
		})
	}
}
