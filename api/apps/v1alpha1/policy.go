// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"slices"
)

// LabelKeys returns the sorted keys of the labels that the policy sets, with a value of its own or of
// a message.
func (p *ProbeMarkerPolicy) LabelKeys() []string { return keysOf(p.Labels, p.LabelsFrom) }

// AnnotationKeys returns the sorted keys of the annotations that the policy sets, with a value of its
// own or of a message.
func (p *ProbeMarkerPolicy) AnnotationKeys() []string {
	return keysOf(p.Annotations, p.AnnotationsFrom)
}

func keysOf(values map[string]string, from []ValueSource) []string {
	keys := slices.Collect(maps.Keys(values))
	for i := range from {
		keys = append(keys, from[i].Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
