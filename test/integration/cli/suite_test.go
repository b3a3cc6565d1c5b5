// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli_test runs commands of the program seamark against a real API server, as an
// administrator and as a user with permissions in one namespace. No manager and no agent run: the
// tests write plans, reports and marks.
package cli_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/metadata"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
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
