// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/test/expect"
)

// arena returns a set of two pods, of which some are updated and available.
func arena(updated int32) *v1alpha1.CloneSet {
	return &v1alpha1.CloneSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "CloneSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "arena", UID: "1", ResourceVersion: strconv.Itoa(int(updated)), Generation: 1},
		Spec: v1alpha1.CloneSetSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "arena"}},
		},
		Status: v1alpha1.CloneSetStatus{
			ObservedGeneration: 1, Replicas: 2, ExpectedUpdatedReplicas: 2, UpdatedReplicas: updated, UpdatedAvailableReplicas: updated, AvailableReplicas: 2,
		},
	}
}

// serve returns the address of an API server with the set, which completes as soon as it is watched, and the requests that it gets.
func serve(t *testing.T, set *v1alpha1.CloneSet) (address string, requests func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		verb := "list"
		if query.Get("watch") != "" {
			verb = "watch from " + query.Get("resourceVersion") + " of"
		}
		mu.Lock()
		all = append(all, strings.Join([]string{r.Method, verb, resource, query.Get("fieldSelector") + query.Get("labelSelector")}, " "))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		var answer any = &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "8"}}
		switch {
		case resource == "clonesets" && verb == "list":
			answer = &v1alpha1.CloneSetList{
				TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "CloneSetList"},
				ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []v1alpha1.CloneSet{*set},
			}
		case resource == "clonesets":
			answer = map[string]any{"type": watch.Modified, "object": arena(2)}
		case verb != "list":
			answer = nil
		}
		if answer != nil {
			_ = json.NewEncoder(w).Encode(answer)
		}
		if verb == "list" {
			return
		}
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// A status is one request for each object, and a watch.
func TestRequestsOfStatus(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	const set, pods = "GET list clonesets metadata.name=arena", "GET list pods app=arena"
	for name, test := range map[string]struct {
		set      *v1alpha1.CloneSet
		args     []string
		requests []string
		want     string
	}{
		"watched": {
			arena(1), nil, []string{set, pods, "GET watch from 7 of clonesets metadata.name=arena", "GET watch from 8 of pods app=arena"},
			"cloneset \"arena\" successfully rolled out\n",
		},
		"complete":                  {arena(2), nil, []string{set}, "cloneset \"arena\" successfully rolled out\n"},
		"complete, without a watch": {arena(2), []string{"--watch=false"}, []string{set}, "cloneset \"arena\" successfully rolled out\n"},
		"without a watch": {
			arena(1), []string{"--watch=false"}, []string{set, pods}, "Waiting for cloneset \"arena\" rollout to finish: 1 of 2 pods are updated...\n",
		},
	} {
		address, requests := serve(t, test.set)
		args := append([]string{"rollout", "status", "cloneset/arena", "--server=" + address, "--namespace=games", "--timeout=1m"}, test.args...)
		stdout, stderr, code := clitest.Execute(t, New, "", args...)
		if code != 0 || !strings.HasSuffix(stdout, test.want) {
			t.Errorf("%s: exit code %d, output %q, errors %q, want %q", name, code, stdout, stderr, test.want)
		}
		// Two resources are watched at the same time.
		got := requests()
		slices.Sort(got)
		slices.Sort(test.requests)
		expect.Equal(t, name+": requests", test.requests, got)
	}
}
