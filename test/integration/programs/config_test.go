// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// createNode creates a node, which is deleted when the test ends.
func createNode(t *testing.T, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	expect.NoError(t, shared.Client.Create(t.Context(), node))
	t.Cleanup(func() {
		for _, object := range []client.Object{node, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: name}}} {
			expect.Success(t, client.IgnoreNotFound(shared.Client.Delete(context.Background(), object)))
		}
	})
}

// createPod creates a running pod with the label app=game and returns it as stored.
func createPod(t *testing.T, namespace, name, node string) *corev1.Pod {
	t.Helper()
	pod, err := env.CreatePod(t.Context(), shared.Client, builders.Pod(namespace, name).Label("app", "game").Node(node).Build())
	expect.NoError(t, err)
	return pod
}

func createMarker(t *testing.T, builder *builders.MarkerBuilder) *v1alpha1.PodProbeMarker {
	t.Helper()
	marker := builder.Unsaved().Build()
	expect.NoError(t, shared.Client.Create(t.Context(), marker))
	return marker
}

// hasPlan waits until the node's plan has that many pods and returns it.
func hasPlan(t *testing.T, node string, pods int) *v1alpha1.NodePodProbe {
	t.Helper()
	var npp *v1alpha1.NodePodProbe
	await.Until(t, fmt.Sprintf("%s has a plan of %d pods", node, pods), func(ctx context.Context) (string, error) {
		var err error
		if npp, err = (gather.Reader{Client: shared.Client}).NodePlan(ctx, node); err != nil || npp == nil {
			return "no plan", err
		}
		if got := len(npp.Spec.PodProbes); got != pods {
			return fmt.Sprintf("%d pods", got), nil
		}
		return "", nil
	})
	return npp
}

// TestConfigurationFile checks that the defaults of the file reach the plan, that a flag takes
// precedence over the file, and that the effective configuration is logged once.
func TestConfigurationFile(t *testing.T) {
	namespace, node := shared.Namespace(t), "configured"
	createNode(t, node)
	createPod(t, namespace, "a", node)
	marker := createMarker(t, builders.Marker(namespace, "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "web", "1")))
	manager := startManager(t, `
probeDefaults: {initialDelaySeconds: 7, periodSeconds: 1, timeoutSeconds: 2, successThreshold: 1, failureThreshold: 4}
messageUpdates: Immediate
logging: {verbosity: 10, format: json}
`, "-v=0")
	planned := hasPlan(t, node, 1).Spec.PodProbes[0].Probes[0]
	expect.Equal(t, "planned messageUpdates", v1alpha1.MessageUpdatesImmediate, planned.MessageUpdates)
	got := planned.Probe.Probe
	want := corev1.Probe{
		ProbeHandler: got.ProbeHandler, InitialDelaySeconds: 7, PeriodSeconds: 1, TimeoutSeconds: 2, SuccessThreshold: 1, FailureThreshold: 4,
	}
	expect.Equal(t, "planned probe", want, got)
	const effective = `"configuration":\{.*"failureThreshold":4.*"featureGates":\{"EnablePodProbeMarkerOnServerless":false,"PodProbeMarkerGate":true\}`
	expect.Equal(t, "lines log the configuration", 1, len(manager.logged(effective)))
	if lines := manager.logged(`"level":"DEBUG"`); len(lines) != 0 {
		t.Errorf("debug message despite the flag -v=0: %s", lines[0])
	}
	expect.NoError(t, shared.Client.Delete(t.Context(), marker))
	hasPlan(t, node, 0)
}

// TestConcurrency checks that each controller has as many workers as the file sets.
func TestConcurrency(t *testing.T) {
	manager := startManager(t, "controllers: {nodeProbe: {concurrency: 3}, podMark: {concurrency: 5}, marker: {concurrency: 7}}", "-v=2")
	for controller, workers := range map[string]int{"nodeprobe": 3, "podmark": 5, "marker": 7} {
		await.Until(t, fmt.Sprintf("the controller %s has %d workers", controller, workers), func(context.Context) (string, error) {
			if len(manager.logged(fmt.Sprintf(`"Starting workers" controller=%s "worker count"=%d$`, controller, workers))) == 0 {
				return "not logged", nil
			}
			return "", nil
		})
	}
}

// TestGateOff checks that no controller runs with the feature gate disabled: a new node gets no
// plan until a manager with the gate enabled starts.
func TestGateOff(t *testing.T) {
	health := env.FreeAddress(t)
	off := startManager(t, "featureGates: {PodProbeMarkerGate: false}", "--health-probe-bind-address="+health)
	await.Until(t, "the manager is ready", func(ctx context.Context) (string, error) {
		if answer := env.Get(ctx, health, "/readyz"); !strings.HasPrefix(answer, "200") {
			return "answer: " + answer, nil
		}
		return "", nil
	})
	createNode(t, "ungated")
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Second, true, func(ctx context.Context) (bool, error) {
		err := shared.Client.Get(ctx, client.ObjectKey{Name: "ungated"}, &v1alpha1.NodePodProbe{})
		return !apierrors.IsNotFound(err), err
	})
	if !apierrors.IsNotFound(err) && !wait.Interrupted(err) {
		t.Errorf("a NodePodProbe was created, or can't be read: %v", err)
	}
	expect.Equal(t, "lines log that the gate is off", 1, len(off.logged("level=INFO.*PodProbeMarkerGate is off")))
	off.stop()
	startManager(t, "", "--feature-gates=PodProbeMarkerGate=true")
	hasPlan(t, "ungated", 0)
}

// TestProfiles checks that profiles are served only at the configured address.
func TestProfiles(t *testing.T) {
	manager, agent, metrics := env.FreeAddress(t), env.FreeAddress(t), env.FreeAddress(t)
	startManager(t, "pprof: {bindAddress: \""+manager+"\"}")
	runtime := critest.New(t, critest.Streamed)
	start(t, "seamark-agent", "AgentConfiguration", "criEndpoint: "+runtime.Socket(),
		"--node-name=profiled", "--pprof-bind-address="+agent, "--metrics-bind-address="+metrics)
	for _, address := range []string{manager, agent} {
		await.Until(t, address+" serves profiles", func(ctx context.Context) (string, error) {
			if answer := env.Get(ctx, address, "/debug/pprof/goroutine?debug=1"); !strings.HasPrefix(answer, "200") || !strings.Contains(answer, "goroutine profile:") {
				return "answer: " + answer, nil
			}
			return "", nil
		})
		if answer := env.Get(t.Context(), address, "/metrics"); !strings.HasPrefix(answer, "404") {
			t.Errorf("/metrics at the address of the profiles: %s", answer)
		}
	}
	if answer := env.Get(t.Context(), metrics, "/debug/pprof/"); !strings.HasPrefix(answer, "404") {
		t.Errorf("profiles at the address of the metrics: %s", answer)
	}
}
