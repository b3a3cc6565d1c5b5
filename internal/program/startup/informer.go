// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// silence is the minimum time between two logged errors of an informer.
const silence = time.Minute

// errStart is the answer to the first requests of an informer, before its error handler follows the source.
var errStart = errors.New("not followed yet")

// NewInformer returns an informer that continues within five seconds when the API server is back, or when it continues
// watches again. Those of client-go wait up to 60 seconds after some failures, and their back-off is not an option. The
// leader exits by then, because it cannot renew its lease, and the replica that takes over would act on what it knew
// before. Therefore, the error handler does what client-go would do after it returns, with other delays. The errors of
// requests are noted, nil if they succeed.
func NewInformer(source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers, note func(error)) toolscache.SharedIndexInformer {
	from, followed, kind := toolscache.ToListerWatcherWithContext(source), false, fmt.Sprintf("%T", object)
	informer := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if !followed {
				return nil, errStart
			}
			found, err := from.ListWithContext(ctx, options)
			note(err)
			return found, err //nolint:wrapcheck // the caller knows the kinds of errors
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if !followed {
				return nil, errStart
			}
			return insist(ctx, from, options, kind, note)
		},
	}, object, resync, indexers)
	// It fails only if the informer runs.
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *toolscache.Reflector, _ error) {
		followed = true
		follow(ctx, reflector, kind)
	})
	return informer
}

// newDelays returns the delays between attempts. They are at most five seconds long, with the jitter.
func newDelays() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 16, Cap: 2500 * time.Millisecond}
}

// insist starts a watch, and repeats that while the API server does not accept it: the watch may continue where the last
// one ended, without a list. The reflector does so with longer delays.
func insist(ctx context.Context, from toolscache.ListerWatcherWithContext, options metav1.ListOptions, kind string, note func(error)) (watch.Interface, error) {
	var logged time.Time
	for delays := newDelays(); ; {
		started, err := from.WatchWithContext(ctx, options)
		note(err)
		if !utilnet.IsConnectionRefused(err) && !apierrors.IsTooManyRequests(err) {
			return started, err //nolint:wrapcheck // the caller knows the kinds of errors
		}
		logged = complain(ctx, err, logged, kind)
		select {
		case <-ctx.Done():
			return nil, err //nolint:wrapcheck // as above
		case <-time.After(delays.Step()):
		}
	}
}

// follow lists and watches until ctx ends.
func follow(ctx context.Context, reflector *toolscache.Reflector, kind string) {
	var logged time.Time
	_ = newDelays().DelayWithReset(clock.RealClock{}, time.Minute).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if err := reflector.ListAndWatchWithContext(ctx); err != nil {
			logged = complain(ctx, err, logged, kind)
		}
		return false, nil
	})
}

// complain logs an error, unless the last one was logged a short time ago, and returns when the last one was.
func complain(ctx context.Context, err error, last time.Time, kind string) (logged time.Time) {
	if time.Since(last) <= silence {
		return last
	}
	log.FromContext(ctx).Error(err, "Failed to list or watch, retrying", "type", kind)
	return time.Now()
}
