// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// TestInformerContinues runs an informer whose API server does not serve it for a time. A pod is created at the end of
// this time.
func TestInformerContinues(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{
		"the API server is down":        fmt.Errorf("connect: %w", syscall.ECONNREFUSED),
		"the API server is overloaded":  apierrors.NewTooManyRequests("later", 0),
		"watches expire after a second": nil,
	} {
		for _, lasts := range []time.Duration{time.Second, 14 * time.Second, 50 * time.Second, 10 * time.Minute} {
			for _, from := range []time.Duration{0, time.Hour} {
				for _, expires := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s, after %s, for %s, expired %t", name, from, lasts, expires), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { testContinues(t, fault, from, from+lasts, expires) })
					})
				}
			}
		}
	}
}

// testContinues plays a fault. All watches end when it begins, and cannot be continued if they have expired.
func testContinues(t *testing.T, fault error, from, until time.Duration, expired bool) {
	t.Helper()
	start, lists := time.Now(), 0
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", ResourceVersion: "2"}}
	fails := func() bool { return time.Since(start) >= from && time.Since(start) < until }
	refused := func() error {
		if fails() {
			return fault
		}
		return nil
	}
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			lists++
			pods := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			if time.Since(start) >= until {
				pods.Items = []corev1.Pod{pod}
			}
			return pods, refused()
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			switch err := refused(); {
			case err != nil:
				return nil, err
			case options.SendInitialEvents != nil:
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
			}
			w := watch.NewFakeWithChanSize(2, false)
			ends := time.Second
			if !fails() {
				ends = from - time.Since(start)
			}
			switch {
			case time.Since(start) >= until:
				w.Add(&pod)
			case fails() || expired:
				time.AfterFunc(ends, func() { w.Error(new(apierrors.NewResourceExpired("too old").Status())) })
			default:
				time.AfterFunc(ends, w.Stop)
			}
			return w, nil
		},
	}
	informer := NewInformer(source, &corev1.Pod{}, 0, toolscache.Indexers{}, func(error) {})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	for len(informer.GetIndexer().ListKeys()) == 0 {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // The time is virtual.
	}
	// A watch may expire after a second, and the longest delay has five.
	if late := time.Since(start) - until; late > 6100*time.Millisecond {
		t.Errorf("the informer has the pod %s after the fault", late)
	}
	cancel()
	<-done
	if from > 0 && fault != nil && !expired && lists > 1 {
		t.Errorf("the informer has listed %d times, want only at its start", lists)
	}
}
