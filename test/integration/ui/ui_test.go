// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/uistream"
)

// sources returns where the states of the pods come from, by key.
func sources(stream *uistream.Stream) map[string]string {
	found := map[string]string{}
	for key, pod := range stream.Pods {
		found[key] = string(pod.Probes[0].Source)
	}
	return found
}

// until waits until the states have the sources: the manager may not have marked a pod yet.
func until(stream *uistream.Stream, want map[string]string) {
	stream.Until("the states are there", func(uistream.Event) bool { return cmp.Equal(want, sources(stream)) })
}

func TestManagerServesWhatUsersMayRead(t *testing.T) {
	w := newWorld(t)

	t.Run("without a token", func(t *testing.T) {
		for path, want := range map[string]int{
			"/": http.StatusOK, "/assets/main.js": http.StatusOK, "/api/v1/session": http.StatusUnauthorized,
			"/api/v1/stream": http.StatusUnauthorized, "/api/v1/problems": http.StatusUnauthorized, "/api/v1/timeline?namespace=a&pod=b&since=1h": http.StatusUnauthorized,
		} {
			if status, body := w.get(t, &http.Client{Transport: &http.Transport{}}, path); status != want {
				t.Errorf("%s: status %d, want %d: %s", path, status, want, body)
			}
		}
	})
	t.Run("with a wrong token", func(t *testing.T) {
		status, body := w.get(t, browser(t, "wrong"), "/api/v1/session")
		if want := "the API server does not accept the token"; status != http.StatusUnauthorized || !strings.Contains(body, want) {
			t.Errorf("status %d: %s, want %s", status, body, want)
		}
	})
	t.Run("without permission", func(t *testing.T) {
		nobody := browser(t, shared.ServiceAccount(t, w.first, "nobody", nil).BearerToken)
		user := account(w.first, "nobody")
		for path, want := range map[string]string{
			"/api/v1/session?namespace=" + w.first: `user "` + user + `" has no permission to list pods in namespace ` + w.first +
				"; ask for: kubectl create rolebinding seamark-view -n " + w.first + " --clusterrole=view --user=" + user,
			"/api/v1/stream": `user "` + user + `" has no permission to list pods in the cluster; choose a namespace, or ask for: ` +
				"kubectl create clusterrolebinding seamark-view --clusterrole=view --user=" + user,
			"/api/v1/timeline?pod=game-0&since=1h&namespace=" + w.second: `user "` + user + `" has no permission to list pods in namespace ` + w.second,
		} {
			if status, body := w.get(t, nobody, path); status != http.StatusForbidden || !strings.HasPrefix(body, want) {
				t.Errorf("%s: status %d: %s, want %s", path, status, body, want)
			}
		}
	})
	t.Run("developer", func(t *testing.T) { w.testDeveloper(t) })
	t.Run("administrator", func(t *testing.T) { w.testAdministrator(t) })
	t.Run("permission is taken away", func(t *testing.T) { w.testRevocation(t) })
}

