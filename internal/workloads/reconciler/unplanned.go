// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unplanned reports to users why no step could be planned: it writes the status if it changed, and
// then records an event, so that the same reason is reported once. Before and after are pointers to
// the status of the set and to that with the reason. It returns the reason, so that the set is tried
// again with a backoff.
func (b *Base) Unplanned(ctx context.Context, set client.Object, reason error, before, after any) error {
	status := Status{Before: before, After: after}
	if !b.differs(set, status) {
		return reason
	}
	switch err := b.publish(ctx, set, status); {
	case err == nil:
		b.Recorder.Event(set, corev1.EventTypeWarning, "FailedScale", reason.Error())
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
		return errors.Join(reason, err)
	}
	return reason
}
