// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// MarkerBuilder builds a PodProbeMarker.
type MarkerBuilder struct{ marker v1alpha1.PodProbeMarker }

// Marker starts a marker that selects the pods with the label app=game, at generation
// 1, with the UID "uid-<name>" and no probes.
func Marker(namespace, name string) *MarkerBuilder {
	return &MarkerBuilder{marker: v1alpha1.PodProbeMarker{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1,
		},
		Spec: v1alpha1.PodProbeMarkerSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}},
		},
	}}
}

// Selector replaces the selector by one label.
func (b *MarkerBuilder) Selector(key, value string) *MarkerBuilder {
	b.marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	return b
}

// Deleting sets the deletion timestamp and Seamark's finalizer.
func (b *MarkerBuilder) Deleting() *MarkerBuilder {
	b.marker.DeletionTimestamp = &metav1.Time{Time: metav1.Unix(1, 0).Time}
	b.marker.Finalizers = []string{v1alpha1.PodProbeMarkerFinalizer}
	return b
}

// Generation replaces the generation.
func (b *MarkerBuilder) Generation(generation int64) *MarkerBuilder {
	b.marker.Generation = generation
	return b
}

// Annotation adds an annotation.
func (b *MarkerBuilder) Annotation(key, value string) *MarkerBuilder {
	metav1.SetMetaDataAnnotation(&b.marker.ObjectMeta, key, value)
	return b
}

// Probe adds a probe.
func (b *MarkerBuilder) Probe(probe *ProbeBuilder) *MarkerBuilder {
	b.marker.Spec.Probes = append(b.marker.Spec.Probes, *probe.Build())
	return b
}

// Unsaved removes the fields that the API server sets: UID and generation.
func (b *MarkerBuilder) Unsaved() *MarkerBuilder {
	b.marker.UID, b.marker.Generation = "", 0
	return b
}

// Build returns the marker.
func (b *MarkerBuilder) Build() *v1alpha1.PodProbeMarker { return b.marker.DeepCopy() }

// ProbeBuilder builds one probe of a marker.
type ProbeBuilder struct{ probe v1alpha1.PodContainerProbe }

// Probe starts a probe of the container "main" that runs the command /probe and
// declares no marks.
func Probe(name string) *ProbeBuilder {
	return &ProbeBuilder{probe: v1alpha1.PodContainerProbe{
		Name:          name,
		ContainerName: "main",
		Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/probe"}}},
		}},
	}}
}

// Container replaces the container's name.
func (b *ProbeBuilder) Container(name string) *ProbeBuilder {
	b.probe.ContainerName = name
	return b
}

// Handler replaces the handler.
func (b *ProbeBuilder) Handler(handler corev1.ProbeHandler) *ProbeBuilder {
	b.probe.Probe.ProbeHandler = handler
	return b
}

// Times replaces the period and the timeout, in seconds.
func (b *ProbeBuilder) Times(period, timeout int32) *ProbeBuilder {
	b.probe.Probe.PeriodSeconds, b.probe.Probe.TimeoutSeconds = period, timeout
	return b
}

// Condition sets the type of the pod condition that carries the result.
func (b *ProbeBuilder) Condition(conditionType string) *ProbeBuilder {
	b.probe.PodConditionType = conditionType
	return b
}

// StaleAfter sets the seconds after which the state is stale.
func (b *ProbeBuilder) StaleAfter(seconds int32) *ProbeBuilder {
	b.probe.StaleAfterSeconds = &seconds
	return b
}

// WaitForStarted makes the probe wait for the startup probe of its container.
func (b *ProbeBuilder) WaitForStarted() *ProbeBuilder {
	b.probe.StartupPolicy = v1alpha1.StartupWait
	return b
}

// Label adds a label to the policy of the state.
func (b *ProbeBuilder) Label(state v1alpha1.ProbeState, key, value string) *ProbeBuilder {
	set(&b.policy(state).Labels, key, value)
	return b
}

// LabelFrom adds a label with a value from the message to the policy of the state.
func (b *ProbeBuilder) LabelFrom(state v1alpha1.ProbeState, source v1alpha1.ValueSource) *ProbeBuilder {
	policy := b.policy(state)
	policy.LabelsFrom = append(policy.LabelsFrom, source)
	return b
}

// Annotation adds an annotation to the policy of the state.
func (b *ProbeBuilder) Annotation(state v1alpha1.ProbeState, key, value string) *ProbeBuilder {
	set(&b.policy(state).Annotations, key, value)
	return b
}

func (b *ProbeBuilder) policy(state v1alpha1.ProbeState) *v1alpha1.ProbeMarkerPolicy {
	for i := range b.probe.MarkerPolicy {
		if b.probe.MarkerPolicy[i].State == state {
			return &b.probe.MarkerPolicy[i]
		}
	}
	b.probe.MarkerPolicy = append(b.probe.MarkerPolicy, v1alpha1.ProbeMarkerPolicy{State: state})
	return &b.probe.MarkerPolicy[len(b.probe.MarkerPolicy)-1]
}

// Build returns the probe.
func (b *ProbeBuilder) Build() *v1alpha1.PodContainerProbe { return b.probe.DeepCopy() }

// Milliseconds sets the period and the timeout of the probe in milliseconds.
func (b *ProbeBuilder) Milliseconds(period, timeout int32) *ProbeBuilder {
	b.probe.Probe.PeriodMilliseconds, b.probe.Probe.TimeoutMilliseconds = period, timeout
	return b
}

// Exclusive makes the policy of the state exclusive.
func (b *ProbeBuilder) Exclusive(state v1alpha1.ProbeState, exclusive v1alpha1.ExclusivePolicy) *ProbeBuilder {
	b.policy(state).Exclusive = &exclusive
	return b
}