// testDeveloper checks that a user with permissions in one namespace sees nothing else.
func (w *world) testDeveloper(t *testing.T) {
	jane := browser(t, w.developer(t, "jane", w.first).BearerToken)
	session := read[model.Session](t, w, jane, "/api/v1/session?namespace="+w.first)
	want := model.Session{
		User: account(w.first, "jane"), Source: model.SourceCluster, Namespaces: []string{w.first}, ReadOnly: true,
	}
	if diff := cmp.Diff(want, session); diff != "" {
		t.Errorf("session (-want +got):\n%s", diff)
	}
	stream := uistream.Open(t, jane, w.base, "namespace="+w.first)
	until(stream, map[string]string{w.first + "/game-0": "condition"})
	if workload := stream.Pods[w.first+"/game-0"].Workload; workload == nil || *workload != (model.Workload{Kind: "StatefulSet", Name: "game"}) {
		t.Errorf("workload %v, want StatefulSet game", workload)
	}
	for _, path := range []string{"/api/v1/stream", "/api/v1/stream?namespace=" + w.second, "/api/v1/timeline?since=1h&pod=game-0&namespace=" + w.second} {
		if status, body := w.get(t, jane, path); status != http.StatusForbidden || !strings.Contains(body, "has no permission to list pods") {
			t.Errorf("%s: status %d: %s, want 403", path, status, body)
		}
	}
	path := "/api/v1/timeline?since=1h&pod=game-0&namespace=" + w.first
	timeline := read[model.Timeline](t, w, jane, path)
	if want := "has no permission to list events in namespace " + w.first; timeline.Complete || !strings.Contains(timeline.Note, want) || hasMatch(timeline) {
		t.Errorf("timeline %+v, want no events and the note %q", timeline, want)
	}
	if problems := read[[]model.ObjectProblem](t, w, jane, "/api/v1/problems?namespace="+w.first); len(problems) > 0 {
		t.Errorf("problems %+v of objects that the user may not list", problems)
	}
	mary := browser(t, w.developer(t, "mary", w.first, reading("", "events")).BearerToken)
	if timeline := read[model.Timeline](t, w, mary, path); !timeline.Complete || !hasMatch(timeline) {
		t.Errorf("timeline %+v, want the event of the pod", timeline)
	}
}

// hasMatch reports whether the timeline has the message of the event.
func hasMatch(timeline model.Timeline) bool {
	for _, line := range timeline.Lines {
		for _, span := range line.Spans {
			if span.Message == "in a match" {
				return true
			}
		}
	}
	return false
}

func (w *world) testAdministrator(t *testing.T) {
	admin := browser(t, w.administrator(t).BearerToken)
	if session := read[model.Session](t, w, admin, "/api/v1/session"); !session.Full || session.Namespaces != nil {
		t.Errorf("session %+v, want all", session)
	}
	want := []model.ObjectProblem{{Kind: "SidecarSet", Name: "logs", Reason: "NameConflict", Message: "taken"}}
	if diff := cmp.Diff(want, read[[]model.ObjectProblem](t, w, admin, "/api/v1/problems")); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	stream := uistream.Open(t, admin, w.base, "")
	until(stream, map[string]string{w.first + "/game-0": "report", w.second + "/game-0": "report"})
}

// testRevocation checks that a stream ends soon after its user has lost the permission, also if the
// user sends so many requests that most are refused.
func (w *world) testRevocation(t *testing.T) {
	c := browser(t, w.developer(t, "joe", w.second).BearerToken)
	stream := uistream.Open(t, c, w.base, "namespace="+w.second)
	until(stream, map[string]string{w.second + "/game-0": "condition"})
	stop := w.flood(t, c)
	w.must(shared.Client.DeleteAllOf(t.Context(), &rbacv1.RoleBinding{}, client.InNamespace(w.second)))
	if reason := stream.End(); !strings.Contains(reason, `joe" has no permission to list pods in namespace `+w.second) {
		t.Errorf("reason %q", reason)
	}
	stop()
	await.Until(t, "another stream is refused", func(context.Context) (string, error) {
		if status, body := w.get(t, c, "/api/v1/stream?namespace="+w.second); status != http.StatusForbidden {
			return fmt.Sprintf("status %d: %s", status, body), nil
		}
		return "", nil
	})
}

// flood sends requests of a user, as many as possible, until stop is called. It returns when one was
// refused because there were too many.
func (w *world) flood(t *testing.T, c *http.Client) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	refused := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ctx.Err() == nil; {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+"/api/v1/session?namespace="+w.second, http.NoBody)
			if err != nil {
				return
			}
			response, err := c.Do(request)
			if err != nil {
				continue
			}
			_ = response.Body.Close()
			if first && response.StatusCode == http.StatusTooManyRequests {
				first = false
				close(refused)
			}
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	select {
	case <-refused:
	case <-time.After(await.Timeout):
		t.Fatal("no request was refused")
	}
	return stop
}
