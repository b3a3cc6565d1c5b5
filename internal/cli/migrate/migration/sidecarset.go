// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
)

// checkSidecarSets returns the findings about SidecarSets. A schema cannot check annotations, and sees one set. Which
// annotations of pods are allowed is not known.
func checkSidecarSets(ctx context.Context, _ Cluster, objects []*unstructured.Unstructured) ([]Finding, error) {
	found, err := checkWorkloads(ctx, objects, nil)
	var accepted []*v1alpha1.SidecarSet
	for _, object := range objects {
		for _, key := range []string{"apps.kruise.io/sidecarset-canary", "apps.kruise.io/sidecarset-base"} {
			if _, canary := object.GetAnnotations()[key]; canary {
				found = append(found, findingOf(Blocks, object, "metadata.annotations["+key+"]", "injects a part of the pods",
					"refuses the pods that the set selects", "use spec.injectionStrategy.revision and spec.updateStrategy.partition"))
			}
		}
		set := &v1alpha1.SidecarSet{}
		// The schema has found a value that does not have the type.
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, set) != nil || set.Spec.Selector == nil {
			continue
		}
		set.UID = types.UID(set.Name)
		problems := accept.Check(set, accepted, accept.WhiteList{DefaultAllowed: true})
		for _, problem := range problems {
			found = append(found, findingOf(Blocks, object, problem.Field, injects, "does not accept the set: "+problem.Message, "change the set"))
		}
		if len(problems) == 0 {
			accepted = append(accepted, set)
		}
	}
	return found, err
}
