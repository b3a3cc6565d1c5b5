// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli_test runs commands of the program seamark against a real API server, as an
// administrator and as a user with permissions in one namespace. No manager and no agent run: the
// tests write plans, reports and marks.
package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/uipage"
	"github.com/seamark-dev/seamark/test/uistream"
)

// shared is the API server of the package. A test stops it while programs watch.
var shared *env.Env

func TestMain(m *testing.M) { env.Main(m, &shared, env.RequestTimeout(10*time.Second)) }

// developer is a user who may view pods and markers of the test's namespace.
const developer = "developer"

// viewer is a developer who may also view the states of all namespaces.
const viewer = "viewer"

// world is the fixture of a test: two pods with a marker, of which one is marked.
type world struct {
	namespace, node, kubeconfig string
}

func newWorld(t *testing.T) world {
	t.Helper()
	ctx := t.Context()
	w := world{namespace: shared.Namespace(t), kubeconfig: env.Kubeconfig(t, shared.Config)}
	w.node = "node-" + w.namespace
	must := func(err error) {
		expect.NoError(t, err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node}}
	must(shared.Client.Create(ctx, node))
	marker := builders.Marker(w.namespace, "game").Unsaved().
		Probe(builders.Probe("idle").Condition("game.io/idle").Label(v1alpha1.ProbeSucceeded, "role", "idle")).Build()
	must(shared.Client.Create(ctx, marker))
	guard := builders.Guard(w.namespace, "idle", false, "idle")
	guard.Spec.Selector.MatchExpressions[0].Key = "role"
	must(shared.Client.Create(ctx, guard))
	compiled, err := plan.Compile(marker)
	must(err)
	var pods []*corev1.Pod
	for _, name := range []string{"game-0", "game-1"} {
		pod, err := env.CreatePod(ctx, shared.Client, builders.Pod(w.namespace, name).Label("app", "game").Node(w.node).Build())
		must(err)
		pods = append(pods, pod)
	}
	npp := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: w.node}, Spec: plan.Node(pods, []*plan.Marker{compiled}, plan.KubernetesDefaults()),
	}
	must(shared.Client.Create(ctx, npp))
	npp.Status = v1alpha1.NodePodProbeStatus{ObservedGeneration: npp.Generation, ProbeReports: true}
	must(shared.Client.Status().Update(ctx, npp))
	now := metav1.Now().Rfc3339Copy()
	report := &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{Name: w.node + ".0"}, NodeName: w.node,
		Pods: []seamarkv1alpha1.PodReport{{
			Namespace: w.namespace, Name: "game-0", UID: string(pods[0].UID), Probes: []v1alpha1.ContainerProbeState{{
				Name: "game#idle", State: v1alpha1.ProbeSucceeded, LastProbeTime: now, LastTransitionTime: now, Message: "no players",
			}},
		}},
	}
	must(shared.Client.Create(ctx, report))
	v := podview.New(pods[0], []*plan.Marker{compiled}, podview.KubeletNode,
		mark.NodeReport{Plan: npp, Slices: []*seamarkv1alpha1.ProbeReport{report}}, podview.Options{Defaults: plan.KubernetesDefaults()})
	writer, err := metadata.NewForConfig(shared.Config)
	must(err)
	_, err = apply.NewPods(writer).Marks(ctx, pods[0], v.Desired(nil))
	must(err)
	w.grant(t)
	return w
}

// grant gives the developer and the viewer the permissions of the role view for pods and markers,
// and the viewer those to view states.
func (w world) grant(t *testing.T) {
	t.Helper()
	shared.GrantStates(t, viewer)
	view := []string{"get", "list", "watch"}
	for _, user := range []string{developer, viewer} {
		shared.Grant(t, w.namespace, env.UserSubject(user),
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: view},
			rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"podprobemarkers"}, Verbs: view})
	}
}

// run runs a command in the namespace of the test.
func (w world) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, "kubectl-seamark", "test")
	command.SetArgs(append(args, "--kubeconfig="+w.kubeconfig, "--namespace="+w.namespace))
	err := command.ExecuteContext(t.Context())
	return out.String(), errOut.String(), exit.Code(err)
}

// completions returns what a shell completes after the arguments of `get`.
func (w world) completions(t *testing.T, args []string) []string {
	t.Helper()
	var out, errOut bytes.Buffer
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, "kubectl-seamark", "test")
	command.SetArgs(append([]string{cobra.ShellCompRequestCmd, "get"}, args...))
	expect.NoError(t, command.ExecuteContext(t.Context()))
	var names []string
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, ":") {
			names = append(names, line)
		}
	}
	return names
}

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
		name := ""
		if pod.Guard != nil {
			name = " guarded by " + pod.Guard.Name
		}
		all[key[strings.Index(key, "/")+1:]] = fmt.Sprintf("%s from %q: %s %v%s", probe.State, probe.Source, probe.Message, probe.Marks, name)
	}
	return all
}

