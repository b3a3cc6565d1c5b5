// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The lease times are those of the managers.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = time.Second
)

// errLost means that another process acquired the lease during the work.
var errLost = errors.New("lost the lease")

// withLease does the work while it holds the managers' lease, so that no manager writes again
// what the work removes. A manager that shuts down releases the lease after its last write.
func (u *uninstaller) withLease(ctx context.Context, work func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	elected, done := make(chan struct{}), make(chan error, 1)
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: u.Namespace, Name: u.Name},
		Client:     u.kubernetes.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: u.Identity},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				close(elected)
				u.say("Acquired lease %s/%s: no manager is writing.", u.Namespace, u.Name)
				done <- work(ctx)
				stop()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("prepare to acquire lease %s/%s: %w", u.Namespace, u.Name, err)
	}
	elector.Run(ctx)
	lost := ctx.Err() == nil
	select {
	case <-elected:
	default:
		return fmt.Errorf("acquire lease %s/%s, held by %q: %w", u.Namespace, u.Name, elector.GetLeader(), context.Cause(ctx))
	}
	err = <-done
	if err != nil && lost {
		return errors.Join(errLost, err)
	}
	return err
}

// deleteLease deletes a lease, which no process uses anymore.
func (u *uninstaller) deleteLease(ctx context.Context, name string) error {
	err := u.kubernetes.CoordinationV1().Leases(u.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete lease %s/%s: %w", u.Namespace, name, err)
	}
	return nil
}
