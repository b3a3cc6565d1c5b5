// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// setup is a change of a healthy input, and the answer.
type setup struct {
	change func(*explanation.Input)
	// conclusion and next are exact.
	conclusion, next string
	// evidence must occur in the steps.
	evidence []string
}

func TestBrokenSetups(t *testing.T) {
	for name, test := range setups() {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			test.change(&in)
			x := explanation.Pod(in)
			expect.Equal(t, "conclusion", test.conclusion, x.Conclusion)
			expect.Equal(t, "next command", test.next, x.Next)
			all := text(x)
			for _, want := range test.evidence {
				if !strings.Contains(all, want) {
					t.Errorf("no %q in:\n%s", want, all)
				}
			}
			expect.Equal(t, fmt.Sprintf("Marked, and the conclusion is %q", x.Conclusion), x.Marked, strings.HasPrefix(x.Conclusion, "Marked:"))
			for _, step := range x.Steps {
				if step.Verdict == explanation.Problem && step.Next == "" {
					t.Errorf("no next command for the problem %q", step.Text)
				}
			}
		})
	}
}

func text(x explanation.Explanation) string {
	var out strings.Builder
	for _, s := range x.Steps {
		fmt.Fprintf(&out, "%s %s: %s\n", s.Verdict, s.Title, s.Text)
		for _, line := range s.Evidence {
			fmt.Fprintf(&out, "  %s\n", line)
		}
		if s.Next != "" {
			fmt.Fprintf(&out, "  next: %s\n", s.Next)
		}
	}
	return out.String()
}

func TestMarkedPod(t *testing.T) {
	x := explanation.Pod(healthy())
	want := `ok Pod: it is initialized and bound to node node-1
ok Marker worker: it matches: app=worker
ok Probe worker#busy: container main, exec /probe, every 10s
ok Manager: manager-1 leads
ok Plan of node node-1: it has the probes of the pod, and the agent runs it (generation 4)
ok Agent of node node-1: seamark-agent-x is ready
ok Report of worker#busy: Succeeded for 5m: job 7
  result of 2026-11-22T11:55:00Z
ok Marks of worker#busy: condition example.com/busy=True, label busy=true
`
	expect.Equal(t, "steps", want, text(x))
	if !x.Marked || x.Conclusion != "Marked: worker#busy is Succeeded (condition example.com/busy=True, label busy=true)" || x.Next != "" {
		t.Errorf("conclusion %t %q %q", x.Marked, x.Conclusion, x.Next)
	}
}

const (
	managerLogs = "kubectl -n seamark-system logs -l app.kubernetes.io/component=manager --tail=50"
	agentLogs   = "kubectl -n seamark-system logs seamark-agent-x --tail=50"
	describePod = "kubectl -n ns describe pod worker-0"
	describe    = "kubectl -n ns describe podprobemarker worker"
	edit        = "kubectl -n ns edit podprobemarker worker"
	follow      = "seamark get worker-0 -n ns --watch"
	run         = "kubectl -n ns exec worker-0 -c main -- /probe"
)

func httpProbe(port string) *builders.ProbeBuilder {
	return busy().Handler(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString(port)}})
}

func setups() map[string]setup {
	all := map[string]setup{}
	for _, group := range []map[string]setup{podSetups(), markerSetups(), planSetups(), reportSetups(), markSetups(), accessSetups()} {
		for name, s := range group {
			all[name] = s
		}
	}
	return all
}

