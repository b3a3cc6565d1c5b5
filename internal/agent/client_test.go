// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// answerTo is how an API server answers a request: with a resourceVersion or with an error.
type answerTo struct {
	method  string
	code    int
	reason  metav1.StatusReason
	version string
	labels  map[string]string
}

// play serves the answers in order and returns a client, and the methods and versions of the
// requests.
func play(t *testing.T, answers []answerTo) (*nodeClient, *[]string) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, fmt.Sprintf("%s %s", r.Method, versionIn(r)))
		if len(requests) > len(answers) || answers[len(requests)-1].method != r.Method {
			t.Errorf("unexpected request %s %s", r.Method, r.URL)
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		accepts := metadataOnly
		if r.Method == http.MethodGet {
			accepts = metadataListOnly
		}
		if accept := r.Header.Get("Accept"); r.Method != http.MethodDelete && accept != accepts {
			t.Errorf("%s accepts %q", r.Method, accept)
		}
		a := answers[len(requests)-1]
		w.Header().Set("Content-Type", "application/json")
		if a.code != 0 {
			w.WriteHeader(a.code)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: a.reason, Code: int32(a.code),
			})
			return
		}
		answer := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: a.version, Labels: a.labels}}
		switch {
		case r.Method != http.MethodGet:
			_ = json.NewEncoder(w).Encode(answer)
		case a.version == "":
			_ = json.NewEncoder(w).Encode(metav1.PartialObjectMetadataList{})
		default:
			_ = json.NewEncoder(w).Encode(metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{answer}})
		}
	}))
	t.Cleanup(server.Close)
	client, err := newNodeClient(&rest.Config{Host: server.URL}, "node")
	expect.NoError(t, err)
	t.Cleanup(func() { client.slices.(*rest.RESTClient).Client.CloseIdleConnections() })
	return client, &requests
}

// versionIn returns the version that a request has as its precondition.
func versionIn(r *http.Request) string {
	if r.Method == http.MethodPatch {
		var operations []operation
		_ = json.NewDecoder(r.Body).Decode(&operations)
		if len(operations) == 0 || operations[0].Op != "test" || operations[0].Path != "/metadata/resourceVersion" {
			return "none"
		}
		return fmt.Sprint(operations[0].Value)
	}
	var body struct {
		Metadata struct{ ResourceVersion string }
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	return body.Metadata.ResourceVersion
}

func TestWriteSlice(t *testing.T) {
	const post, put, get = http.MethodPost, http.MethodPut, http.MethodGet
	conflict := func(method string) answerTo {
		return answerTo{method: method, code: http.StatusConflict, reason: metav1.StatusReasonConflict}
	}
	missing := func(method string) answerTo {
		return answerTo{method: method, code: http.StatusNotFound, reason: metav1.StatusReasonNotFound}
	}
	exists := answerTo{method: post, code: http.StatusConflict, reason: metav1.StatusReasonAlreadyExists}
	read, none := answerTo{method: get, version: "1"}, answerTo{method: get}
	created, updated := answerTo{method: post, version: "2"}, answerTo{method: put, version: "2"}
	denied := answerTo{method: put, code: http.StatusForbidden, reason: metav1.StatusReasonForbidden}
	cases := map[string]struct {
		version string
		exists  bool
		answers []answerTo
		want    string
		fails   bool
	}{
		"new slice":        {answers: []answerTo{created}, want: "POST"},
		"new slice exists": {answers: []answerTo{exists, read, updated}, want: "POST, GET, PUT 1"},
		"known version":    {version: "1", exists: true, answers: []answerTo{updated}, want: "PUT 1"},
		"other version":    {version: "0", exists: true, answers: []answerTo{conflict(put), read, updated}, want: "PUT 0, GET, PUT 1"},
		"again another version": {
			version: "0", exists: true, answers: []answerTo{conflict(put), read, conflict(put)}, want: "PUT 0, GET, PUT 1", fails: true,
		},
		"deleted":                        {version: "1", exists: true, answers: []answerTo{missing(put), none, created}, want: "PUT 1, GET, POST"},
		"unknown version":                {exists: true, answers: []answerTo{read, updated}, want: "GET, PUT 1"},
		"unknown version, deleted":       {exists: true, answers: []answerTo{none, created}, want: "GET, POST"},
		"CRD deleted":                    {version: "1", exists: true, answers: []answerTo{missing(put), missing(get)}, want: "PUT 1, GET", fails: true},
		"denied":                         {version: "1", exists: true, answers: []answerTo{denied}, want: "PUT 1", fails: true},
		"new slice exists, then deleted": {answers: []answerTo{exists, none, created}, want: "POST, GET, POST"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client, requests := play(t, tc.answers)
			client.setVersion("node.0", &metav1.ObjectMeta{ResourceVersion: tc.version})
			slice := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: "node.0"}, NodeName: "node"}
			size, err := client.WriteSlice(t.Context(), slice, tc.exists)
			if tc.fails != (err != nil) || size == 0 && err == nil {
				t.Errorf("size %d, error %v, want error: %t", size, err, tc.fails)
			}
			expect.Equal(t, "requests", tc.want, strings.TrimSpace(strings.ReplaceAll(strings.Join(*requests, ", "), " ,", ",")))
			want := "2"
			if tc.fails {
				want = ""
			}
			expect.Equal(t, "version after the write", want, client.stored("node.0").version)
		})
	}
}

