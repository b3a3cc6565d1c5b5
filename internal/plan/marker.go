// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// Marker is a PodProbeMarker made ready to match pods: its selector is compiled, and
// its probes have their identities. It is valid for one generation of the marker and
// must not be changed.
type Marker struct {
	// Namespace is the namespace whose pods the marker selects.
	Namespace string
	// Name is the marker's name.
	Name string
	// Deleting is whether the marker is being deleted. Such a marker selects nothing.
	Deleting bool

	selector labels.Selector
	probes   []source
}

// source is one probe of a marker, with its identity in both forms.
type source struct {
	id   probeid.ID
	wire string
	spec *v1alpha1.PodContainerProbe
}

// Compile makes m ready to match pods. It returns an error where the marker can't be
// followed: a selector that is missing, empty or invalid, a probe name that is empty,
// repeated or holds a "#", a condition type that Kubernetes itself sets, and a policy with
// one of the annotations that hand probes to providers. The CRD refuses all but the last,
// so the others come only from an API server with other rules.
func Compile(m *v1alpha1.PodProbeMarker) (*Marker, error) {
	selector, err := compileSelector(m.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	compiled := &Marker{
		Namespace: m.Namespace,
		Name:      m.Name,
		Deleting:  m.DeletionTimestamp != nil,
		selector:  selector,
		probes:    make([]source, 0, len(m.Spec.Probes)),
	}
	seen := make(map[probeid.ID]bool, len(m.Spec.Probes))
	for i := range m.Spec.Probes {
		spec := &m.Spec.Probes[i]
		id := probeid.ID{Marker: m.Name, Probe: spec.Name}
		if parsed, err := probeid.Parse(id.String()); err != nil || parsed != id {
			return nil, fmt.Errorf("spec.probes[%d].name: %q is empty or holds a #", i, spec.Name)
		}
		if seen[id] {
			return nil, fmt.Errorf("spec.probes[%d].name: %q is taken by a probe before it", i, spec.Name)
		}
		if v1alpha1.IsNativePodCondition(corev1.PodConditionType(spec.PodConditionType)) {
			return nil, fmt.Errorf("spec.probes[%d].podConditionType: %q is set by Kubernetes itself", i, spec.PodConditionType)
		}
		if err := checkAnnotations(spec.MarkerPolicy); err != nil {
			return nil, fmt.Errorf("spec.probes[%d].%w", i, err)
		}
		seen[id] = true
		compiled.probes = append(compiled.probes, source{id: id, wire: id.String(), spec: spec})
	}
	return compiled, nil
}

func compileSelector(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return nil, errors.New("needs at least one label or expression")
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("compiling it: %w", err)
	}
	return compiled, nil
}

// checkAnnotations returns an error where a policy sets what Seamark sets for providers:
// the two would overwrite each other for ever.
func checkAnnotations(policies []v1alpha1.ProbeMarkerPolicy) error {
	for i := range policies {
		for _, key := range []string{v1alpha1.PodProbeMarkerAnnotationKey, v1alpha1.PodProbeMarkerListAnnotationKey} {
			if _, found := policies[i].Annotations[key]; found {
				return fmt.Errorf("markerPolicy[%d].annotations: %s is set by Seamark itself, choose another key", i, key)
			}
		}
	}
	return nil
}

// Key names the marker.
func (m *Marker) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// Selects tells whether the marker's selector picks pod, whatever the pod's state.
func (m *Marker) Selects(pod *corev1.Pod) bool {
	return !m.Deleting && m.Namespace == pod.Namespace && m.selector.Matches(labels.Set(pod.Labels))
}