func podSetups() map[string]setup {
	return map[string]setup{
		"no such pod": {
			change:     func(in *explanation.Input) { in.Pod = nil },
			conclusion: "Problem: Pod: namespace ns has no pod worker-0", next: "kubectl -n ns get pods",
		},
		"pod not scheduled": {
			change: func(in *explanation.Input) {
				in.Pod.Spec.NodeName = ""
				in.Pod.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: "False", Reason: "Unschedulable", Message: "0/3 nodes are available",
				}}
				in.Pod.ManagedFields, in.Plan, in.Slices, in.Node, in.Agent = nil, nil, nil, nil, nil
			},
			conclusion: "Problem: Pod: pod is not bound to a node", next: describePod,
			evidence: []string{"condition PodScheduled is False (Unschedulable): 0/3 nodes are available"},
		},
		"pod terminating": {
			change:     func(in *explanation.Input) { in.Pod.DeletionTimestamp = new(ago(20 * time.Second)) },
			conclusion: "Problem: Pod: pod is terminating", next: describePod,
			evidence: []string{
				"it has been terminating for 20s\n  such pods are not probed, and keep the marks that they have",
				"info Marks: the pod keeps its last marks\n  condition example.com/busy=True\n  label busy=true",
			},
		},
		"not initialized": {
			change: func(in *explanation.Input) {
				unreported(in)
				in.Pod.Status.ContainerStatuses = nil
				in.Pod.Status.Conditions[0].Status, in.Pod.Status.Conditions[0].Reason = "False", "ContainersNotInitialized"
			},
			conclusion: "Problem: Pod: pod is not initialized", next: describePod,
			evidence: []string{
				"condition Initialized is False (ContainersNotInitialized)", "a pod is probed after its init containers have completed", "ok Probe worker#busy",
			},
		},
		"node does not exist": {
			change:     func(in *explanation.Input) { in.Node = nil },
			conclusion: "Problem: Node node-1: the node does not exist", next: "kubectl get nodes",
		},
		"virtual node without serverless": {
			change: func(in *explanation.Input) {
				in.Node.Labels = map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet}
				in.Plan, in.Agent = nil, nil
				unreported(in)
			},
			conclusion: "Problem: Node node-1: it is a virtual node, which has no agent, and the pod has no annotations that pass probes to the provider: " +
				"support for pods on virtual nodes is not enabled",
			next: "kubectl get mutatingwebhookconfigurations",
		},
		"node without agents": {
			change: func(in *explanation.Input) {
				in.Node.Labels = map[string]string{"eks.amazonaws.com/compute-type": "fargate"}
			},
			conclusion: "Problem: Node node-1: no agent can run on such a node, so its pods are not probed", next: "kubectl get node node-1 --show-labels",
		},
		"provider has not reported": {
			change: func(in *explanation.Input) {
				in.Node.Labels = map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet}
				in.Plan, in.Agent = nil, nil
				unreported(in)
				in.Pod.Annotations = map[string]string{
					v1alpha1.PodProbeMarkerListAnnotationKey: "worker",
					v1alpha1.PodProbeMarkerAnnotationKey:     `[{"name":"busy","containerName":"main","probe":{"exec":{"command":["/probe"]}},"podConditionType":"example.com/busy"}]`,
				}
			},
			conclusion: "Waiting: Report of worker#busy: the provider has not set the condition example.com/busy", next: describePod,
			evidence: []string{"ok Annotations: they pass the probes to the provider"},
		},
	}
}

