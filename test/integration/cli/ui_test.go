// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/uipage"
	"github.com/seamark-dev/seamark/test/uistream"
)

// serve runs `seamark ui` until the test ends.
func (w world) serve(t *testing.T, args ...string) *uipage.Page {
	t.Helper()
	return uipage.Serve(t, append([]string{"--kubeconfig=" + w.kubeconfig}, args...)...)
}

// rows are the probes of the pods of the stream, as text.
func rows(stream *uistream.Stream) map[string]string {
	all := map[string]string{}
	for key, pod := range stream.Pods {
		probe := pod.Probes[0]
		all[key[strings.Index(key, "/")+1:]] = fmt.Sprintf("%s from %q: %s %v", probe.State, probe.Source, probe.Message, probe.Marks)
	}
	return all
}

// The page shows the states that `seamark get` shows, and follows changes.
func TestUI(t *testing.T) {
	for name, test := range map[string]struct {
		user, source, hint, note string
		full                     bool
	}{
		"administrator": {"", "report", "", "", true},
		"developer":     {developer, "condition", "Hint: no permission to list probereports.seamark.dev in the cluster", "no permission to list events in namespace", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.serve(t, "--namespace="+w.namespace, "--as="+test.user)
			if got := p.Errors.String(); !strings.Contains(got, test.hint) || (test.hint == "") == strings.Contains(got, "Hint") {
				t.Errorf("standard error %q, want %q", got, test.hint)
			}
			session := uipage.Read[model.Session](p, "/api/v1/session?namespace="+w.namespace)
			if session.Full != test.full || session.Namespace != w.namespace || test.user != "" && session.User != test.user {
				t.Errorf("session %+v", session)
			}
			stream := uistream.Open(t, p.Client, p.Base, "namespace="+w.namespace)
			stream.Ready()
			want := map[string]string{
				"game-0": fmt.Sprintf("Succeeded from %q: no players [game.io/idle=True role=idle]", test.source), "game-1": ` from "":  []`,
			}
			expect.Equal(t, want, rows(stream), "pods")
			if len(stream.Markers) != 1 || stream.Markers[0].Pods != 2 || stream.Markers[0].Succeeded != 1 {
				t.Errorf("markers %+v", stream.Markers)
			}
			timeline := uipage.Read[model.Timeline](p, "/api/v1/timeline?namespace="+w.namespace+"&pod=game-0&since=1h")
			if len(timeline.Lines) != 1 || timeline.Complete != (test.note == "") || !strings.Contains(timeline.Note, test.note) {
				t.Errorf("timeline %+v", timeline)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "game-1"}}
			expect.NoError(t, shared.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
			stream.Until("pod game-1 is gone", func(uistream.Event) bool { return len(stream.Pods) == 1 })
		})
	}
}

// The problems of SidecarSets are those that the user may list.
func TestProblemsOfSidecarSets(t *testing.T) {
	w := newWorld(t)
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: v1alpha1.SidecarSetSpec{
		Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}},
		Containers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "logs", Image: "logs:1"}}},
	}}
	expect.NoError(t, shared.Client.Create(t.Context(), set))
	t.Cleanup(func() { expect.NoError(t, shared.Client.Delete(context.WithoutCancel(t.Context()), set)) })
	set.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.SidecarSetAccepted, Status: metav1.ConditionFalse, Reason: "NameConflict", Message: "taken", LastTransitionTime: metav1.Now(),
	}}
	expect.NoError(t, shared.Client.Status().Update(t.Context(), set))
	for user, want := range map[string][]model.ObjectProblem{
		"":        {{Kind: "SidecarSet", Name: set.Name, Reason: "NameConflict", Message: "taken"}},
		developer: {},
	} {
		p := w.serve(t, "--namespace="+w.namespace, "--as="+user)
		expect.Equal(t, want, uipage.Read[[]model.ObjectProblem](p, "/api/v1/problems?namespace="+w.namespace), "problems for user %q", user)
	}
}

func TestUIWithoutPermission(t *testing.T) {
	first, second := newWorld(t), world{namespace: shared.Namespace(t)}
	want := "no permission to list podprobemarkers.apps.kruise.io in namespace " + first.namespace
	if _, stderr, code := first.run(t, "ui", "--as=nobody"); code != exit.Access || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d and errors %q, want %q", code, stderr, want)
	}
	// A user may have chosen another namespace on the page.
	p := first.serve(t, "--namespace="+first.namespace, "--as="+developer)
	for _, path := range []string{"/api/v1/stream?namespace=" + second.namespace, "/api/v1/timeline?pod=a&since=1h&namespace=" + second.namespace} {
		want := "in namespace " + second.namespace + "; ask for: kubectl create rolebinding seamark-view"
		if status, body := p.Get(path); status != http.StatusForbidden || !strings.Contains(body, want) {
			t.Errorf("%s: status %d: %s, want %q", path, status, body, want)
		}
	}
	want = "no permission to list pods in the cluster; use a namespace that you have access to (-n)"
	if status, body := p.Get("/api/v1/stream"); status != http.StatusForbidden || !strings.Contains(body, want) {
		t.Errorf("all namespaces: status %d: %s, want %q", status, body, want)
	}
}
