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
)

const (
	// pollInterval is the poll interval for the pods of a Deployment.
	pollInterval = 500 * time.Millisecond
	// unreachableDelay is the time after the end of the grace period at which a pod that
	// still exists is considered terminated: its node is unreachable.
	unreachableDelay = 10 * time.Second
)

// stop scales a Deployment to zero and waits until its pods have terminated. The lease alone does
// not stop programs without leader election or with another lease. It reports whether the
// Deployment exists.
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
	return true, u.awaitEnd(ctx, scale.Status.Selector)
}

// awaitEnd waits until all selected pods have terminated.
func (u *uninstaller) awaitEnd(ctx context.Context, selector string) error {
	var running string
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		pods, err := u.kubernetes.CoreV1().Pods(u.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return false, fmt.Errorf("list the pods of Seamark: %w", err)
		}
		for i := range pods.Items {
			if !ended(&pods.Items[i], time.Now()) {
				running = pods.Items[i].Name
				return false, nil
			}
		}
		return true, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("wait for pod %s/%s to terminate: %w", u.Namespace, running, context.Cause(ctx))
	default:
		return err
	}
}

func ended(pod *corev1.Pod, now time.Time) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
		pod.DeletionTimestamp != nil && now.After(pod.DeletionTimestamp.Add(unreachableDelay))
}
