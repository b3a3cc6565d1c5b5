// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// broken is a setup and the conclusion about it.
type broken struct {
	make func(world)
	args []string
	// want is a regular expression for the whole conclusion. NAMESPACE and NODE are replaced.
	want string
}

// answered waits until the conclusion is the wanted one: the manager works meanwhile.
func (w world) answered(want string, args ...string) {
	w.Helper()
	want = strings.NewReplacer("NAMESPACE", w.Namespace, "NODE", w.node).Replace(want)
	matches := regexp.MustCompile("^" + want + "$").MatchString
	poll := await.Poll{Interval: 20 * time.Millisecond, Timeout: await.Timeout}
	poll.Success(w, want, func(context.Context) error {
		x, code, err := w.explain(args...)
		if err != nil {
			return err
		}
		expected := exit.Failed
		if strings.HasPrefix(x.Conclusion, "Marked:") {
			expected = exit.OK
		}
		if matches(x.Conclusion) && code == expected && (x.Next != "" || x.Marked) {
			return nil
		}
		return fmt.Errorf("exit code %d, %q, next %q", code, x.Conclusion, x.Next)
	})
}

func TestBrokenSetups(t *testing.T) {
	startManager(t)
	for name, test := range setups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.make(w)
			w.answered(test.want, test.args...)
		})
	}
}

// setups returns setups whose objects the API server and the manager write. The setups of
// internal/cli/explain/explanation are those of each conclusion.
func setups() map[string]broken {
	const marked = `Marked: worker#busy is Succeeded \(condition example.com/busy=True, label busy=true\)`
	return map[string]broken{
		"agent behind": {
			make: func(w world) {
				w.agent(corev1.ConditionTrue)
				w.planned(0)
				w.runPod(w.started(w.pod().Build()))
				w.marker(busy())
				w.observe(w.planned(1), 1)
			},
			want: "(Problem|Waiting): Plan of node NODE: the node's agent runs generation . of the plan, which has generation . now",
		},
		"probe cannot be run": {
			make: func(w world) {
				w.agent(corev1.ConditionTrue)
				w.runPod(w.started(w.pod().Build()))
				w.marker(busy())
				w.report(w.planned(1), "", "", v1alpha1.ContainerProbeError{Name: "worker#busy", Reason: v1alpha1.ProbeCannotRun, Message: "no such file"})
			},
			want: `Problem: Report of worker#busy: cannot be run: no such file`,
		},
		"mark refused": {
			make: func(w world) {
				w.agent(corev1.ConditionTrue)
				w.runPod(w.started(w.pod().Annotation("example.com/large", strings.Repeat("x", 262_000)).Build()))
				w.marker(builders.Probe("busy").Annotation(v1alpha1.ProbeSucceeded, "example.com/more", strings.Repeat("x", 1000)))
				w.report(w.planned(1), v1alpha1.ProbeSucceeded, "")
			},
			want: `Problem: Marks of worker#busy: the pod does not have the marks of the state: annotation example.com/more: ` +
				`probe "busy": the API server refuses its marks .*`,
		},
		"only namespaced permissions": {
			make: func(w world) {
				w.running(v1alpha1.ProbeSucceeded, "", busy())
				w.grant("developer")
			},
			args: []string{"--as=developer"},
			want: marked + `. Not checked: Node NODE, Manager, Plan of node NODE, Agent of node NODE, Report`,
		},
		"permissions to view states": {
			make: func(w world) {
				w.running(v1alpha1.ProbeSucceeded, "", busy())
				w.grant("viewer")
				shared.GrantStates(w, "viewer")
			},
			args: []string{"--as=viewer"},
			want: marked,
		},
	}
}

// grant lets a user view pods, events and markers of the namespace.
func (w world) grant(user string) {
	w.Helper()
	view := []string{"get", "list", "watch"}
	shared.Grant(w, w.Namespace, env.UserSubject(user),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "events"}, Verbs: view},
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"podprobemarkers"}, Verbs: view})
}

// Without a manager, its lease is old.
func TestManagerDown(t *testing.T) {
	stop := startManager(t)
	w := newWorld(t)
	w.running(v1alpha1.ProbeSucceeded, "", busy())
	w.answered(`Marked: .*`)
	stop()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: "seamark-manager"}}
	renewed := time.Now().Add(-10 * time.Minute).UTC().Format("2006-01-02T15:04:05.000000Z")
	expect.NoError(t, shared.Client.Patch(t.Context(), lease, env.MergePatch(fmt.Sprintf(
		`{"spec":{"holderIdentity":"manager-1","renewTime":%q}}`, renewed))))
	w.answered("Problem: Manager: no manager has led for 10m: plans and marks do not change")
}

