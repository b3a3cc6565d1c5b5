// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// checkBroadcastJobs returns the findings about BroadcastJobs. Those that have ended stay as they are.
func checkBroadcastJobs(ctx context.Context, _ Cluster, objects []*unstructured.Unstructured) ([]Finding, error) {
	found, err := checkWorkloads(ctx, objects, nil)
	for _, object := range objects {
		job := &v1alpha1.BroadcastJob{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, job) != nil || job.Status.CompletionTime != nil {
			continue
		}
		found = append(found, applying(
			rule{job.Namespace == excludedNamespace, findingOf(Blocks, object, "metadata.namespace", "creates the pods",
				"may not create pods in "+excludedNamespace+" by default", "install Seamark with workloads.excludedNamespaces without "+excludedNamespace)},
			rule{true, findingOf(Changes, object, "spec.template", "runs no pod on nodes that are cordoned, not ready or too small",
				"runs one on cordoned nodes, waits five minutes for nodes that are not ready, and a pod for a node that is too small waits",
				"select the nodes with nodeSelector")},
			rule{isStepped(job), findingOf(Changes, object, "spec.parallelism", "creates the next pod when one has succeeded",
				"creates the next pods when all that run have succeeded", "set failurePolicy.type: Continue if nodes need not wait for each other")},
		)...)
	}
	return found, err
}

// isStepped reports whether nodes are taken in steps. OpenKruise writes the highest number if there is no limit.
func isStepped(job *v1alpha1.BroadcastJob) bool {
	limit := job.Spec.Parallelism
	return limit != nil && limit.String() != "2147483647" && limit.String() != "1" && job.Spec.FailurePolicy.Type != v1alpha1.BroadcastJobContinue
}
