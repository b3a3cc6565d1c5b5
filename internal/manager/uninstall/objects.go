// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
)

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("create the scheme: %w", err)
	}
	return scheme, nil
}

// unmark removes the marks of all pods, including terminated ones, and returns the number of
// pods that had marks.
func (u *uninstaller) unmark(ctx context.Context) (int, error) {
	pods := u.metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	marked, err := u.each(ctx, pods, func(ctx context.Context, object *metav1.PartialObjectMetadata) (bool, error) {
		pod := &corev1.Pod{ObjectMeta: object.ObjectMeta}
		if !hasMarks(pod) {
			return false, nil
		}
		return true, u.unmarkOne(ctx, pod)
	})
	if err != nil {
		return marked, fmt.Errorf("remove marks from pods: %w", err)
	}
	return marked, nil
}

// hasMarks reports whether Seamark has written to the pod: marks, or the annotations for the
// provider of a virtual node.
func hasMarks(pod *corev1.Pod) bool {
	return mark.Entry(pod.ManagedFields) != nil || serverless.Of(pod) != (serverless.Annotations{})
}

// unmarkOne removes the marks of one pod and retries on concurrent writes.
func (u *uninstaller) unmarkOne(ctx context.Context, pod *corev1.Pod) error {
	err := retry.OnError(retry.DefaultBackoff, isOutdated, func() error { return u.removeShared(ctx, pod) })
	if err == nil && serverless.Of(pod) != (serverless.Annotations{}) {
		_, err = u.pods.Handover(ctx, pod, serverless.Annotations{})
	}
	if err == nil && mark.Entry(pod.ManagedFields) != nil {
		_, err = u.pods.Marks(ctx, pod, mark.Marks{})
	}
	if errors.Is(err, apply.ErrGone) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// removeShared removes the marks that other managers own too. It must run before the empty
// apply, which would keep them and remove the record that Seamark owned them.
func (u *uninstaller) removeShared(ctx context.Context, pod *corev1.Pod) error {
	if len(mark.Shared(pod.ManagedFields)) == 0 {
		return nil
	}
	// The conditions are in the pod's status, which metadata does not include.
	live, err := u.kubernetes.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	owned, err := mark.Owned(live)
	if err != nil {
		return err
	}
	keys := mark.Leftover(live, nil, mark.PodReport{}, owned, mark.Marks{})
	if len(keys) == 0 {
		return nil
	}
	_, err = u.pods.Remove(ctx, live, keys)
	return err
}

func isOutdated(err error) bool { return errors.Is(err, apply.ErrOutdated) }

// release removes the finalizer of all markers. It returns the number of markers, and of
// those that had the finalizer.
func (u *uninstaller) release(ctx context.Context) (markers, released int, err error) {
	options := &client.ListOptions{Limit: page}
	for {
		var list v1alpha1.PodProbeMarkerList
		err := u.client.List(ctx, &list, options)
		if unserved(err) {
			return markers, released, nil
		}
		if err != nil {
			return markers, released, fmt.Errorf("list markers: %w", err)
		}
		for i := range list.Items {
			markers++
			had, err := u.releaseOne(ctx, &list.Items[i])
			if err != nil {
				return markers, released, err
			}
			if had {
				released++
			}
		}
		if list.Continue == "" {
			return markers, released, nil
		}
		options.Continue = list.Continue
	}
}

// releaseOne removes the finalizer of one marker and retries on concurrent writes.
func (u *uninstaller) releaseOne(ctx context.Context, marker *v1alpha1.PodProbeMarker) (bool, error) {
	key := client.ObjectKeyFromObject(marker)
	released := false
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if !controllerutil.ContainsFinalizer(marker, v1alpha1.PodProbeMarkerFinalizer) {
			return nil
		}
		rest := slices.DeleteFunc(slices.Clone(marker.Finalizers), func(finalizer string) bool {
			return finalizer == v1alpha1.PodProbeMarkerFinalizer
		})
		_, err := u.markers.Finalizers(ctx, marker, rest)
		released = err == nil
		if err == nil || errors.Is(err, apply.ErrGone) {
			return nil
		}
		if again := u.client.Get(ctx, key, marker); again != nil {
			return client.IgnoreNotFound(again)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("remove the finalizer of marker %s: %w", key, err)
	}
	return released, nil
}
