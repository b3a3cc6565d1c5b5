// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/injector"
)

// fakeSets are sets by name. A set without a choice cannot be read.
type fakeSets map[string]*injector.Choice

func (f fakeSets) Choose(_ context.Context, set string, _ *corev1.Pod, _ types.UID) (injector.Choice, error) {
	choice, found := f[set]
	switch {
	case !found:
		return injector.Choice{}, nil
	case choice == nil:
		return injector.Choice{}, errors.New("no connection")
	default:
		return *choice, nil
	}
}

func (f fakeSets) ChooseBound(ctx context.Context, pod *corev1.Pod, request types.UID, version string) ([]injector.Choice, error) {
	if version == "behind" {
		return nil, errors.New("an old cache")
	}
	var choices []injector.Choice
	for _, name := range slices.Sorted(maps.Keys(f)) {
		choice, err := f.Choose(ctx, name, pod, request)
		if err != nil {
			return nil, err
		}
		choices = append(choices, choice)
	}
	return choices, nil
}

func (fakeSets) Known(context.Context, string, string) *inject.Revision { return nil }

func choice(name string) *injector.Choice {
	return &injector.Choice{Set: name, Selects: true, Revision: &inject.Revision{
		Set: name, Name: name + "-1", Containers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: name, Image: name}}},
	}}
}

// ask sends a pod and returns the response, the names of the containers after it, and the result that was counted. If
// the answer is not a response, the response has its status and text.
func ask(t *testing.T, sets injector.Sets, path string, containers ...string) (*admissionv1.AdmissionResponse, []string, injector.Result) {
	t.Helper()
	pod := &corev1.Pod{}
	for _, name := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name})
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &admissionv1.AdmissionRequest{UID: "uid", Namespace: "games", Object: runtime.RawExtension{Raw: raw}},
	}
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	var result injector.Result
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	injector.New(sets, func(r injector.Result) { result = r }).ServeHTTP(answer, request)
	review = admissionv1.AdmissionReview{}
	if answer.Code != http.StatusOK {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: int32(answer.Code), Message: answer.Body.String()}}, containers, result
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &review); err != nil || review.Response == nil {
		t.Fatalf("response %d %s: %v", answer.Code, answer.Body, err)
	}
	if len(review.Response.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(review.Response.Patch)
		if err == nil {
			raw, err = patch.Apply(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	pod = &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	slices.Sort(names)
	return review.Response, names, result
}

func TestResponses(t *testing.T) {
	optional, refused, paused := choice("logs"), choice("logs"), &injector.Choice{Selects: true}
	optional.Optional = true
	refused.Refused, refused.Revision = "spec.a: is not supported", nil
	for name, test := range map[string]struct {
		sets       fakeSets
		path       string
		containers []string
		want       injector.Result
		// added are the containers that the pod gets, message the message or warning.
		added   []string
		message string
	}{
		"set":                           {sets: fakeSets{"logs": choice("logs")}, path: "/inject/logs", want: injector.Injected, added: []string{"logs"}},
		"set that is gone":              {sets: fakeSets{}, path: "/inject/logs", want: injector.Unchanged},
		"paused set":                    {sets: fakeSets{"logs": paused}, path: "/inject/logs", want: injector.Unchanged},
		"set that cannot be read":       {sets: fakeSets{"logs": nil}, path: "/inject/logs", want: injector.Failed, message: "no connection"},
		"container of the pod":          {sets: fakeSets{"logs": choice("logs")}, path: "/inject/logs", containers: []string{"logs"}, want: injector.Refused, message: `the pod has a container "logs" of its own`},
		"container of the pod, allowed": {sets: fakeSets{"logs": optional}, path: "/inject/logs", containers: []string{"logs"}, want: injector.Unchanged, message: "not injected: SidecarSet logs"},
		"set that is refused":           {sets: fakeSets{"logs": refused}, path: "/inject/logs", want: injector.Refused, message: "SidecarSet logs: spec.a: is not supported"},
		"group":                         {sets: fakeSets{"logs": choice("logs"), "metrics": choice("metrics")}, path: "/inject/group/fail-0", want: injector.Injected, added: []string{"logs", "metrics"}},
		"group with a paused set":       {sets: fakeSets{"logs": paused}, path: "/inject/group/fail-0", want: injector.Unchanged},
		"group of sets that are gone":   {sets: fakeSets{}, path: "/inject/group/fail-0", want: injector.Unchanged},
		"group, with a version":         {sets: fakeSets{"logs": choice("logs")}, path: "/inject/group/fail-0.7", want: injector.Injected, added: []string{"logs"}},
		"group, with a newer version":   {sets: fakeSets{"logs": choice("logs")}, path: "/inject/group/fail-0.behind", want: injector.Failed, message: "an old cache"},
		"group that cannot be read":     {sets: fakeSets{"logs": nil}, path: "/inject/group/fail-0", want: injector.Failed, message: "no connection"},
	} {
		t.Run(name, func(t *testing.T) {
			before := append([]string{"main"}, test.containers...)
			response, names, result := ask(t, test.sets, test.path, before...)
			allowed := test.want == injector.Injected || test.want == injector.Unchanged
			// The failure policy of the entry decides about an answer of the status 500 only.
			isFailure := response.Result != nil && response.Result.Code == http.StatusInternalServerError
			if result != test.want || response.Allowed != allowed || isFailure != (test.want == injector.Failed) {
				t.Errorf("result %s, allowed %t, want %s", result, response.Allowed, test.want)
			}
			text := strings.Join(response.Warnings, " ")
			if response.Result != nil {
				text += response.Result.Message
			}
			if !strings.Contains(text, test.message) {
				t.Errorf("message %q, want %q", text, test.message)
			}
			want := append(before, test.added...)
			slices.Sort(want)
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("containers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHostileRequests checks what requests of others than API servers get.
func TestHostileRequests(t *testing.T) {
	handler := injector.New(fakeSets{}, func(injector.Result) {})
	for name, body := range map[string]string{"no review": "{}", "no JSON": "x"} {
		answer := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodPost, "/inject/logs", strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(answer, request)
		// Nor do they get an admission response.
		if answer.Code != http.StatusInternalServerError || answer.Body.Len() > 1<<10 {
			t.Errorf("%s: answer %d %.300s", name, answer.Code, answer.Body)
		}
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/inject/logs", http.NoBody))
	if answer.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", answer.Code)
	}
}
