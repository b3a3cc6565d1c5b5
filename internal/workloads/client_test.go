// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestPodsAreDeletedWithoutDecodingTheResponse(t *testing.T) {
	changed := apierrors.NewConflict(corev1.Resource("pods"), "set-a", errors.New("the object has been modified"))
	for name, test := range map[string]struct {
		code     int
		response any
		conflict bool
	}{
		"deleted": {http.StatusOK, "not an object", false},
		"changed": {http.StatusConflict, changed.Status(), true},
	} {
		t.Run(name, func(t *testing.T) {
			var request string
			var sent metav1.DeleteOptions
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				request = r.Method + " " + r.URL.String()
				if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
					t.Errorf("decode the options: %v", err)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.code)
				if err := json.NewEncoder(w).Encode(test.response); err != nil {
					t.Errorf("respond: %v", err)
				}
			}))
			defer server.Close()
			c, err := newPodDeleter(fakeapi.Client(t).Build(), &rest.Config{Host: server.URL}, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			uid, version := types.UID("uid-a"), "12"
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set-a"}}
			err = c.Delete(t.Context(), pod, client.Preconditions{UID: &uid, ResourceVersion: &version})
			if apierrors.IsConflict(err) != test.conflict || (err != nil) != test.conflict {
				t.Errorf("error %v, want a conflict: %t", err, test.conflict)
			}
			if want := "DELETE /api/v1/namespaces/ns/pods/set-a"; request != want {
				t.Errorf("request %s, want %s", request, want)
			}
			want := &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
			if diff := cmp.Diff(want, sent.Preconditions); diff != "" {
				t.Errorf("preconditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherObjectsAreDeletedAsUsual(t *testing.T) {
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set-1"}}
	base := fakeapi.Client(t, revision).Build()
	c, err := newPodDeleter(base, &rest.Config{Host: "127.0.0.1:1"}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	if err := base.Get(t.Context(), client.ObjectKeyFromObject(revision), revision); !apierrors.IsNotFound(err) {
		t.Errorf("get the revision: %v, want that it does not exist", err)
	}
}
