// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// broken is a setup and the conclusion about it.
type broken struct {
	// labels are those of the node.
	labels map[string]string
	make   func(world)
	args   []string
	// want is a regular expression for the whole conclusion. NAMESPACE and NODE are replaced.
	want string
}

// answered waits until the conclusion is the wanted one: the manager works meanwhile.
func (w world) answered(want string, args ...string) {
	w.Helper()
	want = strings.NewReplacer("NAMESPACE", w.namespace, "NODE", w.node).Replace(want)
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
			w := newWorld(t, test.labels)
			test.make(w)
			w.answered(test.want, test.args...)
		})
	}
}

func setups() map[string]broken {
	all := podSetups()
	for name, setup := range probeSetups() {
		all[name] = setup
	}
	for name, setup := range markSetups() {
		all[name] = setup
	}
	return all
}

func podSetups() map[string]broken {
	return map[string]broken{
		"wrong label": {
			make: func(w world) {
				w.runPod(w.pod().Build())
				w.create(builders.Marker(w.namespace, "worker").Selector("app", "wroker").Probe(busy()).Unsaved().Build())
			},
			want: "Problem: Marker worker: no marker matches the pod, and this one is the closest: " +
				"it requires app=wroker, and the pod has app=worker, which is similar",
		},
		"wrong namespace": {
			make: func(w world) {
				w.runPod(w.pod().Build())
				w.create(builders.Marker(shared.Namespace(w), "worker").Selector("app", "worker").Probe(busy()).Unsaved().Build())
			},
			want: "Problem: Markers: namespace NAMESPACE has no marker: a marker selects only pods of its own namespace",
		},
		"misspelled marker": {
			make: func(w world) { w.running(v1alpha1.ProbeSucceeded, "", busy()) }, args: []string{"-m", "wroker"},
			want: "Problem: Marker wroker: namespace NAMESPACE has no such marker",
		},
		"pod not scheduled": {
			make: func(w world) {
				w.runPod(w.pod().Node("").Phase(corev1.PodPending).Build())
				w.marker(busy())
			},
			want: "Problem: Pod: pod is not bound to a node",
		},
		"pod terminating": {
			make: func(w world) {
				w.running(v1alpha1.ProbeSucceeded, "", busy())
				pod := w.pod().Build()
				if err := shared.Client.Patch(w.Context(), pod, env.MergePatch(`{"metadata":{"finalizers":["example.com/held"]}}`)); err != nil {
					w.Fatal(err)
				}
				if err := shared.Client.Delete(w.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
					w.Fatal(err)
				}
			},
			want: "Problem: Pod: pod is terminating",
		},
		"pod finished": {
			make: func(w world) {
				w.runPod(w.pod().Phase(corev1.PodSucceeded).Build())
				w.marker(busy())
			},
			want: `Problem: Pod: pod has ended: its phase is Succeeded`,
		},
		"not initialized": {
			make: func(w world) {
				w.runPod(w.pod().Initialized("False").Phase(corev1.PodPending).Build())
				w.marker(busy())
			},
			want: "Problem: Pod: pod is not initialized",
		},
		"node does not exist": {
			make: func(w world) {
				w.runPod(w.pod().Node("none-" + w.node).Build())
				w.marker(busy())
			},
			want: "Problem: Node none-NODE: the node does not exist",
		},
		"virtual node without serverless": {
			labels: map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet},
			make: func(w world) {
				w.runPod(w.pod().Build())
				w.marker(busy())
			},
			want: "Problem: Node NODE: it is a virtual node, which has no agent, .*",
		},
		"node without agents": {
			labels: map[string]string{"eks.amazonaws.com/compute-type": "fargate"},
			make: func(w world) {
				w.runPod(w.pod().Build())
				w.marker(busy())
			},
			want: "Problem: Node NODE: no agent can run on such a node, .*",
		},
	}
}

