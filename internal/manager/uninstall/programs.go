// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
)

const (
	pollInterval = 500 * time.Millisecond
	// unreachableDelay is the time after the end of the grace period at which a pod that
	// still exists is considered terminated: its node is unreachable.
	unreachableDelay = 10 * time.Second
)

// stop scales a Deployment to zero and waits until its pods have terminated. It reports whether
// the Deployment exists.
func (u *uninstaller) stop(ctx context.Context, name string) (bool, error) {
	scale := &autoscalingv1.Scale{}
	err := u.kubernetes.AppsV1().RESTClient().Patch(types.MergePatchType).
		Namespace(u.Namespace).Resource("deployments").Name(name).SubResource("scale").
		Body([]byte(`{"spec":{"replicas":0}}`)).Do(ctx).Into(scale)
	switch {
	case apierrors.IsNotFound(err):
		u.say("Deployment %s/%s does not exist.", u.Namespace, name)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("scale Deployment %s/%s to 0: %w", u.Namespace, name, err)
	}
	u.say("Scaled Deployment %s/%s to 0.", u.Namespace, name)
	return true, poll(ctx, func(ctx context.Context) (string, error) {
		pods, err := u.kubernetes.CoreV1().Pods(u.Namespace).List(ctx, metav1.ListOptions{LabelSelector: scale.Status.Selector})
		if err != nil {
			return "", fmt.Errorf("list the pods of Seamark: %w", err)
		}
		for i := range pods.Items {
			if !ended(&pods.Items[i], time.Now()) {
				return fmt.Sprintf("pod %s/%s to terminate", u.Namespace, pods.Items[i].Name), nil
			}
		}
		return "", nil
	})
}

func ended(pod *corev1.Pod, now time.Time) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
		pod.DeletionTimestamp != nil && now.After(pod.DeletionTimestamp.Add(unreachableDelay))
}

// awaitLease waits until no manager holds the lease: managers outside the Deployment or on an
// unreachable node may still run. A manager that shuts down releases the lease after its last
// write; a lease that is not renewed for its duration has expired. Clocks of holders may differ
// from this one, so that the time of a renewal is only compared with other renewals.
func (u *uninstaller) awaitLease(ctx context.Context) error {
	var renewed metav1.MicroTime
	var seen time.Time
	return poll(ctx, func(ctx context.Context) (string, error) {
		lease, err := u.kubernetes.CoordinationV1().Leases(u.Namespace).Get(ctx, u.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("get lease %s/%s: %w", u.Namespace, u.Name, err)
		}
		if now := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}); seen.IsZero() || !now.Equal(&renewed) {
			renewed, seen = now, time.Now()
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
		if holder == "" || time.Since(seen) > duration {
			return "", nil
		}
		return fmt.Sprintf("lease %s/%s, held by %q", u.Namespace, u.Name, holder), nil
	})
}

// poll calls remaining until it returns an error, or an empty string because there is nothing left
// to wait for.
func poll(ctx context.Context, remaining func(context.Context) (string, error)) error {
	var what string
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		next, err := remaining(ctx)
		if err == nil {
			what = next
		}
		return next == "", err
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
	}
	return err
}

// deleteLeases deletes the leases of both programs, which no process uses anymore.
func (u *uninstaller) deleteLeases(ctx context.Context) error {
	for _, name := range []string{u.Workloads, u.Name} {
		err := u.kubernetes.CoordinationV1().Leases(u.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete lease %s/%s: %w", u.Namespace, name, err)
		}
	}
	return nil
}
