// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/check/checks"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// checked runs `seamark check -o json` and returns the verdicts that are not ok, as "verdict
// check", the whole output and the exit code.
func checked(t *testing.T, config *rest.Config) (problems []string, out string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}, "seamark", "test")
	command.SetArgs([]string{"check", "-o", "json", "--kubeconfig", env.Kubeconfig(t, config)})
	code = exit.Code(command.ExecuteContext(t.Context()))
	var report struct{ Results []checks.Result }
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("output is not JSON: %v\n%s%s", err, stdout.String(), stderr.String())
	}
	for _, r := range report.Results {
		if r.Verdict != checks.OK {
			problems = append(problems, string(r.Verdict)+" "+r.Check)
		}
	}
	return problems, stdout.String(), code
}

// TestCheck installs Seamark step by step.
func TestCheck(t *testing.T) {
	t.Parallel()
	e := env.Start(t)
	step := func(name string, wantCode int, want ...string) {
		t.Helper()
		if got, out, code := checked(t, e.Config); code != wantCode || !slices.Equal(got, want) {
			t.Fatalf("%s: exit code %d with %q, want %d with %q:\n%s", name, code, got, wantCode, want, out)
		}
	}
	policies := []string{
		"failed policy/seamark-agent-own-node", "failed policy/seamark-agent-own-reports",
		"failed policy/seamark-agent-events", "failed policy/seamark-webhook-configurations", "warning policy/seamark-marker-author",
		"warning policy/seamark-guards", "warning policy/seamark-guard-updates", "warning policy/seamark-guard-labels",
	}
	step("not installed", exit.Failed, slices.Concat([]string{
		"failed manager", "failed agents", "failed versions", "failed permissions/seamark-manager", "failed permissions/seamark-agent",
	}, slices.Insert(slices.Clone(policies), 3, "failed policy/seamark-manager-plans", "failed policy/seamark-manager-pods"))...)

	e.Component(t, "seamark-manager")
	installed(t, e, "config/manager/manager.yaml", "config/agent/agent.yaml")
	step("installed, without nodes, pods and policies", exit.Failed,
		slices.Concat([]string{"failed manager", "failed manager-leader", "failed agents", "failed versions"}, policies)...)

	installed(t, e, "config/policies")
	node(t, e, "n1", nil)
	node(t, e, "virtual", map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet})
	pods(t, e)
	step("running", exit.OK)

	left := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace(t), Name: grants.Role, Labels: grants.OfManager()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: grants.Role},
	}
	granter := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "seamark-workloads-grants"}}
	expect.NoError(t, errors.Join(e.Client.Create(t.Context(), left), e.Client.Delete(t.Context(), granter)))
	step("a RoleBinding for seamark-workloads is left", exit.OK, "warning grants")
	expect.NoError(t, e.Client.Delete(t.Context(), left))

	restricted(t, e)
	broken(t, e)
	step("broken", exit.Failed, "failed manager-leader", "failed permissions/seamark-manager", "failed plans")
}

// restricted runs the check as a user who can only view one namespace.
func restricted(t *testing.T, e *env.Env) {
	t.Helper()
	namespace := e.Namespace(t)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dev"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{env.UserSubject("dev")},
	}
	expect.NoError(t, e.Client.Create(t.Context(), binding))
	problems, out, code := checked(t, e.User(t, "dev"))
	if code != exit.Access {
		t.Errorf("exit code %d as a user without permissions, want %d:\n%s", code, exit.Access, out)
	}
	for _, problem := range problems {
		if !strings.HasPrefix(problem, "unknown ") {
			t.Errorf("%q as a user without permissions, want unknown checks only:\n%s", problem, out)
		}
	}
	for _, want := range []string{"nodes is forbidden", "subjectaccessreviews.authorization.k8s.io is forbidden"} {
		if !strings.Contains(out, want) {
			t.Errorf("output does not contain %q:\n%s", want, out)
		}
	}
}

// broken stops the manager, removes a permission, and lets the agent run an outdated plan.
func broken(t *testing.T, e *env.Env) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: "seamark-manager"}}
	patch(t, e.Client, lease, `{"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}}`)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "seamark-manager"}}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(role), role))
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Equal(r.Resources, []string{"pods/status"}) })
	expect.NoError(t, e.Client.Update(t.Context(), role))
	plan := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "virtual"},
		Spec:       v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{Namespace: "game", Name: "p", UID: "u"}}},
	}
	expect.NoError(t, e.Client.Create(t.Context(), plan))
}

func installed(t *testing.T, e *env.Env, paths ...string) {
	t.Helper()
	for _, path := range paths {
		manifests, err := env.ReadManifests(path)
		expect.NoError(t, err)
		e.Apply(t, manifests...)
	}
}

func node(t *testing.T, e *env.Env, name string, labels map[string]string) {
	t.Helper()
	all := map[string]string{"kubernetes.io/os": "linux"}
	for key, value := range labels {
		all[key] = value
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}}
	expect.NoError(t, e.Client.Create(t.Context(), n))
	patchStatus(t, e.Client, n, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
}

// pods does what the controllers of Kubernetes and the programs do after an installation.
func pods(t *testing.T, e *env.Env) {
	t.Helper()
	for _, name := range []string{"manager", "agent"} {
		pod := builders.Pod(env.SystemNamespace, name).Label("app.kubernetes.io/name", "seamark").
			Label("app.kubernetes.io/component", name).Node("n1").Container(name).Build()
		pod.Spec.Containers[0].Image = "docker.io/seamark/seamark-" + name + ":v1"
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if _, err := env.CreatePod(t.Context(), e.Client, pod); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: name}
	}
	patchStatus(t, e.Client, &appsv1.Deployment{ObjectMeta: in("seamark-manager")},
		`{"status":{"observedGeneration":1,"replicas":2,"readyReplicas":2,"updatedReplicas":2}}`)
	patchStatus(t, e.Client, &appsv1.DaemonSet{ObjectMeta: in("seamark-agent")},
		`{"status":{"observedGeneration":1,"desiredNumberScheduled":1,"currentNumberScheduled":1,"numberMisscheduled":0,"numberReady":1,"updatedNumberScheduled":1}}`)
	lease := &coordinationv1.Lease{ObjectMeta: in("seamark-manager"), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("manager"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(time.Now())),
	}}
	expect.NoError(t, e.Client.Create(t.Context(), lease))
}

func patch(t *testing.T, c client.Client, object client.Object, body string) {
	t.Helper()
	expect.NoError(t, c.Patch(t.Context(), object, env.MergePatch(body)))
}

func patchStatus(t *testing.T, c client.Client, object client.Object, body string) {
	t.Helper()
	expect.NoError(t, c.Status().Patch(t.Context(), object, env.MergePatch(body)))
}
