// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestCommandTest runs `seamark test` with all handlers. Nothing in the cluster may change.
func TestCommandTest(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "trial"}
	target := newTarget("trial", labels)
	target.Spec.Containers = append(target.Spec.Containers, newPod("shell", idle, labels).Spec.Containers[0])
	target.Spec.Containers[1].Name = "shell"
	s.Create(target)
	s.running("trial")

	cases := map[string]struct {
		handler      corev1.ProbeHandler
		result, says string
	}{
		"exec":          {shell("echo ready"), "Succeeded", "ready"},
		"exec-fails":    {shell("echo no >&2; exit 3"), "Failed", "no"},
		"exec-hangs":    {shell("sleep 60"), "Failed", "timed out after 1s"},
		"exec-absent":   {corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/absent"}}}, "Error", "/absent"},
		"http":          {httpGet(intstr.FromString("http"), "/ok"), "Succeeded", "200"},
		"http-fails":    {httpGet(intstr.FromInt32(8080), "/fail"), "Failed", "500"},
		"http-redirect": {httpGet(intstr.FromInt32(8080), "/home"), "Succeeded", "200"},
		"http-refused":  {httpGet(intstr.FromInt32(1), "/"), "Failed", "connection refused"},
		"tcp":           {tcpSocket(intstr.FromString("socket")), "Succeeded", ""},
		"tcp-refused":   {tcpSocket(intstr.FromInt32(1)), "Failed", "connection refused"},
		"grpc":          {grpcHealth(9090, "up"), "Succeeded", "healthy"},
		"grpc-down":     {grpcHealth(9090, "down"), "Failed", "NOT_SERVING"},
		"grpc-refused":  {grpcHealth(1, ""), "Failed", "connection refused"},
	}
	marker := newMarker("trial", labels)
	marker.Namespace = s.Namespace
	for name, tc := range cases {
		probe := newProbe(name, tc.handler, condition("test.dev/"+name))
		if name == "exec-hangs" || name == "grpc-refused" {
			probe.Probe.TimeoutSeconds = 1
		}
		if tc.handler.Exec != nil {
			probe.ContainerName = "shell"
		}
		marker.Spec.Probes = append(marker.Spec.Probes, probe)
	}
	before := s.versions()
	items, code := s.runTest(marker, "--parallel=8")
	if code != exit.Failed || len(items) != len(cases) {
		t.Errorf("exit code %d and %d results, want %d and %d", code, len(items), exit.Failed, len(cases))
	}
	for _, item := range items {
		want := cases[item.Probe]
		if item.Result != want.result || !strings.Contains(item.Message, want.says) {
			t.Errorf("probe %s: %s %q, want %s %q", item.Probe, item.Result, item.Message, want.result, want.says)
		}
	}
	expect.Equal(t, "objects changed", before, s.versions())
}

// result is what the test reads of a result of `seamark test`.
type result struct{ Probe, Result, Message string }

func (s *suite) runTest(marker *v1alpha1.PodProbeMarker, args ...string) (items []result, code int) {
	s.Helper()
	marker = marker.DeepCopy()
	marker.APIVersion, marker.Kind = v1alpha1.GroupVersion().String(), "PodProbeMarker"
	content, err := json.Marshal(marker)
	cluster.Must(s, err)
	file := filepath.Join(s.TempDir(), "marker.yaml")
	cluster.Must(s, os.WriteFile(file, content, 0o600))
	var out, errOut bytes.Buffer
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, "seamark", "test")
	command.SetArgs(append([]string{"test", "-f", file, "-o", "json", "--kubeconfig", s.Kubeconfig()}, args...))
	code = exit.Code(command.ExecuteContext(s.Context()))
	list := struct{ Items []result }{}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		s.Fatalf("output %q: %v; standard error %q", out.String(), err, errOut.String())
	}
	return list.Items, code
}

// versions returns what distinguishes the versions of the pods and markers of the namespace. The kubelet
// may write the status of a pod at any time, so a pod has the writers and the marks instead of a version.
func (s *suite) versions() map[string]string {
	s.Helper()
	versions := map[string]string{}
	var pods corev1.PodList
	cluster.Must(s, s.Client.List(s.Context(), &pods, ctrl.InNamespace(s.Namespace)))
	for i := range pods.Items {
		pod := &pods.Items[i]
		var writers, conditions []string
		for _, each := range pod.ManagedFields {
			writers = append(writers, each.Manager+" "+each.Subresource)
		}
		for _, each := range pod.Status.Conditions {
			conditions = append(conditions, string(each.Type))
		}
		slices.Sort(writers)
		slices.Sort(conditions)
		versions["pod "+pod.Name] = fmt.Sprintf("%d %v %v %q %q", pod.Generation, pod.Labels, pod.Annotations, conditions, writers)
	}
	var markers v1alpha1.PodProbeMarkerList
	cluster.Must(s, s.Client.List(s.Context(), &markers, ctrl.InNamespace(s.Namespace)))
	for i := range markers.Items {
		versions["marker "+markers.Items[i].Name] = markers.Items[i].ResourceVersion
	}
	return versions
}

