// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// insistence is how long a request is repeated before its error is logged.
const insistence = time.Minute

// newInformer returns an informer that continues within seconds when the API server is back. Those of client-go wait
// 30 to 60 seconds after an outage of half a minute. The leader exits by then, because it cannot renew its lease, and
// the replica that takes over would act on what it knew before the outage.
func newInformer(source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(insisting(toolscache.ToListerWatcherWithContext(source)), object, resync, indexers)
}

// insisting returns a source that repeats requests that an outage has failed.
func insisting(source toolscache.ListerWatcherWithContext) *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return insist(ctx, func() (runtime.Object, error) { return source.ListWithContext(ctx, options) })
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return insist(ctx, func() (watch.Interface, error) { return source.WatchWithContext(ctx, options) })
		},
	}
}

// insist repeats the request until the API server answers it, for as long as insistence or until ctx ends.
func insist[T any](ctx context.Context, request func() (T, error)) (T, error) {
	delays := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 16, Cap: 5 * time.Second}
	for start := time.Now(); ; {
		answer, err := request()
		if err == nil || !isOutage(err) || time.Since(start) > insistence {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(delays.Step()):
		}
	}
}

// isOutage reports whether the error comes from an API server that is down, or whose storage is.
func isOutage(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		// There is no answer.
		return true
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}
