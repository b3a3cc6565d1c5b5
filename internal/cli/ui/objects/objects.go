// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects reads the problems of SidecarSets with the permissions of a user, for the list of
// problems on the web page.
package objects

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
)

const (
	// page is the number of sets in one response: etcd stores at most 1.5 MiB of each.
	page = 100
	// maxProblems is the maximum number of problems that are shown.
	maxProblems = 100
)

// Problems returns the problems of SidecarSets, at most 100, the smallest names first. There are none if the
// cluster has no SidecarSets, or if the user may not list them.
func Problems(ctx context.Context, reader client.Reader) ([]model.ObjectProblem, error) {
	found := []model.ObjectProblem{}
	for token := ""; ; {
		var sets v1alpha1.SidecarSetList
		err := reader.List(ctx, &sets, client.Limit(page), client.Continue(token))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list SidecarSets: %w", err)
		}
		for i := range sets.Items {
			found = append(found, problemsOf(&sets.Items[i])...)
		}
		if token = sets.Continue; token == "" || len(found) >= maxProblems {
			return found[:min(len(found), maxProblems)], nil
		}
	}
}

func problemsOf(set *v1alpha1.SidecarSet) []model.ObjectProblem {
	var found []model.ObjectProblem
	for _, condition := range set.Status.Conditions {
		if condition.Status == metav1.ConditionFalse && !accept.Intended(condition.Reason) {
			found = append(found, model.ObjectProblem{
				Kind: "SidecarSet", Name: set.Name, Reason: condition.Reason, Message: text.Message(condition.Message),
			})
		}
	}
	return found
}