func probeSetups() map[string]broken {
	network := func(port string) *builders.ProbeBuilder {
		return busy().Handler(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.Parse(port)}})
	}
	return map[string]broken{
		"container missing": {
			make: func(w world) {
				w.runPod(w.pod().Build())
				w.marker(busy().Container("mainn"))
			},
			want: `Problem: Probe worker#busy: container "mainn" not found`,
		},
		"init container only": {
			make: func(w world) {
				w.runPod(w.pod().InitContainer("setup", false).Build())
				w.marker(busy().Container("setup"))
			},
			want: `Problem: Probe worker#busy: container "setup" not found`,
		},
		"port name missing": {
			make: func(w world) {
				w.runPod(w.pod().Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 80}).Build())
				w.marker(network("htpp").Container("web"))
			},
			want: `Problem: Probe worker#busy: container "web" has no port "htpp"`,
		},
		"no address": {
			make: func(w world) {
				w.agent(corev1.ConditionTrue)
				w.planned(0)
				w.runPod(w.pod().IP("").Build())
				w.marker(network("80"))
			},
			want: "(Problem|Waiting): Plan of node NODE: pod has a network probe and no IP address, so it is not in the node's plan yet",
		},
		"agent missing": {
			make: func(w world) {
				w.runPod(w.started(w.pod().Build()))
				w.marker(busy())
				w.planned(1)
			},
			want: "Problem: Agent of node NODE: the node has no agent: .*",
		},
		"agent not ready": {
			make: func(w world) {
				w.agent("False")
				w.runPod(w.started(w.pod().Build()))
				w.marker(busy())
				w.planned(1)
			},
			want: "Problem: Agent of node NODE: agent-NODE is not ready",
		},
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
		"threshold pending": {
			make: func(w world) { w.running("", "", busy()) },
			want: "Waiting: Report of worker#busy: no threshold has been reached yet",
		},
		"container waiting for image": {
			make: func(w world) {
				w.agent(corev1.ConditionTrue)
				w.runPod(w.waiting(w.pod().Build(), "ImagePullBackOff"))
				w.marker(busy())
				w.report(w.planned(1), "", "")
			},
			want: `Problem: Report of worker#busy: container "main" has not started: ImagePullBackOff`,
		},
		"container starting": {
			make: func(w world) {
				w.agent(corev1.ConditionTrue)
				w.runPod(w.waiting(w.pod().Build(), "ContainerCreating"))
				w.marker(busy())
				w.report(w.planned(1), "", "")
			},
			want: `Waiting: Report of worker#busy: container "main" has not started: ContainerCreating`,
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
		"failing probe": {
			make: func(w world) { w.running(v1alpha1.ProbeFailed, "cat: no file", busy()) },
			want: `Marked: worker#busy is Failed \(condition example.com/busy=False\)`,
		},
		"exec timeout": {
			make: func(w world) { w.running(v1alpha1.ProbeFailed, "timed out after 1s", busy()) },
			want: `Marked: worker#busy is Failed \(condition example.com/busy=False\)`,
		},
	}
}

func markSetups() map[string]broken {
	const marked = `Marked: worker#busy is Succeeded \(condition example.com/busy=True, label busy=true\)`
	return map[string]broken{
		"marked": {
			make: func(w world) { w.running(v1alpha1.ProbeSucceeded, "job 7", busy()) }, want: marked,
		},
		"mark owned by another probe": {
			make: func(w world) {
				w.running(v1alpha1.ProbeSucceeded, "", busy(), builders.Probe("late").Label(v1alpha1.ProbeSucceeded, "busy", "maybe"))
			},
			want: `Problem: Marks of worker#late: label "busy" is set by probe "busy" of marker "worker"`,
		},
		"marks of another client": {
			make: func(w world) {
				w.running(v1alpha1.ProbeSucceeded, "", busy())
				w.answered(marked)
				// The manager sets the label again.
				if err := shared.Client.Patch(w.Context(), w.pod().Build(), env.MergePatch(`{"metadata":{"labels":{"busy":"no"}}}`)); err != nil {
					w.Fatal(err)
				}
			},
			want: marked,
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
		"policy for other state only": {
			make: func(w world) {
				w.running(v1alpha1.ProbeFailed, "", builders.Probe("busy").Label(v1alpha1.ProbeSucceeded, "busy", "true"))
			},
			want: "Marked: worker#busy is Failed, and this state sets no marks",
		},
		"marker deleting": {
			make: func(w world) {
				w.running(v1alpha1.ProbeSucceeded, "", busy())
				w.answered(marked)
				marker := builders.Marker(w.namespace, "worker").Build()
				if err := shared.Client.Patch(w.Context(), marker, env.MergePatch(
					`{"metadata":{"finalizers":["kruise.io/node-pod-probe-cleanup","example.com/held"]}}`)); err != nil {
					w.Fatal(err)
				}
				if err := shared.Client.Delete(w.Context(), marker); err != nil {
					w.Fatal(err)
				}
			},
			want: "Problem: Marker worker: it has been deleting for .*",
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
	w.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: user},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods", "events"}, Verbs: view},
			{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"podprobemarkers"}, Verbs: view},
		},
	})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	})
}

// Without a manager, its lease is old.
func TestManagerDown(t *testing.T) {
	stop := startManager(t)
	w := newWorld(t, nil)
	w.running(v1alpha1.ProbeSucceeded, "", busy())
	w.answered(`Marked: .*`)
	stop()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: "seamark-manager"}}
	renewed := time.Now().Add(-10 * time.Minute).UTC().Format("2006-01-02T15:04:05.000000Z")
	if err := shared.Client.Patch(t.Context(), lease, env.MergePatch(fmt.Sprintf(
		`{"spec":{"holderIdentity":"manager-1","renewTime":%q}}`, renewed))); err != nil {
		t.Fatal(err)
	}
	w.answered("Problem: Manager: no manager has led for 10m: plans and marks do not change")
}

func TestMissingCRDs(t *testing.T) {
	e, err := env.New(env.NoCRDs())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := world{T: t, namespace: e.Namespace(t), node: "node-1", kubeconfig: env.Kubeconfig(t, e.Config)}
	if _, err := env.CreatePod(t.Context(), e.Client, w.pod().Build()); err != nil {
		t.Fatal(err)
	}
	w.answered("Problem: Markers: the markers of namespace NAMESPACE cannot be read, because Seamark is not installed in the cluster")
}