// TestLabeledSliceIsPatched checks that a write keeps the labels that others have set: an update
// would remove them.
func TestLabeledSliceIsPatched(t *testing.T) {
	client, requests := play(t, []answerTo{
		{method: http.MethodGet, version: "1", labels: map[string]string{"a": "b"}},
		{method: http.MethodPatch, version: "2", labels: map[string]string{"a": "b"}},
		// The test of a JSON patch fails.
		{method: http.MethodPatch, code: http.StatusUnprocessableEntity, reason: metav1.StatusReasonInvalid},
		{method: http.MethodGet, version: "3", labels: map[string]string{"a": "b"}},
		{method: http.MethodPatch, version: "4"},
		{method: http.MethodPut, version: "5"},
	})
	slice := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: "node.0"}, NodeName: "node"}
	for range 3 {
		if _, err := client.WriteSlice(t.Context(), slice, true); err != nil {
			t.Fatal(err)
		}
	}
	expect.Equal(t, "requests", []string{"GET ", "PATCH 1", "PATCH 2", "GET ", "PATCH 3", "PUT 4"}, *requests)
}

func TestDeleteSliceIgnoresMissing(t *testing.T) {
	client, _ := play(t, []answerTo{
		{method: http.MethodDelete, code: http.StatusNotFound, reason: metav1.StatusReasonNotFound},
		{method: http.MethodDelete, code: http.StatusForbidden, reason: metav1.StatusReasonForbidden},
	})
	if err := client.DeleteSlice(t.Context(), "node.0"); err != nil {
		t.Errorf("missing slice: %v", err)
	}
	if err := client.DeleteSlice(t.Context(), "node.0"); err == nil {
		t.Error("no error although the deletion is forbidden")
	}
}

// transport answers requests in virtual time.
type transport func(*http.Request) (code int, body string, err error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body, err := t(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

// TestWatchContinues checks that an agent reads its plan within ten seconds after the API server answers
// again, however long it did not.
func TestWatchContinues(t *testing.T) {
	for _, lasts := range []time.Duration{time.Second, 20 * time.Second, 10 * time.Minute} {
		t.Run(lasts.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := time.Now().Add(lasts)
				client, err := newNodeClient(&rest.Config{Host: "http://server", Transport: transport(func(r *http.Request) (int, string, error) {
					switch query := r.URL.Query(); {
					case time.Now().Before(answers):
						return 0, "", syscall.ECONNREFUSED
					case query.Get("sendInitialEvents") != "":
						return http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, nil
					case query.Get("watch") != "":
						<-r.Context().Done()
						return 0, "", r.Context().Err()
					default:
						return http.StatusOK, `{"kind":"NodePodProbeList","apiVersion":"apps.kruise.io/v1alpha1","metadata":{"resourceVersion":"1"}}`, nil
					}
				})}, "node")
				expect.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				w, ended := newWatched(func() {}), make(chan struct{})
				go func() {
					defer close(ended)
					client.reflector(objectStore{w}, logr.Discard()).RunWithContext(ctx)
				}()
				<-w.changed
				if after := time.Since(answers); after < 0 || after > 10*time.Second {
					t.Errorf("the plan is read %s after the API server answers", after)
				}
				cancel()
				<-ended
			})
		})
	}
}
