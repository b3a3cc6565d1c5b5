// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serverless says what the provider of a virtual kubelet is told of one pod: the
// two annotations that hand it the pod's probes. The provider runs them and writes the
// pod conditions that they name. It is a pure function of the pod and of the markers.
//
// What holds for every pod:
//   - the same pod and markers, in any order, give the same bytes;
//   - a condition type belongs to one probe, the first that names it in the order of
//     marker names and of probes in a marker;
//   - a probe is handed over in its marker's own words: unset fields stay unset and named
//     ports stay names, so that the provider's defaults are in force.
package serverless

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/plan"
)

// The reasons for which a provider gets less than an agent would.
const (
	// ConditionTypeMissing means that the probe names no pod condition, by which alone a
	// provider can tell its result.
	ConditionTypeMissing plan.Reason = "ConditionTypeMissing"
	// ConditionTypeTaken means that a probe before it names the same pod condition.
	ConditionTypeTaken plan.Reason = "ConditionTypeTaken"
)

// Annotations are the values of the two annotations. A pod has both or neither, for which
// both are empty.
type Annotations struct {
	// Probes is the value of v1alpha1.PodProbeMarkerAnnotationKey.
	Probes string
	// Markers is the value of v1alpha1.PodProbeMarkerListAnnotationKey.
	Markers string
}

// Of returns the annotations that the pod has.
func Of(pod *corev1.Pod) Annotations {
	return Annotations{
		Probes:  pod.Annotations[v1alpha1.PodProbeMarkerAnnotationKey],
		Markers: pod.Annotations[v1alpha1.PodProbeMarkerListAnnotationKey],
	}
}

// Names tells whether the marker is among those that the annotations name.
func (a Annotations) Names(marker string) bool {
	return slices.Contains(strings.Split(a.Markers, ","), marker)
}

// Size returns how many bytes the annotations are, as the API server counts them against
// the limit of an object's annotations.
func (a Annotations) Size() int {
	if a == (Annotations{}) {
		return 0
	}
	return len(v1alpha1.PodProbeMarkerAnnotationKey) + len(a.Probes) +
		len(v1alpha1.PodProbeMarkerListAnnotationKey) + len(a.Markers)
}

// Compile returns the probes that a provider runs in the pod, in the order of the markers'
// names and of the probes in a marker, and those that are left out. It asks neither
// whether the pod is on a virtual kubelet nor what state the pod is in. The defaults bear
// on nothing that is handed over.
func Compile(pod *corev1.Pod, markers []*plan.Marker, defaults plan.Defaults) plan.PodPlan {
	selected := plan.Selected(pod, markers, defaults)
	handed := plan.PodPlan{Problems: selected.Problems}
	taken := make(map[string]bool, len(selected.Probes))
	for _, probe := range selected.Probes {
		conditionType := probe.Source.PodConditionType
		switch {
		case conditionType == "":
			handed.Problems = append(handed.Problems, leftOut(pod, probe, ConditionTypeMissing))
		case taken[conditionType]:
			handed.Problems = append(handed.Problems, leftOut(pod, probe, ConditionTypeTaken))
		default:
			taken[conditionType] = true
			handed.Probes = append(handed.Probes, probe)
		}
	}
	return handed
}

func leftOut(pod *corev1.Pod, probe plan.PlannedProbe, reason plan.Reason) plan.Problem {
	return plan.Problem{
		ID: probe.ID, Namespace: pod.Namespace, Pod: pod.Name, Container: probe.Source.ContainerName, Reason: reason,
	}
}

// Encode returns the annotations of the probes that Compile returned. It returns an error
// where a probe can't be encoded, which no probe that came from the API server is.
func Encode(probes []plan.PlannedProbe) (Annotations, error) {
	if len(probes) == 0 {
		return Annotations{}, nil
	}
	handed := make([]v1alpha1.PodContainerProbe, 0, len(probes))
	var markers []string
	for _, probe := range probes {
		source := *probe.Source
		source.MarkerPolicy = nil
		handed = append(handed, source)
		if !slices.Contains(markers, probe.ID.Marker) {
			markers = append(markers, probe.ID.Marker)
		}
	}
	encoded, err := json.Marshal(handed)
	if err != nil {
		return Annotations{}, fmt.Errorf("encoding the probes for a provider: %w", err)
	}
	return Annotations{Probes: string(encoded), Markers: strings.Join(markers, ",")}, nil
}