// restarted expects that the first container restarted at least once.
func restarted(pod *corev1.Pod) error {
	return await.ErrorIf(len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].RestartCount == 0, "pod %s: no restarts", pod.Name)
}

// costsItsPlayers expects that the deletion cost is the number of players in the message.
func costsItsPlayers(pod *corev1.Pod) error {
	cost := pod.Annotations[corev1.PodDeletionCost]
	return hasCondition("game.io/stats", corev1.ConditionTrue, fmt.Sprintf(`"players":%s,`, cost))(pod)
}

// all combines expectations of one pod.
func all(wants ...expectation) expectation {
	return func(pod *corev1.Pod) error {
		for _, want := range wants {
			if err := want(pod); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestExamples checks that the examples behave in a cluster as with `seamark local`: some pod
// meets each expectation at some time.
func TestExamples(t *testing.T) {
	t.Parallel()
	cases := map[string][]expectation{
		"game-server": {
			all(hasCondition("game.io/idle", corev1.ConditionTrue), hasLabel("gameserver-idle", "true"),
				hasAnnotation("controller.kubernetes.io/pod-deletion-cost", "-10")),
			all(hasCondition("game.io/idle", corev1.ConditionFalse), hasLabel("gameserver-idle", "false"),
				hasAnnotation("controller.kubernetes.io/pod-deletion-cost", "10")),
		},
		"first-marker": {hasCondition("example.com/busy", corev1.ConditionFalse)},
		"primary-secondary": {
			all(hasLabel("role", "primary"), hasAnnotation("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")),
			all(hasLabel("role", "secondary"), lacksAnnotation("cluster-autoscaler.kubernetes.io/safe-to-evict")),
			hasCondition("example.com/caught-up", corev1.ConditionTrue, "seconds behind"),
		},
		"one-primary": {
			all(hasLabel("role", "primary"), hasCondition("example.com/primary", corev1.ConditionTrue)),
			all(hasLabel("role", "unknown"), hasCondition("example.com/primary", corev1.ConditionUnknown, "Another pod")),
			all(hasLabel("role", "replica"), hasCondition("example.com/primary", corev1.ConditionFalse)),
		},
		"startup-then-liveness": {
			all(hasLabel("stage", "loading"), hasCondition("example.com/loaded", corev1.ConditionFalse)),
			all(hasLabel("stage", "working"), hasCondition("example.com/loaded", corev1.ConditionTrue)),
			all(hasLabel("stage", "loading"), lacksCondition("example.com/fresh")),
			hasCondition("example.com/fresh", corev1.ConditionTrue),
			restarted,
		},
		"deletion-cost-by-players": {
			all(hasLabel("game.io/map", "dust"), costsItsPlayers), all(hasLabel("game.io/map", "mill"), costsItsPlayers),
		},
		"readiness-gate": {all(hasCondition("example.com/open", corev1.ConditionTrue), hasCondition("Ready", corev1.ConditionTrue))},
		"grpc": {
			all(hasLabel("intake", "open"), hasCondition("example.com/intake", corev1.ConditionTrue)),
			all(hasLabel("intake", "closed"), hasCondition("example.com/intake", corev1.ConditionFalse)),
		},
		"probes/exec-liveness.yaml":   {restarted},
		"probes/exec-readiness.yaml":  {hasCondition("Ready", corev1.ConditionTrue), hasCondition("Ready", corev1.ConditionFalse)},
		"probes/http-liveness.yaml":   {restarted},
		"probes/startup-failure.yaml": {restarted},
	}
	for example, wants := range cases {
		t.Run(strings.ReplaceAll(example, "/", "-"), func(t *testing.T) {
			t.Parallel()
			s := newSuite(t)
			manifests, err := filepath.Abs(filepath.Join("../../examples", example))
			cluster.Must(t, err)
			s.Kubectl("apply", "-f", manifests)
			met := make([]bool, len(wants))
			s.Eventually("pods of "+example+" meet each expectation", func(ctx context.Context) error {
				pods := &corev1.PodList{}
				if err := s.Client.List(ctx, pods, ctrl.InNamespace(s.Namespace)); err != nil {
					return err
				}
				return meetsOnce(pods.Items, wants, met)
			})
		})
	}
}

// meetsOnce records the expectations that a pod meets, and returns those that none has met yet.
func meetsOnce(pods []corev1.Pod, wants []expectation, met []bool) error {
	var unmet error
	for i, want := range wants {
		var last error
		for j := range pods {
			if err := want(&pods[j]); err != nil {
				last = err
				continue
			}
			met[i] = true
		}
		if !met[i] {
			unmet = errors.Join(unmet, fmt.Errorf("expectation %d: %w", i+1, last))
		}
	}
	if unmet == nil && len(pods) == 0 {
		return errors.New("no pods")
	}
	return unmet
}

// TestProbeThatCannotRun has a typo in the command of one probe. The pod gets a Warning event and
// no marks of the probe, and the marker's status names the pod, until the typo is fixed.
func TestProbeThatCannotRun(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "typo"}
	typo := newProbe("typo", corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/ture"}}}, condition("test.dev/typo"), every(2))
	s.Create(newPod("typo", idle, labels),
		newMarker("typo", labels, typo, newProbe("fine", shell("true"), condition("test.dev/fine"), every(2))))
	s.podIs("typo", hasCondition("test.dev/fine", corev1.ConditionTrue))
	s.Eventually("the pod has an event", s.hasProbeError("typo", "typo#typo", "/bin/ture", "no such file or directory"))
	s.Eventually("the marker reports the error", func(ctx context.Context) error {
		return s.markerHas(ctx, "typo", v1alpha1.ConditionProbesResolved, `"typo"`, "cannot be run", "1 of 1 matched pods, such as typo", "/bin/ture")
	})
	s.podIs("typo", lacksCondition("test.dev/typo"))

	s.edit("typo", func(marker *v1alpha1.PodProbeMarker) {
		marker.Spec.Probes[0].Probe.Exec.Command = []string{"/bin/true"}
	})
	s.podIs("typo", hasCondition("test.dev/typo", corev1.ConditionTrue))
	s.Eventually("the marker reports no error", func(ctx context.Context) error {
		return s.markerResolved(ctx, "typo")
	})
}

// markerResolved expects that all probes of a marker can run.
func (s *suite) markerResolved(ctx context.Context, name string) error {
	marker := &v1alpha1.PodProbeMarker{}
	if err := s.Client.Get(ctx, s.Key(name), marker); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(marker.Status.Conditions, v1alpha1.ConditionProbesResolved) {
		return fmt.Errorf("conditions of marker %s: %v", name, marker.Status.Conditions)
	}
	return nil
}

// hasProbeError expects one Warning event about a probe that cannot run.
func (s *suite) hasProbeError(pod string, parts ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := s.Client.List(ctx, events, ctrl.InNamespace(s.Namespace)); err != nil {
			return err
		}
		var messages []string
		for i := range events.Items {
			if e := &events.Items[i]; e.InvolvedObject.Name == pod && e.Reason == v1alpha1.EventReasonProbeError && e.Type == corev1.EventTypeWarning {
				messages = append(messages, fmt.Sprintf("%s (%d times)", e.Message, e.Count))
			}
		}
		if len(messages) != 1 || !strings.Contains(messages[0], "(1 times)") {
			return fmt.Errorf("pod %s has the events %q, want one", pod, messages)
		}
		for _, part := range parts {
			if !strings.Contains(messages[0], part) {
				return fmt.Errorf("event of pod %s: %q lacks %q", pod, messages[0], part)
			}
		}
		return nil
	}
}

// TestUnendedExec has a command that exits at once, but leaves a child that keeps its output
// open, so that the runtime never ends the run. The probe fails, as for the kubelet, but the
// command is not started again. When the child ends, the probe runs again.
func TestUnendedExec(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "unended"}
	const command = "echo run >>/tmp/runs; [ -e /tmp/fixed ] || setsid sleep 987654 & exit 0"
	s.Create(newPod("unended", idle, labels),
		newMarker("unended", labels, newProbe("unended", shell(command), condition("test.dev/unended"), every(1), timeout(1), thresholds(1, 3))))
	s.podIs("unended", hasCondition("test.dev/unended", corev1.ConditionFalse, "timed out"))
	s.Eventually("the marker reports the run", func(ctx context.Context) error {
		return s.markerHas(ctx, "unended", v1alpha1.ConditionProbesResolved, "has not ended", "1 of 1 matched pods")
	})
	s.Eventually("the pod has an event", s.hasProbeError("unended", "unended#unended", "not ended"))
	s.Never(15*time.Second, "the command ran again", func(context.Context) error {
		runs := strings.Count(s.exec("unended", "cat /tmp/runs"), "run")
		return await.ErrorIf(runs != 1, "the command ran %d times, want once", runs)
	})

	s.exec(
		"unended",
		"touch /tmp/fixed; kill -9 $(pidof sleep | tr ' ' '\\n' | while read pid; do tr '\\0' ' ' </proc/$pid/cmdline | grep -q 987654 && echo $pid; done)",
	)
	s.podIs("unended", hasCondition("test.dev/unended", corev1.ConditionTrue))
	s.Eventually("the marker reports no error", func(ctx context.Context) error {
		return s.markerResolved(ctx, "unended")
	})
}
