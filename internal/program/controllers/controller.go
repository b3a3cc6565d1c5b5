// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers runs controllers: with a time limit, fair queues and back-off. It turns events
// into entries of their queues.
package controllers

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/internal/program/logging"
)

// timeout limits one reconcile if the connection to the API server hangs.
const timeout = 30 * time.Second

// Add runs r under the manager, with at most concurrency reconciles at a time. It watches
// the sources only while the manager leads: a queue that no worker empties would keep the
// name of every object that ever changed. The caches of every manager are synced, so a new
// leader starts with an event for every object. Failures are retried with a back-off per
// object from 10 milliseconds to 30 seconds; there is no overall limit. The namespaces of pods
// and sets are served in turn, so that one with many changes does not delay the others. Each log line of a
// reconcile names its subject.
func Add(mgr manager.Manager, name string, subject Subject, r reconcile.Reconciler, concurrency int, sources ...source.Source) error {
	options := controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: concurrency,
		ReconciliationTimeout:   timeout,
		LogConstructor:          subject.logs(mgr.GetLogger().WithValues("controller", name)),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			10*time.Millisecond, 30*time.Second),
	}
	if subject == SubjectPod || subject == SubjectSet {
		options.NewQueue = newFairQueue
	}
	c, err := controller.New(name, mgr, options)
	if err != nil {
		return fmt.Errorf("create controller %s: %w", name, err)
	}
	for _, src := range sources {
		if err := c.Watch(src); err != nil {
			return fmt.Errorf("add watch to controller %s: %w", name, err)
		}
	}
	return nil
}

// Subject is what the requests of a controller name. It is a key in log lines.
type Subject string

// The subjects. Pods are named namespace/name.
const (
	SubjectNode      Subject = "node"
	SubjectPod       Subject = "pod"
	SubjectNamespace Subject = "namespace"
	SubjectSet       Subject = "set"
)

// logs returns the constructor of the logger of a request. A nil request stands for the
// start and end of the controller.
func (s Subject) logs(log logr.Logger) func(*reconcile.Request) logr.Logger {
	return func(request *reconcile.Request) logr.Logger {
		switch {
		case request == nil:
			return log.V(logging.Decisions)
		case request.Namespace == "":
			return log.WithValues(string(s), request.Name)
		default:
			return log.WithValues(string(s), request.String())
		}
	}
}