func markerSetups() map[string]setup {
	return map[string]setup{
		"wrong label": {
			change: func(in *explanation.Input) {
				in.Markers = []*v1alpha1.PodProbeMarker{
					builders.Marker("ns", "db").Selector("app", "database").Probe(busy()).Build(),
					builders.Marker("ns", "worker").Selector("app", "wroker").Probe(busy()).Build(),
				}
				unreported(in)
			},
			conclusion: "Problem: Marker worker: no marker matches the pod, and this one is the closest: " +
				"it requires app=wroker, and the pod has app=worker, which is similar",
			next:     "kubectl -n ns get podprobemarker worker -o yaml",
			evidence: []string{"info Marker db: it does not match: it requires app=database, and the pod has app=worker\n"},
		},
		"missing label": {
			change: func(in *explanation.Input) {
				in.Markers = []*v1alpha1.PodProbeMarker{builders.Marker("ns", "worker").Selector("ap", "worker").Probe(busy()).Build()}
				unreported(in)
			},
			conclusion: "Problem: Marker worker: no marker matches the pod, and this one is the closest: " +
				`it requires ap=worker, and the pod has no label ap (did you mean "app"?)`,
			next: "kubectl -n ns get podprobemarker worker -o yaml",
		},
		"wrong namespace": {
			change: func(in *explanation.Input) {
				in.Markers = nil
				in.Elsewhere = []*v1alpha1.PodProbeMarker{builders.Marker("prod", "worker").Selector("app", "worker").Probe(busy()).Build()}
				unreported(in)
			},
			conclusion: "Problem: Markers: namespace ns has no marker: a marker selects only pods of its own namespace",
			next:       "kubectl -n prod get podprobemarker worker -o yaml", evidence: []string{"with a selector that fits: prod/worker"},
		},
		"no marker anywhere": {
			change: func(in *explanation.Input) {
				in.Markers = nil
				unreported(in)
			},
			conclusion: "Problem: Markers: namespace ns has no marker: a marker selects only pods of its own namespace",
			next:       "kubectl get podprobemarkers --all-namespaces",
		},
		"misspelled name of a marker": {
			change:     func(in *explanation.Input) { in.Marker = "wroker" },
			conclusion: "Problem: Marker wroker: namespace ns has no such marker", next: "kubectl -n ns get podprobemarkers",
			evidence: []string{`markers of the namespace: worker (did you mean "worker"?)`},
		},
		"marker deleting": {
			change: func(in *explanation.Input) {
				in.Markers[0].DeletionTimestamp = new(ago(2 * time.Minute))
				in.Markers[0].Status.Conditions = []metav1.Condition{{
					Type: v1alpha1.ConditionMarksRemoved, Status: "False", Reason: "WriteFailed",
					Message: `Pods still have marks of the marker (1, such as worker-0). The last write to pod worker-0 failed: pods "worker-0" is forbidden.`,
				}}
			},
			conclusion: "Problem: Marker worker: it has been deleting for 2m: its probes are not planned any more, and its marks are removed, " +
				"but the removal makes no progress",
			next: describe, evidence: []string{
				`The last write to pod worker-0 failed: pods "worker-0" is forbidden.`, "Other marks: the pod has marks that no probe requires",
			},
		},
		"mark refused: selector key": {
			change: func(in *explanation.Input) {
				in.Markers = []*v1alpha1.PodProbeMarker{marker("worker", busy().Label(v1alpha1.ProbeSucceeded, "app", "busy"))}
				unreported(in)
			},
			conclusion: `Problem: Marker worker: it has no effect, because it is invalid: spec.probes[0].markerPolicy[0].labels: "app" is invalid: ` +
				"must not be a key of spec.selector: the marker would change which pods it selects",
			next: edit,
		},
		"excluded namespace": {
			change: func(in *explanation.Input) {
				excluded := marker("worker", busy())
				excluded.Status.Conditions = []metav1.Condition{{
					Type: v1alpha1.ConditionProbesResolved, Status: metav1.ConditionFalse, Reason: "NamespaceExcluded",
					Message: `namespace "ns" is excluded: why`,
				}}
				in.Markers = []*v1alpha1.PodProbeMarker{excluded}
				unreported(in)
			},
			conclusion: `Problem: Marker worker: it has no effect: namespace "ns" is excluded: why`, next: describe,
		},
		"container missing": {
			change: func(in *explanation.Input) {
				runs(in, busy().Container("mainn"))
				unreported(in)
			},
			conclusion: `Problem: Probe worker#busy: container "mainn" not found`, next: edit,
			evidence: []string{
				`containers of the pod: main (did you mean "main"?)`, "info Plan of node node-1: the pod is not in it: it has no probe that can run",
			},
		},
		"init container only": {
			change: func(in *explanation.Input) {
				in.Pod.Spec.InitContainers = []corev1.Container{{Name: "setup"}}
				runs(in, busy().Container("setup"))
				unreported(in)
			},
			conclusion: `Problem: Probe worker#busy: container "setup" not found`, next: edit,
			evidence: []string{"setup is an init container that is not restartable: it does not run when the pod is probed"},
		},
		"port name missing": {
			change: func(in *explanation.Input) {
				in.Pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
				runs(in, httpProbe("htpp"))
				unreported(in)
			},
			conclusion: `Problem: Probe worker#busy: container "main" has no port "htpp"`, next: edit,
			evidence: []string{`named ports of container main: http (did you mean "http"?)`},
		},
		"manager has not processed a marker": {
			change:     func(in *explanation.Input) { in.Markers[0].Finalizers = nil },
			conclusion: "Problem: Marker worker: it matches, but the manager has not processed it", next: managerLogs,
		},
		"manager has not processed a change": {
			change:     func(in *explanation.Input) { in.Markers[0].Generation = 3 },
			conclusion: "Problem: Marker worker: it matches, but the manager has not processed its last change", next: managerLogs,
			evidence: []string{"its generation is 3, and its status is that of generation 1"},
		},
	}
}
