// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// PrunedFields returns the paths of the fields of a marker with these probes that OpenKruise's CRD does
// not have, in alphabetical order.
func PrunedFields(probes []v1alpha1.PodContainerProbe) []string {
	var fields []string
	for _, finding := range pruned(&unstructured.Unstructured{}, probes) {
		fields = append(fields, finding.Field)
	}
	slices.Sort(fields)
	return fields
}

// pruned returns the fields of the marker that the API server removes with OpenKruise's CRD.
func pruned(object *unstructured.Unstructured, probes []v1alpha1.PodContainerProbe) []Finding {
	var found []Finding
	add := func(set bool, field, effect, does, advice string) {
		if set {
			found = append(found, findingOf(Changes, object, "spec."+field,
				"removes the field at the next write of the marker: "+effect, does, advice))
		}
	}
	for i := range probes {
		probe, path := &probes[i], fmt.Sprintf("probes[%d]", i)
		add(probe.StaleAfterSeconds != nil, path+".staleAfterSeconds",
			"the marks of a lost node stay as they are", "changes the state to Unknown", "")
		add(probe.StartupPolicy == v1alpha1.StartupWait, path+".startupPolicy",
			"the probe runs before the container has started", "waits for the startup probe of the container", "")
		for name, value := range map[string]int32{
			"periodMilliseconds": probe.Probe.PeriodMilliseconds, "timeoutMilliseconds": probe.Probe.TimeoutMilliseconds,
		} {
			add(value != 0, path+".probe."+name, "the probe runs by the seconds", fmt.Sprintf("runs the probe with %d ms", value),
				"remove the field, and set the time in seconds")
		}
		for j := range probe.MarkerPolicy {
			policy, path := &probe.MarkerPolicy[j], fmt.Sprintf("%s.markerPolicy[%d]", path, j)
			const effect, does, advice = "the keys are not set", "sets the keys to values from messages", "use labels and annotations with fixed values"
			add(len(policy.LabelsFrom) > 0, path+".labelsFrom", effect, does, advice)
			add(len(policy.AnnotationsFrom) > 0, path+".annotationsFrom", effect, does, advice)
			add(policy.Exclusive != nil, path+".exclusive",
				"several pods may have the keys", "sets the keys on one pod", "make sure that one pod at most has the state")
		}
	}
	return found
}

// prunedBack returns the fields of the set that OpenKruise has after 1.9 only: the API server removes them with the CRDs of
// 1.9. What they set has another form that all releases have.
func (s *set) prunedBack() []Finding {
	var found []Finding
	for _, path := range [][]string{{"updateStrategy", "inPlaceUpdateStrategy"}, {"updateStrategy", "rollingUpdate", "inPlaceUpdateStrategy"}} {
		strategy, _, _ := unstructured.NestedMap(s.object.Object, append([]string{"spec"}, path...)...)
		for field, annotation := range map[string]string{
			"imagePreDownloadParallelism":         v1alpha1.PreDownloadParallelismKey,
			"imagePreDownloadTimeoutSeconds":      v1alpha1.PreDownloadTimeoutKey,
			"imagePreDownloadMinUpdatedReadyPods": v1alpha1.PreDownloadMinUpdatedReadyKey,
		} {
			if strategy[field] != nil {
				found = append(found, s.finding(Changes, "spec."+strings.Join(path, ".")+"."+field,
					"1.9 removes the field at the next write of the set", "uses it for pulls before updates", "set the annotation "+annotation))
			}
		}
	}
	if excludes, _, _ := unstructured.NestedBool(s.object.Object, "spec", "scaleStrategy", "excludePreparingDelete"); excludes {
		found = append(found, s.finding(Changes, "spec.scaleStrategy.excludePreparingDelete", "1.9 removes the field at the next write of the set",
			"does not count pods in the state PreparingDelete as replicas", `set the label `+v1alpha1.CloneSetScalingExcludePreparingDeleteKey+`: "true"`))
	}
	return found
}
