// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkImagePullJobs returns the findings about ImagePullJobs. Those that have ended stay as they are, whatever they have.
func checkImagePullJobs(ctx context.Context, _ Cluster, objects []*unstructured.Unstructured) ([]Finding, error) {
	var open []*unstructured.Unstructured
	for _, object := range objects {
		if ended, _, _ := unstructured.NestedString(object.Object, "status", "completionTime"); ended == "" {
			open = append(open, object)
		}
	}
	found, err := checkWorkloads(ctx, open, nil)
	for _, object := range open {
		if object.GetNamespace() == excludedNamespace {
			found = append(found, findingOf(Blocks, object, "metadata.namespace", "pulls without pods", "may not create the pods of pulls in "+excludedNamespace+" by default",
				"create the job in another namespace, or install Seamark with workloads.excludedNamespaces without "+excludedNamespace))
		}
	}
	return found, err
}
