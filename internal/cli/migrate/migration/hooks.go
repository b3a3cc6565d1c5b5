// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/program/kinds"
)

// hook is what is checked of the objects of a kind besides their schema. Fields may be empty.
type hook struct {
	// check checks the objects of the kind, in place of checkSets.
	check func(ctx context.Context, c Cluster, objects []*unstructured.Unstructured) ([]Finding, error)
	// sets returns what the checks of sets need, without those that do not have the form of their kind.
	sets func(objects []*unstructured.Unstructured) []*set
	// versions are those in which the objects of a cluster are read, the preferred one first. The default is the stored one.
	versions []string
	// converting is how the fields of a version that Seamark does not serve differ.
	converting map[string]string
}

// hooks returns the hooks by kind.
func hooks() map[string]hook {
	return map[string]hook{
		"CloneSet":     {sets: cloneSetsOf, converting: cloneSetVersions()},
		"StatefulSet":  {sets: statefulSetsOf},
		"DaemonSet":    {check: checkDaemonSets, sets: daemonSetsOf},
		"SidecarSet":   {check: checkSidecarSets},
		"BroadcastJob": {check: checkBroadcastJobs},
		"ImagePullJob": {check: checkImagePullJobs},
		// OpenKruise cannot convert objects with imageListPullJobTemplate to v1alpha1. Its versions before 1.9 have v1alpha1 only.
		"AdvancedCronJob": {check: checkAdvancedCronJobs, versions: []string{v1beta1.GroupVersion().Version, v1alpha1.GroupVersion().Version}},
	}
}

// Versions returns the versions in which the objects of a kind are read from a cluster, the preferred one first.
func Versions(kind *kinds.Kind) []string {
	if versions := hooks()[kind.Kind].versions; versions != nil {
		return versions
	}
	return []string{kind.Version}
}

// checkSets returns the findings about sets that their CRD refuses, or whose selectors a marker changes.
func checkSets(ctx context.Context, c Cluster, objects []*unstructured.Unstructured) ([]Finding, error) {
	return checkWorkloads(ctx, objects, c.Markers)
}

// setsOf returns the sets that have the form of their kinds. The schema reports what is wrong with the others.
func setsOf(c Cluster) []*set {
	var found []*set
	for _, kind := range kinds.Table() {
		if of := hooks()[kind.Kind].sets; of != nil {
			found = append(found, of(c.Objects[kind.Kind])...)
		}
	}
	return found
}