func TestMissingCRDs(t *testing.T) {
	t.Parallel()
	e := env.Start(t, env.NoCRDs())
	w := world{World: env.NewWorld(t, e), node: "node-1", kubeconfig: env.Kubeconfig(t, e.Config)}
	if _, err := env.CreatePod(t.Context(), e.Client, w.pod().Build()); err != nil {
		t.Fatal(err)
	}
	w.answered("Problem: Markers: the markers of namespace NAMESPACE cannot be read, because Seamark is not installed in the cluster")
}

// TestMarkers explains a marker without pods, and one whose pod a Deployment has, and the Deployment.
func TestMarkers(t *testing.T) {
	startManager(t)
	w := newWorld(t)
	w.agent(corev1.ConditionTrue)
	w.Create(builders.Marker(w.Namespace, "wroker").Selector("app", "wroker").Unsaved().Probe(busy()).Build())
	deployment := &appsv1.Deployment{ObjectMeta: w.Meta("worker")}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "worker"}}
	deployment.Spec.Template = w.template()
	deployment.Spec.Template.Labels = deployment.Spec.Selector.MatchLabels
	w.Create(deployment)
	w.settles("deploy/worker", "Problem: Pods: it has no pods")
	pod := w.started(w.pod().Label(appsv1.DefaultDeploymentUniqueLabelKey, "5d9f").Build())
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "worker-5d9f", UID: "5d9f", Controller: new(true)}}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	w.runPod(pod)
	w.settles("deployments.apps/worker", "Problem: Marker wroker: no marker matches the pod, and this one is the closest: .*", "ok Pods: 1 of 1 are available")
	w.settles("ppm/wroker", "Problem: Pods: no pod of namespace .* matches the selector app=wroker", "the closest is pod worker-0:",
		"it requires app=wroker, and the pod has app=worker, which is similar")
	w.Until("the marker has the condition PodsMatched", func() error {
		stored := &v1alpha1.PodProbeMarker{}
		err := w.Client.Get(w.Context(), types.NamespacedName{Namespace: w.Namespace, Name: "wroker"}, stored)
		found := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionPodsMatched)
		return errors.Join(err, await.ErrorIf(found == nil || found.Reason != "NoPods", "%+v", stored.Status))
	})
	w.marker(busy())
	w.report(w.planned(1), v1alpha1.ProbeSucceeded, "")
	const settled, states = "Settled: nothing is wrong, and nothing is waited for", "ok Probe worker#busy: the states of 1 pod: 1 Succeeded"
	w.settles("ppm/worker", settled, states, "ok Pods: 1 of 1 that match can be probed", "ok Nodes: 1 of 1 have an agent that is ready: "+w.node)
	w.settles("deploy/worker", settled, states, "ok Marker worker: it matches: app=worker")
	w.grant("developer")
	w.settles("podprobemarkers/worker --as=developer", "Settled, as far as it could be read. Not checked: Manager, Nodes", states)
}

// startWorkloads runs the controllers of DaemonSets and BroadcastJobs until the test ends.
func startWorkloads(t *testing.T) {
	t.Helper()
	cfg := program.Install(t, shared, "config/daemonsets/rbac.yaml", "config/broadcastjobs/rbac.yaml")
	program.Start(t, cfg, func(o *workloads.Options, enabled *configv1alpha1.WorkloadControllers) {
		enabled.DaemonSet.Enabled, enabled.BroadcastJob.Enabled = new(true), new(true)
		o.LeaderElection, o.LeaderElectionNamespace = true, env.SystemNamespace
	})
}

