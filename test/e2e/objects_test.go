// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

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

func newMarker(name string, labels map[string]string, probes ...appsv1alpha1.PodContainerProbe) *appsv1alpha1.PodProbeMarker {
	return &appsv1alpha1.PodProbeMarker{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1alpha1.PodProbeMarkerSpec{
			Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
			Probes:   probes,
		},
	}
}

// newProbe returns a probe of the container main with a period of one second and thresholds of one. A
// timeout on a busy machine would be a correct result, so the timeout is long.
func newProbe(name string, handler corev1.ProbeHandler, options ...func(*appsv1alpha1.PodContainerProbe)) appsv1alpha1.PodContainerProbe {
	probe := appsv1alpha1.PodContainerProbe{
		Name: name, ContainerName: "main",
		Probe: appsv1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
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
func condition(conditionType string) func(*appsv1alpha1.PodContainerProbe) {
	return func(p *appsv1alpha1.PodContainerProbe) { p.PodConditionType = conditionType }
}

func labelled(state appsv1alpha1.ProbeState, labels map[string]string) func(*appsv1alpha1.PodContainerProbe) {
	return func(p *appsv1alpha1.PodContainerProbe) {
		p.MarkerPolicy = append(p.MarkerPolicy, appsv1alpha1.ProbeMarkerPolicy{State: state, Labels: labels})
	}
}

// every sets the probe's period, in seconds.
func every(seconds int32) func(*appsv1alpha1.PodContainerProbe) {
	return func(p *appsv1alpha1.PodContainerProbe) { p.Probe.PeriodSeconds = seconds }
}

// thresholds sets the probe's thresholds.
func thresholds(success, failure int32) func(*appsv1alpha1.PodContainerProbe) {
	return func(p *appsv1alpha1.PodContainerProbe) {
		p.Probe.SuccessThreshold, p.Probe.FailureThreshold = success, failure
	}
}

// timeout sets the probe's timeout, in seconds.
func timeout(seconds int32) func(*appsv1alpha1.PodContainerProbe) {
	return func(p *appsv1alpha1.PodContainerProbe) { p.Probe.TimeoutSeconds = seconds }
}

func in(container string) func(*appsv1alpha1.PodContainerProbe) {
	return func(p *appsv1alpha1.PodContainerProbe) { p.ContainerName = container }
}
