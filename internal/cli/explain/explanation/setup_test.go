// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/test/builders"
)

func now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(-d)) }

// marker returns the marker worker as the manager has processed it.
func marker(name string, probes ...*builders.ProbeBuilder) *v1alpha1.PodProbeMarker {
	b := builders.Marker("ns", name).Selector("app", "worker")
	for _, p := range probes {
		b.Probe(p)
	}
	m := b.Build()
	m.Finalizers, m.CreationTimestamp = []string{v1alpha1.PodProbeMarkerFinalizer}, ago(time.Hour)
	m.Status.ObservedGeneration = m.Generation
	return m
}

// busy is the probe of the marker worker.
func busy() *builders.ProbeBuilder {
	return builders.Probe("busy").Condition("example.com/busy").Label(v1alpha1.ProbeSucceeded, "busy", "true")
}

// ownsMarks are the fields of the marks of the probe busy.
const ownsMarks = `{"f:metadata":{"f:labels":{"f:busy":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"example.com/busy\"}":` +
	`{".":{},"f:type":{},"f:status":{},"f:message":{},"f:lastProbeTime":{},"f:lastTransitionTime":{}}}}}`

// ownsCondition are the fields of the condition only.
func ownsCondition() *metav1.FieldsV1 {
	return metav1.NewFieldsV1(strings.Replace(ownsMarks, `"f:metadata":{"f:labels":{"f:busy":{}}},`, "", 1))
}

// changed adds fields of another client, which has changed the pod a minute ago.
func changed(in *explanation.Input, fields string) {
	in.Pod.ManagedFields = append(in.Pod.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: "kubectl-label", Operation: metav1.ManagedFieldsOperationUpdate, Time: new(ago(time.Minute)), FieldsV1: metav1.NewFieldsV1(fields),
	})
}

// marked returns a pod with the marks of the probe busy in the state Succeeded.
func marked() *corev1.Pod {
	pod := builders.Pod("ns", "worker-0").Label("app", "worker").Label("busy", "true").
		Condition(corev1.PodCondition{
			Type: "example.com/busy", Status: corev1.ConditionTrue, Message: "job 7",
			LastProbeTime: ago(5 * time.Minute), LastTransitionTime: ago(5 * time.Minute),
		}).
		ManagedFields(v1alpha1.FieldManager, "status", ownsMarks).Build()
	pod.CreationTimestamp = ago(time.Hour)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(50 * time.Minute)}},
	}}
	return pod
}

// unmark removes the marks from the pod.
func unmark(in *explanation.Input) {
	in.Pod.ManagedFields = nil
	delete(in.Pod.Labels, "busy")
	in.Pod.Status.Conditions = in.Pod.Status.Conditions[:1]
}

// healthy returns an input in which everything is as it should be.
func healthy() explanation.Input {
	in := explanation.Input{
		Namespace: "ns", Name: "worker-0", Pod: marked(), Markers: []*v1alpha1.PodProbeMarker{marker("worker", busy())},
		Node:            &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		SystemNamespace: "seamark-system", Now: now(), Unread: map[permission.Resource]permission.Missing{},
		Agent: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "seamark-agent-x"},
			Status: corev1.PodStatus{
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "agent", ContainerID: "containerd://2"}},
			},
		},
		Lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("manager-1"), LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: now().Add(-2 * time.Second)},
		}},
	}
	replan(&in)
	report(&in, v1alpha1.ProbeSucceeded, "job 7")
	return in
}

// runs replaces the marker by one with the probe, which is planned.
func runs(in *explanation.Input, probe *builders.ProbeBuilder) {
	in.Markers = []*v1alpha1.PodProbeMarker{marker("worker", probe)}
	replan(in)
}

// replan writes the plan as the manager does, and the agent runs it.
func replan(in *explanation.Input) {
	var markers []*plan.Marker
	for _, m := range in.Markers {
		if compiled, err := plan.Compile(m); err == nil {
			markers = append(markers, compiled)
		}
	}
	in.Plan = &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Generation: 4, CreationTimestamp: ago(time.Hour)},
		Spec:       plan.Node([]*corev1.Pod{in.Pod}, markers, plan.KubernetesDefaults()),
		Status:     v1alpha1.NodePodProbeStatus{ObservedGeneration: 4, ProbeReports: true},
	}
}

// report writes the same state for all planned probes.
func report(in *explanation.Input, state v1alpha1.ProbeState, message string) {
	pod := seamarkv1alpha1.PodReport{Namespace: "ns", Name: in.Name, UID: string(in.Pod.UID)}
	for _, planned := range in.Plan.Spec.PodProbes {
		for _, p := range planned.Probes {
			pod.Probes = append(pod.Probes, v1alpha1.ContainerProbeState{
				Name: p.Name, Plan: p.Plan, State: state, Message: message, LastProbeTime: ago(5 * time.Minute), LastTransitionTime: ago(5 * time.Minute),
			})
		}
	}
	in.Slices = []*seamarkv1alpha1.ProbeReport{{ObjectMeta: metav1.ObjectMeta{Name: "node-1.0"}, NodeName: "node-1", Pods: []seamarkv1alpha1.PodReport{pod}}}
}

// unreported removes the states and the marks.
func unreported(in *explanation.Input) {
	in.Slices = nil
	unmark(in)
}

// failed reports a failure and marks the pod accordingly.
func failed(in *explanation.Input, message string) {
	report(in, v1alpha1.ProbeFailed, message)
	delete(in.Pod.Labels, "busy")
	in.Pod.Status.Conditions[1].Status, in.Pod.Status.Conditions[1].Message = corev1.ConditionFalse, message
	in.Pod.ManagedFields[0].FieldsV1 = ownsCondition()
}
