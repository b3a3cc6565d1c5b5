// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/process"
)

const (
	// podsVariable is the environment variable with the number of pods of TestGetOfManyPods.
	podsVariable = "SEAMARK_CLI_PODS"
	defaultPods  = 500
	podsPerNode  = 100
	// podsPerReport is that of the agents.
	podsPerReport = 8
	// probesPerPod is the number of probes of the marker.
	probesPerPod = 2
)

// TestGetOfManyPods checks that `seamark get -A` lists every probe, and prints what it takes next to
// kubectl. It does not limit the time, which depends on the machine.
func TestGetOfManyPods(t *testing.T) {
	count := defaultPods
	if text := os.Getenv(podsVariable); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil || count < 1 {
			t.Fatalf("%s: %q is invalid: must be a positive number", podsVariable, text)
		}
	}
	program, err := process.Built("seamark", "test-integration")
	if err != nil {
		t.Fatal(err)
	}
	namespace := shared.Namespace(t)
	fill(t, namespace, count)
	kubeconfig := env.Kubeconfig(t, shared.Config)
	cost := measure(t, program, "get", "-A", "-o", "wide", "--kubeconfig="+kubeconfig)
	t.Logf("seamark get -A of %d pods: %s, %s of processor time", count, cost.elapsed, cost.processor)
	if kubectl, err := exec.LookPath(os.Getenv(env.BinariesVariable) + "/kubectl"); err == nil {
		other := measure(t, kubectl, "get", "pods", "-A", "-o", "wide", "--kubeconfig="+kubeconfig)
		t.Logf("kubectl get pods -A: %s, %s of processor time", other.elapsed, other.processor)
	}
	rows := 0
	for line := range strings.Lines(cost.output) {
		if strings.HasPrefix(line, namespace+" ") {
			rows++
		}
	}
	if want := count * probesPerPod; rows != want {
		t.Errorf("%d rows of namespace %s, want %d", rows, namespace, want)
	}
}

// cost is what one run of a program takes, and what it prints.
type cost struct {
	elapsed, processor time.Duration
	output             string
}

func measure(t *testing.T, program string, args ...string) cost {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Stderr = os.Stderr
	start := time.Now()
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return cost{
		elapsed: time.Since(start).Round(time.Millisecond), output: string(output),
		processor: command.ProcessState.UserTime() + command.ProcessState.SystemTime(),
	}
}

// fill creates pods with a marker of two probes, and the plans and reports of their nodes.
func fill(t *testing.T, namespace string, count int) {
	t.Helper()
	marker := builders.Marker(namespace, "game").Unsaved().
		Probe(builders.Probe("idle").Condition("game.io/idle")).
		Probe(builders.Probe("map").Label(v1alpha1.ProbeSucceeded, "map", "ready")).Build()
	if err := shared.Client.Create(t.Context(), marker); err != nil {
		t.Fatal(err)
	}
	compiled, err := plan.Compile(marker)
	if err != nil {
		t.Fatal(err)
	}
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for first := 0; first < count; first += podsPerNode {
		group.Go(func() error {
			node := fmt.Sprintf("%s-%d", namespace, first)
			if err := shared.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}); err != nil {
				return err
			}
			var pods []*corev1.Pod
			for i := first; i < min(first+podsPerNode, count); i++ {
				pod, err := env.CreatePod(ctx, shared.Client, builders.Pod(namespace, fmt.Sprintf("game-%d", i)).Label("app", "game").Node(node).Build())
				if err != nil {
					return err
				}
				pods = append(pods, pod)
			}
			npp := &v1alpha1.NodePodProbe{
				ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: plan.Node(pods, []*plan.Marker{compiled}, plan.KubernetesDefaults()),
			}
			if err := shared.Client.Create(ctx, npp); err != nil {
				return err
			}
			for slice := 0; slice*podsPerReport < len(pods); slice++ {
				some := pods[slice*podsPerReport : min((slice+1)*podsPerReport, len(pods))]
				if err := shared.Client.Create(ctx, reportOf(node, slice, some)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func reportOf(node string, slice int, pods []*corev1.Pod) *seamarkv1alpha1.ProbeReport {
	report := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%d", node, slice)}, NodeName: node}
	now := metav1.Now().Rfc3339Copy()
	for _, pod := range pods {
		report.Pods = append(report.Pods, seamarkv1alpha1.PodReport{
			Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{
				{Name: "game#idle", State: v1alpha1.ProbeSucceeded, LastProbeTime: now, LastTransitionTime: now, Message: "no players"},
				{Name: "game#map", State: v1alpha1.ProbeFailed, LastProbeTime: now, LastTransitionTime: now, Message: "map is being loaded"},
			},
		})
	}
	return report
}
