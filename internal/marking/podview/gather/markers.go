// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// MarkerLabelIndex is the name of the index of markers by a label that their pods have.
const MarkerLabelIndex = "label"

// MarkerIndexers returns the index of markers by namespace and one label that their selector requires, so
// that the markers of a pod are found among those of its labels. Markers without such a label are those of
// the namespace alone.
func MarkerIndexers() toolscache.Indexers {
	return toolscache.Indexers{MarkerLabelIndex: func(object any) ([]string, error) {
		marker, ok := object.(*v1alpha1.PodProbeMarker)
		if !ok {
			return nil, nil
		}
		if key, value, required := requiredLabel(marker.Spec.Selector); required {
			return []string{labelKey(marker.Namespace, key, value)}, nil
		}
		return []string{marker.Namespace}, nil
	}}
}

// requiredLabel returns a label that all selected pods have. It is the longest one, because a longer name
// tells more pods apart.
func requiredLabel(selector *metav1.LabelSelector) (key, value string, required bool) {
	if selector == nil {
		return "", "", false
	}
	for k, v := range selector.MatchLabels {
		if cmp.Or(len(k)+len(v)-len(key)-len(value), strings.Compare(key, k)) > 0 {
			key, value, required = k, v, true
		}
	}
	return key, value, required
}

// labelKey returns the value of a label in MarkerLabelIndex.
func labelKey(namespace, key, value string) string { return namespace + "/" + key + "=" + value }

// labelKeys returns the values of the labels in MarkerLabelIndex, and that of markers that require none, each once:
// a marker has one of them.
func labelKeys(namespace string, of []map[string]string) []string {
	keys := []string{namespace}
	for i, labels := range of {
		for key, value := range labels {
			isIn := func(other map[string]string) bool { text, found := other[key]; return found && text == value }
			if !slices.ContainsFunc(of[:i], isIn) {
				keys = append(keys, labelKey(namespace, key, value))
			}
		}
	}
	return keys
}