// settles waits until the conclusion about a set or a job, which flags may follow, matches, and each of the lines is that of a step or of its
// evidence. All are regular expressions for the whole text.
func (w world) settles(object, want string, lines ...string) {
	w.Helper()
	await.Poll{Interval: 50 * time.Millisecond, Timeout: await.Timeout}.Success(w, want, func(ctx context.Context) error {
		var out, errOut bytes.Buffer
		command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, "seamark", "test")
		command.SetArgs(append([]string{"explain", "-o", "json", "--kubeconfig=" + w.kubeconfig, "--namespace=" + w.Namespace}, strings.Fields(object)...))
		code := exit.Code(command.ExecuteContext(ctx))
		var x explanation.WorkloadExplanation
		if err := json.Unmarshal(out.Bytes(), &x); err != nil {
			return errors.Join(err, errors.New(errOut.String()))
		}
		text := []string{x.Conclusion}
		for _, step := range x.Steps {
			text = append(append(text, fmt.Sprintf("%s %s: %s", step.Verdict, step.Title, step.Text)), step.Evidence...)
		}
		for i, line := range append([]string{want}, lines...) {
			matches := regexp.MustCompile("^(" + line + ")$").MatchString
			if i == 0 && !matches(x.Conclusion) || !slices.ContainsFunc(text, matches) || x.Settled != (code == exit.OK) {
				return fmt.Errorf("exit code %d, no line %q in:\n%s", code, line, strings.Join(text, "\n"))
			}
		}
		return nil
	})
}

// join creates a node that the sets and jobs of the world select.
func (w world) join(name string, taints ...corev1.Taint) string {
	w.Helper()
	name = w.node + "-" + name
	w.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"world": w.Namespace}}, Spec: corev1.NodeSpec{Taints: taints}})
	return name
}

// template returns the template of pods on the nodes of the world.
func (w world) template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"world": w.Namespace}, AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "main", Image: "agent:1"}},
		},
	}
}

// TestWorkloads explains a DaemonSet and a BroadcastJob while one of their nodes is in the way, and when nothing is.
func TestWorkloads(t *testing.T) {
	startWorkloads(t)
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	c := w.join("c", corev1.Taint{Key: "gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule})
	var serves atomic.Bool
	nodes := w.RunKubelets(func(pod *corev1.Pod) bool { return pod.Spec.NodeName != b || serves.Load() })
	w.Create(&v1alpha1.DaemonSet{
		ObjectMeta: w.Meta("agent"),
		Spec:       v1alpha1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}, Template: w.template()},
	})
	const yet = `Nodes have no available pod of the update revision yet\.`
	w.settles("daemonset/agent", "Waiting: Condition Progressing: True \\(Updating\\) for .*: "+yet, "waiting Pods: 1 of 2 are available",
		"node "+b+", pod agent-[a-z0-9-]+: is not ready", "ok Nodes: 2 of 2 nodes that fit have a pod",
		"info Nodes that do not fit: [0-9]+ nodes get no pod", "the template does not tolerate the taint gpu=true:NoSchedule: "+c)
	serves.Store(true)
	nodes.Again()
	const settled = "Settled: nothing is wrong, and nothing is waited for"
	w.settles("ads/agent", settled, "ok Pods: 2 of 2 are available")
	shared.Grant(t, w.Namespace, env.UserSubject("viewer-of-sets"),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"daemonsets"}, Verbs: []string{"get"}})
	w.settles("ads/agent --as=viewer-of-sets", "Settled, as far as it could be read. Not checked: Controllers, Nodes", "unknown Nodes: .*")
	shared.GrantStates(t, "viewer-of-sets")
	w.settles("ads/agent --as=viewer-of-sets", settled, "ok Controllers: .* leads")

	job := &v1alpha1.BroadcastJob{
		ObjectMeta: w.Meta("report"),
		Spec:       v1alpha1.BroadcastJobSpec{Template: w.template(), Parallelism: new(intstr.FromInt32(1))},
	}
	w.Create(job)
	w.settles("bcj/report", `Waiting: Condition Complete: False \(Running\) for .*: 0 of 2 nodes succeeded\. 1 have a pod .*`,
		"waiting Nodes: 1 of 2 nodes that fit have no pod: "+b, "spec.parallelism permits pods on 1 nodes at the same time, .*",
		"node "+a+", pod report-[a-z0-9]+: runs")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: broadcastjob.Name("report", a)}}
	if err := shared.Client.Status().Patch(t.Context(), pod, env.MergePatch(
		`{"status":{"phase":"Failed","containerStatuses":[{"name":"main","image":"agent:1","imageID":"1","state":{"terminated":{"exitCode":3,"reason":"Error"}}}]}}`)); err != nil {
		t.Fatal(err)
	}
	w.settles("broadcastjobs.apps.kruise.io/report", `Problem: Condition Complete: False \(PodFailed\) for .*: 0 of 2 nodes succeeded\. 1 failed: `+a+`\. .*`,
		"node "+a+", pod report-[a-z0-9]+: failed: container main ended with the exit code 3 \\(Error\\)")
}
