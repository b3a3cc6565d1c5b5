// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
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

// TestInformerContinuesAfterAnOutage runs an informer whose API server is down for a time.
func TestInformerContinuesAfterAnOutage(t *testing.T) {
	t.Parallel()
	for _, outage := range []time.Duration{time.Second, 20 * time.Second, 50 * time.Second, 10 * time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testOutage(t, outage) })
		})
	}
}

func testOutage(t *testing.T, outage time.Duration) {
	t.Helper()
	start := time.Now()
	answers := func() error {
		if time.Since(start) < outage {
			return fmt.Errorf("connect: %w", syscall.ECONNREFUSED)
		}
		return nil
	}
	pods := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "pod"}}}}
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return pods, answers() },
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if err := answers(); err != nil {
				return nil, err
			}
			if options.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
			}
			return watch.NewFake(), nil
		},
	}
	informer := newInformer(source, &corev1.Pod{}, 0, toolscache.Indexers{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	for !informer.HasSynced() {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // The time is virtual.
	}
	// The longest delay is the cap of five seconds with its jitter, and once per minute that of client-go.
	if late := time.Since(start) - outage; late > 12*time.Second {
		t.Errorf("the informer has the pod %s after the outage", late)
	}
	cancel()
	<-done
}

func TestIsOutage(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"connection refused":  {fmt.Errorf("dial: %w", syscall.ECONNREFUSED), true},
		"storage down":        {apierrors.NewInternalError(errors.New("etcdserver: no leader")), true},
		"no API server":       {apierrors.NewServiceUnavailable("no endpoints"), true},
		"storage slow":        {apierrors.NewTimeoutError("request timed out", 0), true},
		"canceled":            {fmt.Errorf("request: %w", context.Canceled), false},
		"forbidden":           {apierrors.NewForbidden(pods, "", nil), false},
		"too old":             {apierrors.NewResourceExpired("too old"), false},
		"too many requests":   {apierrors.NewTooManyRequests("later", 1), false},
		"unknown custom kind": {apierrors.NewNotFound(pods, ""), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isOutage(test.err); got != test.want {
				t.Errorf("outage: %t, want %t", got, test.want)
			}
		})
	}
}
