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
	"github.com/seamark-dev/seamark/internal/cli/exit"
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

// failed returns a pod of the set that was created at the time.
func failed(name string, at int64) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "games", Name: name, CreationTimestamp: metav1.Unix(at, 0), OwnerReferences: []metav1.OwnerReference{{UID: "1", Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodFailed},
	}
}

// hangs is the code of an answer that does not come.
const hangs = 0

// serve returns the address of an API server with the set, and another one with its labels, and the requests that it gets. A set
// completes as soon as it is watched. Requests that begin with the texts are refused with the codes.
func serve(t *testing.T, set *v1alpha1.CloneSet, refused map[string]int) (address string, requests func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		verb := "list"
		if resource == set.Name {
			verb = "get"
		}
		if query.Get("watch") != "" {
			verb = "watch from " + query.Get("resourceVersion") + " of"
		}
		mu.Lock()
		request := strings.Join([]string{r.Method, verb, resource, query.Get("fieldSelector") + query.Get("labelSelector")}, " ")
		all = append(all, request)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		for prefix, code := range refused {
			switch {
			case !strings.HasPrefix(request, prefix):
			case code == hangs:
				<-r.Context().Done()
				return
			default:
				w.WriteHeader(code)
				_ = json.NewEncoder(w).Encode(metav1.Status{
					TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: int32(code), Reason: metav1.StatusReason(http.StatusText(code)),
				})
				return
			}
		}
		var answer any = &corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "8"},
			Items: []corev1.Pod{failed("arena-b", 1), failed("arena-a", 2)},
		}
		switch {
		case verb == "get":
			answer = set
		case resource == "clonesets" && verb == "list":
			list := &v1alpha1.CloneSetList{
				TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "CloneSetList"},
				ListMeta: metav1.ListMeta{ResourceVersion: "7"},
			}
			for _, name := range []string{set.Name, "lobby"} {
				if selected := query.Get("fieldSelector"); selected == "" || selected == "metadata.name="+name {
					listed := *set
					listed.Name = name
					list.Items = append(list.Items, listed)
				}
			}
			answer = list
		case resource == "clonesets":
			changed := arena(2)
			changed.Name = strings.TrimPrefix(query.Get("fieldSelector"), "metadata.name=")
			answer = map[string]any{"type": watch.Modified, "object": changed}
		case verb != "list":
			answer = nil
		}
		if answer != nil {
			_ = json.NewEncoder(w).Encode(answer)
		}
		if verb == "list" || verb == "get" {
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
	const complete, waits = "cloneset \"arena\" successfully rolled out\n", "Waiting for cloneset \"arena\" rollout to finish: 1 of 2 pods are updated"
	watched := []string{"GET watch from 7 of clonesets metadata.name=arena", "GET watch from 8 of pods app=arena"}
	for name, test := range map[string]struct {
		updated  int32
		args     string
		refused  map[string]int
		code     int
		requests []string
		want     string
	}{
		"watched":                   {1, "cloneset/arena", nil, exit.OK, append([]string{set, pods}, watched...), complete},
		"complete":                  {2, "cloneset/arena", nil, exit.OK, []string{set}, complete},
		"complete, without a watch": {2, "cloneset/arena --watch=false", nil, exit.OK, []string{set}, complete},
		"without a watch":           {1, "cloneset/arena --watch=false", nil, exit.OK, []string{set, pods}, waits + "; pod arena-a failed, and 1 more pod...\n"},
		"two sets": {
			1, "cloneset -l app=arena", nil, exit.OK,
			append([]string{
				"GET list clonesets app=arena", pods, "GET list clonesets metadata.name=lobby", pods,
				"GET watch from 7 of clonesets metadata.name=lobby", "GET watch from 8 of pods app=arena",
			}, watched...), "cloneset \"lobby\" successfully rolled out\n",
		},
		"two complete sets": {
			2, "cloneset -l app=arena", nil, exit.OK, []string{"GET list clonesets app=arena"},
			complete + "cloneset \"lobby\" successfully rolled out\n",
		},
		"only get is allowed": {
			1, "cloneset/arena --watch=false", map[string]int{"GET list clonesets": http.StatusForbidden}, exit.OK,
			[]string{set, "GET get arena ", pods}, waits,
		},
		"only get and watch are allowed": {
			1, "cloneset/arena", map[string]int{"GET list": http.StatusForbidden}, exit.OK,
			[]string{set, "GET get arena ", pods, "GET watch from  of clonesets metadata.name=arena"}, complete,
		},
		"only get is allowed, in a watch": {
			1, "cloneset/arena", map[string]int{"GET list": http.StatusForbidden, "GET watch": http.StatusForbidden}, exit.Failed,
			nil, "no permission to watch clonesets.apps.kruise.io in namespace games",
		},
		"nothing is allowed": {
			1, "cloneset/arena", map[string]int{"GET": http.StatusForbidden}, exit.Failed, []string{set, "GET get arena "},
			"no permission to list clonesets.apps.kruise.io in namespace games",
		},
		"a revision, without discovery": {
			1, "cloneset/arena --revision=1", map[string]int{"GET list controllerrevisions": http.StatusForbidden}, exit.Failed,
			[]string{set, "GET list controllerrevisions app=arena"}, "no permission to list controllerrevisions.apps in namespace games",
		},
		"pods may not be listed": {
			1, "cloneset/arena --watch=false", map[string]int{"GET list pods": http.StatusForbidden}, exit.OK, []string{set, pods}, waits + "...\n",
		},
		"the list of pods is refused": {
			1, "cloneset/arena --watch=false", map[string]int{"GET list pods": http.StatusUnauthorized}, exit.Failed, []string{set, pods},
			"list pods of namespace games: ",
		},
		"the list hangs": {
			1, "cloneset/arena --timeout=200ms", map[string]int{"GET list clonesets": hangs}, exit.Failed, []string{set},
			"Error: cloneset.apps.kruise.io/arena: the cluster has not answered within --timeout=200ms",
		},
		"the list by labels hangs": {
			1, "cloneset -l app=arena --timeout=200ms", map[string]int{"GET list clonesets": hangs}, exit.Failed,
			[]string{"GET list clonesets app=arena"}, "Error: the cluster has not answered within --timeout=200ms",
		},
	} {
		address, requests := serve(t, arena(test.updated), test.refused)
		args := append([]string{"rollout", "status", "--server=" + address, "--namespace=games", "--timeout=1m"}, strings.Fields(test.args)...)
		stdout, stderr, code := clitest.Execute(t, New, "", args...)
		if code != test.code || !strings.Contains(stdout+stderr, test.want) {
			t.Errorf("%s: exit code %d, output %q, errors %q, want %q", name, code, stdout, stderr, test.want)
		}
		if test.requests == nil {
			continue // They depend on what is refused first.
		}
		// Two resources are watched at the same time.
		got := requests()
		slices.Sort(got)
		slices.Sort(test.requests)
		expect.Equal(t, name+": requests", test.requests, got)
	}
}
