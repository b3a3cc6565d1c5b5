// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clientmetrics "k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// useLibraries makes the libraries' metrics have series: a controller runs once, a lease
// is waited for, a request is counted.
func useLibraries(ctx context.Context) error {
	clientmetrics.RequestResult.Increment(ctx, "200", "GET", "host")
	callbacks := leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}}
	_, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: "seamark-manager", Callbacks: callbacks,
		Lock:          &resourcelock.LeaseLock{LockConfig: resourcelock.ResourceLockConfig{Identity: "one"}},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second,
	})
	if err != nil {
		return fmt.Errorf("waiting for a lease: %w", err)
	}
	return reconcileOnce(ctx)
}

func reconcileOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	done := make(chan struct{})
	c, err := controller.NewTypedUnmanaged("podmark", controller.TypedOptions[reconcile.Request]{
		LogConstructor: func(*reconcile.Request) logr.Logger { return logr.Discard() },
		Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			close(done)
			cancel()
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		return fmt.Errorf("making a controller: %w", err)
	}
	err = c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	}))
	if err != nil {
		return fmt.Errorf("watching for a controller: %w", err)
	}
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("running a controller: %w", err)
	}
	select {
	case <-done:
		return nil
	default:
		return fmt.Errorf("running a controller: it has not reconciled within a minute")
	}
}
