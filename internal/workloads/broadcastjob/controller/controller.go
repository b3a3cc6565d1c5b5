// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller runs BroadcastJobs.
package controller

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/nodejob"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

type (
	job    = v1alpha1.BroadcastJob
	status = v1alpha1.BroadcastJobStatus
)

// taken are names of pods that belong to others.
type taken map[string]bool

// Controller runs BroadcastJobs.
type Controller = nodejob.Controller[*job, status, taken]

// New returns the controller.
func New(options nodejob.Options) *Controller {
	return nodejob.New(nodejob.Descriptor[*job, status, taken]{
		GroupVersionKind: broadcastjob.Kind(),
		New:              func() *job { return &job{} },
		Status:           func(j *job) *status { return &j.Status },
		Conditions:       func(s *status) *[]metav1.Condition { return &s.Conditions },
		Created:          v1alpha1.BroadcastJobPodsCreated,
		Ended:            broadcastjob.Ended,
		Plan: func(j *job, pods []*corev1.Pod, names *taken, left int) (broadcastjob.Plan, error) {
			return broadcastjob.New(broadcastjob.Input{
				Job: j, Nodes: reconciler.All[*corev1.Node](options.Stores.Nodes), Pods: pods, Left: left, Taken: *names, Now: options.Now(),
				Guards: reconciler.Guards(options.Stores.Budgets, j.Namespace),
			}), nil
		},
		Learn: learn,
		Sources: func(informers cache.Cache) []source.Source {
			return []source.Source{reconciler.GuardSource(informers, options.Stores.Budgets, reconciler.EnqueueNamespace(options.Stores.Sets))}
		},
	}, options)
}

// learn records which names belong to others.
func learn(names *taken, _ *broadcastjob.Plan, outcome *apply.Outcome) bool {
	before := len(*names)
	if *names == nil {
		*names = taken{}
	}
	for _, name := range outcome.Taken {
		(*names)[name] = true
	}
	differs := len(*names) > before || len(outcome.Written) > 0
	for _, name := range outcome.Written {
		delete(*names, name)
	}
	return differs
}
