// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain_test breaks setups on a real API server, with a running manager, and checks what
// `seamark explain` answers. The tests write what kubelets and agents write. The package has an API
// server of its own, because the manager would change the objects of other tests.
package explain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// shared is the API server of the package.
var shared *env.Env

func TestMain(m *testing.M) { env.Main(m, &shared) }

// startManager runs a manager that leads, until the test ends or stop is called.
func startManager(t *testing.T) (stop func()) {
	t.Helper()
	return program.StartManager(t, manager.Options{
		Config: shared.Component(t, manager.Name), LeaderElection: true, LeaderElectionNamespace: env.SystemNamespace,
	})
}

// world is a namespace and a node with a ready agent.
type world struct {
	*env.World
	node, kubeconfig string
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{World: env.NewWorld(t, shared), kubeconfig: env.Kubeconfig(t, shared.Config)}
	w.node = "node-" + w.Namespace
	w.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node}})
	return w
}

// agent creates the agent of the node.
func (w world) agent(ready corev1.ConditionStatus) {
	w.Helper()
	w.runPod(builders.Pod(env.SystemNamespace, "agent-"+w.node).Label("app.kubernetes.io/component", "agent").Node(w.node).
		Condition(corev1.PodCondition{Type: corev1.PodReady, Status: ready}).Ran().Build())
}

// runPod creates the pod and its status.
func (w world) runPod(pod *corev1.Pod) *corev1.Pod {
	w.Helper()
	created, err := env.CreatePod(w.Context(), shared.Client, pod)
	expect.NoError(w, err)
	return created
}

// pod starts a pod with the label app=worker, whose container has been running for some minutes.
func (w world) pod() *builders.PodBuilder {
	return builders.Pod(w.Namespace, "worker-0").Label("app", "worker").Node(w.node)
}

// marker creates the marker worker.
func (w world) marker(probes ...*builders.ProbeBuilder) {
	w.Helper()
	b := builders.Marker(w.Namespace, "worker").Selector("app", "worker").Unsaved()
	for _, p := range probes {
		b.Probe(p)
	}
	w.Create(b.Build())
}

// busy is the probe of the marker worker.
func busy() *builders.ProbeBuilder {
	return builders.Probe("busy").Condition("example.com/busy").Label(v1alpha1.ProbeSucceeded, "busy", "true")
}

// planned waits until the plan of the node has the number of probes, and returns it.
func (w world) planned(probes int) *v1alpha1.NodePodProbe {
	w.Helper()
	var npp *v1alpha1.NodePodProbe
	w.Until(fmt.Sprintf("the plan of the node has %d probes", probes), func() (err error) {
		if npp, err = (gather.Reader{Client: w.Client}).NodePlan(w.Context(), w.node); err != nil || npp == nil {
			return fmt.Errorf("it has no plan: %w", err)
		}
		found := 0
		for _, pod := range npp.Spec.PodProbes {
			found += len(pod.Probes)
		}
		return await.ErrorIf(found != probes, "%d", found)
	})
	return npp
}

// observe writes which plan the agent runs, less the given number of generations.
func (w world) observe(npp *v1alpha1.NodePodProbe, less int64) {
	w.Helper()
	body := fmt.Sprintf(`{"status":{"observedGeneration":%d,"probeReports":true}}`, npp.Generation-less)
	err := shared.Client.Status().Patch(w.Context(), npp.DeepCopy(), env.MergePatch(body), client.FieldOwner(v1alpha1.AgentFieldManager))
	expect.NoError(w, err)
}

// report writes the same state for all planned probes, as the agent does. An empty state is none.
func (w world) report(npp *v1alpha1.NodePodProbe, state v1alpha1.ProbeState, message string, errs ...v1alpha1.ContainerProbeError) {
	w.Helper()
	w.observe(npp, 0)
	now := metav1.Now().Rfc3339Copy()
	slice := &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{Name: w.node + ".0", OwnerReferences: npp.OwnerReferences}, NodeName: w.node,
	}
	for _, planned := range npp.Spec.PodProbes {
		pod := seamarkv1alpha1.PodReport{Namespace: planned.Namespace, Name: planned.Name, UID: planned.UID, Errors: errs}
		for _, p := range planned.Probes {
			if state != "" {
				pod.Probes = append(pod.Probes, v1alpha1.ContainerProbeState{
					Name: p.Name, Plan: p.Plan, State: state, Message: message, LastProbeTime: now, LastTransitionTime: now,
				})
			}
		}
		slice.Pods = append(slice.Pods, pod)
	}
	expect.NoError(w, shared.Client.Create(w.Context(), slice, client.FieldOwner(v1alpha1.AgentFieldManager)))
}

// running creates the pod, the marker with the probe and a ready agent that runs the plan and
// reports the state.
func (w world) running(state v1alpha1.ProbeState, message string, probes ...*builders.ProbeBuilder) {
	w.Helper()
	w.agent(corev1.ConditionTrue)
	w.runPod(w.started(w.pod().Build()))
	w.marker(probes...)
	w.report(w.planned(len(probes)), state, message)
}

// started gives the pod a container that runs.
func (w world) started(pod *corev1.Pod) *corev1.Pod {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	return pod
}

// explain runs the command as the administrator, or with other flags.
func (w world) explain(args ...string) (explanation.Explanation, int, error) {
	var out, errOut bytes.Buffer
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, "seamark", "test")
	command.SetArgs(append([]string{"explain", "worker-0", "-o", "json", "--kubeconfig=" + w.kubeconfig, "--namespace=" + w.Namespace}, args...))
	code := exit.Code(command.ExecuteContext(w.Context()))
	var x explanation.Explanation
	if err := json.Unmarshal(out.Bytes(), &x); err != nil {
		return x, code, errors.Join(err, errors.New(errOut.String()))
	}
	return x, code, nil
}