// The page shows the states that `seamark get` shows, and follows changes.
func TestUI(t *testing.T) {
	for name, test := range map[string]struct {
		user, source, guard, hint, note string
		full                            bool
	}{
		"administrator": {"", "report", " guarded by idle", "", "", true},
		"developer": {
			developer, "condition", "", "Hint: no permission to list probereports.seamark.dev in the cluster", "no permission to list events in namespace", false,
		},
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
				"game-0": fmt.Sprintf("Succeeded from %q: no players [game.io/idle=True role=idle]%s", test.source, test.guard), "game-1": ` from "":  []`,
			}
			expect.Equal(t, "pods", want, rows(stream))
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
		expect.Equal(t, fmt.Sprintf("problems for user %q", user), want, uipage.Read[[]model.ObjectProblem](p, "/api/v1/problems?namespace="+w.namespace))
	}
}

// TestUIOfSets shows a set with its rollout, its events and what its pods wait for, as far as the user may read them, and with -A
// the namespaces that the user may read.
func TestUIOfSets(t *testing.T) {
	w := newWorld(t)
	set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}, Spec: v1alpha1.CloneSetSpec{
		Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
		},
	}}
	expect.NoError(t, shared.Client.Create(t.Context(), set))
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web.1"}, Type: "Warning", Reason: "FailedCreate", Message: "quota",
		InvolvedObject: corev1.ObjectReference{Namespace: w.namespace, Kind: "CloneSet", Name: "web", UID: set.UID}, LastTimestamp: metav1.Now(),
	}
	expect.NoError(t, shared.Client.Create(t.Context(), event))
	details := "/api/v1/set?kind=CloneSet&set=web&namespace=" + w.namespace

	p := w.serve(t, "-A")
	stream := uistream.Open(t, p.Client, p.Base, "")
	stream.Ready()
	shown := func() string {
		for _, s := range stream.Sets.Sets {
			if s.Namespace == w.namespace {
				return fmt.Sprintf("%s %s: %s", s.SetID, s.Phase, s.Message)
			}
		}
		return ""
	}
	expect.Equal(t, "set", "CloneSet "+w.namespace+"/web NotObserved: generation 1 is not processed yet", shown())
	set.Status = v1alpha1.CloneSetStatus{ObservedGeneration: set.Generation, Replicas: 1, ExpectedUpdatedReplicas: 2, UpdatedReplicas: 1}
	expect.NoError(t, shared.Client.Status().Update(t.Context(), set))
	stream.Until("the rollout progresses", func(uistream.Event) bool { return strings.HasSuffix(shown(), "Progressing: 1 of 2 pods exist") })
	got := uipage.Read[model.SetDetails](p, details)
	if len(got.Events) != 1 || got.Events[0].Reason != "FailedCreate" || got.Note+got.PodsNote != "" {
		t.Errorf("details %+v", got)
	}
	if found := uipage.Read[model.Namespaces](p, "/api/v1/namespaces"); !found.Whole || !slices.Contains(found.Names, w.namespace) {
		t.Errorf("namespaces of the administrator %+v", found)
	}

	// The developer may read neither sets nor other namespaces, and not list them.
	own := "--namespace=" + w.namespace
	p = w.serve(t, "-A", own, "--as="+developer)
	stream = uistream.Open(t, p.Client, p.Base, "")
	stream.Ready()
	expect.Equal(t, "pods", 2, len(stream.Pods))
	expect.Equal(t, "sets and note", model.Sets{Sets: []model.Set{}, Note: fmt.Sprintf("no permission to list clonesets.apps.kruise.io in namespace %[1]s; "+
		"no permission to list statefulsets.apps.kruise.io in namespace %[1]s; no permission to list daemonsets.apps.kruise.io in namespace %[1]s", w.namespace)}, stream.Sets)
	expect.Equal(t, "namespaces", model.Namespaces{Names: []string{w.namespace}, Shown: []string{w.namespace}}, uipage.Read[model.Namespaces](p, "/api/v1/namespaces"))
	if status, body := p.Get(details); status != http.StatusForbidden || !strings.Contains(body, "no permission to get clonesets.apps.kruise.io") {
		t.Errorf("set of the developer: status %d: %s", status, body)
	}

	// A namespace in which the developer may list CloneSets, and not watch them, and two namespaces.
	second := newWorld(t)
	shared.Grant(t, second.namespace, env.UserSubject(developer),
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"clonesets"}, Verbs: []string{"list"}})
	p = w.serve(t, "--namespace="+second.namespace, "--as="+developer)
	stream = uistream.Open(t, p.Client, p.Base, "")
	stream.Ready()
	if want := "no permission to watch clonesets.apps.kruise.io in namespace " + second.namespace; !strings.HasPrefix(stream.Sets.Note, want) {
		t.Errorf("note %q, want %q", stream.Sets.Note, want)
	}
	p = w.serve(t, "--namespace="+w.namespace+","+second.namespace, "--as="+developer)
	stream = uistream.Open(t, p.Client, p.Base, "")
	stream.Ready()
	expect.Equal(t, "pods of two namespaces", 4, len(stream.Pods))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: second.namespace, Name: "game-1"}}
	expect.NoError(t, shared.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	stream.Until("pod game-1 is gone", func(uistream.Event) bool { return len(stream.Pods) == 3 })
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
	if _, stderr, code := first.run(t, "ui", "-A", "--as=nobody"); code != exit.Access || !strings.Contains(stderr, want) {
		t.Errorf("all namespaces: exit code %d and errors %q, want %q", code, stderr, want)
	}
}
