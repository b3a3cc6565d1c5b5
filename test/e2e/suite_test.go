// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// targetImage is the image of test/e2e/target.
const targetImage = "docker.io/seamark/probe-target:dev"

// suite is what one test uses of the cluster.
type suite struct {
	*cluster.Cluster
	clientset kubernetes.Interface
}

// newSuite connects to the cluster and creates a namespace, which is deleted when the test
// ends.
func newSuite(t *testing.T) *suite {
	t.Helper()
	s := &suite{Cluster: cluster.Connect(t, "../..")}
	clientset, err := kubernetes.NewForConfig(s.Config)
	cluster.Must(t, err)
	s.clientset = clientset
	s.CreateNamespace("e2e-", func(ctx context.Context) {
		if t.Failed() {
			s.Dump(ctx, "get pods -o wide --show-labels", "get podprobemarkers -o yaml", "get nodepodprobes -o yaml", "get probereports -o yaml",
				"get events --sort-by=.lastTimestamp", "get pods -n "+cluster.SystemNamespace+" -o wide",
				"logs -n "+cluster.SystemNamespace+" -l app.kubernetes.io/name=seamark --tail=60 --prefix")
		}
	})
	return s
}

// running waits until the pods are running.
func (s *suite) running(names ...string) {
	s.Helper()
	for _, name := range names {
		s.Eventually("pod "+name+" is running", func(ctx context.Context) error {
			pod := &corev1.Pod{}
			if err := s.Client.Get(ctx, s.Key(name), pod); err != nil {
				return err
			}
			return await.ErrorIf(pod.Status.Phase != corev1.PodRunning, "phase %s: %v", pod.Status.Phase, pod.Status.ContainerStatuses)
		})
	}
}

// exec runs a shell command in a pod's first container and returns its output.
func (s *suite) exec(pod, line string) string {
	s.Helper()
	out, err := s.tryExec(pod, line)
	cluster.Must(s, err)
	return out
}

func (s *suite) tryExec(pod, line string) (string, error) {
	request := s.clientset.CoreV1().RESTClient().Post().Namespace(s.Namespace).
		Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Command: []string{"sh", "-c", line}, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(s.Config, "POST", request.URL())
	if err != nil {
		return "", fmt.Errorf("exec %q in %s: %w", line, pod, err)
	}
	var out, errOut bytes.Buffer
	if err := executor.StreamWithContext(s.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut}); err != nil {
		return "", fmt.Errorf("exec %q in %s: %w: %s", line, pod, err, errOut.String())
	}
	return out.String(), nil
}

// idle is a main process that does nothing and ends on SIGTERM.
const idle = `trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done`

// sayAndCheck is a probe that tests control: it prints /tmp/say and succeeds while /tmp/ok
// exists.
const sayAndCheck = `cat /tmp/say 2>/dev/null; test -f /tmp/ok`

// newPod returns a pod with one busybox container that runs a shell script.
func newPod(name, script string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []corev1.Container{{
				Name: "main", Image: cluster.BusyboxImage, Command: []string{"sh", "-c", script},
			}},
		},
	}
}

func newMarker(name string, labels map[string]string, probes ...v1alpha1.PodContainerProbe) *v1alpha1.PodProbeMarker {
	return &v1alpha1.PodProbeMarker{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.PodProbeMarkerSpec{
			Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
			Probes:   probes,
		},
	}
}

// newProbe returns a probe of the container main with a period of one second and thresholds of one. A
// timeout on a busy machine would be a correct result, so the timeout is long.
func newProbe(name string, handler corev1.ProbeHandler, options ...func(*v1alpha1.PodContainerProbe)) v1alpha1.PodContainerProbe {
	probe := v1alpha1.PodContainerProbe{
		Name: name, ContainerName: "main",
		Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
			ProbeHandler: handler, PeriodSeconds: 1, TimeoutSeconds: 30, FailureThreshold: 1, SuccessThreshold: 1,
		}},
	}
	for _, option := range options {
		option(&probe)
	}
	return probe
}

// shell returns an exec handler that runs a shell command.
func shell(line string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", line}}}
}

// condition sets the pod condition of the probe.
func condition(conditionType string) func(*v1alpha1.PodContainerProbe) {
	return func(p *v1alpha1.PodContainerProbe) { p.PodConditionType = conditionType }
}

func labelled(state v1alpha1.ProbeState, labels map[string]string) func(*v1alpha1.PodContainerProbe) {
	return func(p *v1alpha1.PodContainerProbe) {
		p.MarkerPolicy = append(p.MarkerPolicy, v1alpha1.ProbeMarkerPolicy{State: state, Labels: labels})
	}
}

// every sets the probe's period, in seconds.
func every(seconds int32) func(*v1alpha1.PodContainerProbe) {
	return func(p *v1alpha1.PodContainerProbe) { p.Probe.PeriodSeconds = seconds }
}

// thresholds sets the probe's thresholds.
func thresholds(success, failure int32) func(*v1alpha1.PodContainerProbe) {
	return func(p *v1alpha1.PodContainerProbe) {
		p.Probe.SuccessThreshold, p.Probe.FailureThreshold = success, failure
	}
}

// timeout sets the probe's timeout, in seconds.
func timeout(seconds int32) func(*v1alpha1.PodContainerProbe) {
	return func(p *v1alpha1.PodContainerProbe) { p.Probe.TimeoutSeconds = seconds }
}

func in(container string) func(*v1alpha1.PodContainerProbe) {
	return func(p *v1alpha1.PodContainerProbe) { p.ContainerName = container }
}
