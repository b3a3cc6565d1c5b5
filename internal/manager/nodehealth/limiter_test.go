// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/expect"
)

// A zone of 200 nodes with 110 pods each is lost. The pods are those of one namespace, and another one has
// a single pod.
func TestLimiterDelaysAndSharesPermits(t *testing.T) {
	const pods = 200 * 110
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begin := time.Now()
		perSecond := map[int]int{}
		var alone time.Duration
		permitted := 0
		inbox := &controllers.Inbox{}
		source := inbox.Feed(func(_ controllers.Queue, pod types.NamespacedName) {
			permitted++
			perSecond[int(time.Since(begin)/time.Second)]++
			if pod.Namespace == "small" {
				alone = time.Since(begin)
			}
		})
		var unused workqueue.TypedRateLimitingInterface[reconcile.Request]
		expect.NoError(t, source.Start(ctx, unused))
		limiter := NewLimiter(inbox)
		first := types.NamespacedName{Namespace: "large", Name: "0"}
		if limiter.Take(first) {
			t.Error("a pod has a permit that it has not asked for")
		}
		for i := range pods - 1 {
			limiter.Ask(types.NamespacedName{Namespace: "large", Name: fmt.Sprint(i)})
			limiter.Ask(first)
		}
		limiter.Ask(types.NamespacedName{Namespace: "small", Name: "a"})
		ended := make(chan error, 1)
		go func() { ended <- limiter.Start(ctx) }()
		<-time.After(219 * time.Second)
		synctest.Wait()
		if limiter.Waiting() == 0 {
			t.Errorf("all %d pods have a permit after 219 s", permitted)
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if permitted != pods || limiter.Waiting() > 0 {
			t.Errorf("%d pods have a permit after 221 s, and %d wait; want all %d", permitted, limiter.Waiting(), pods)
		}
		for second, count := range perSecond {
			if count > 101 {
				t.Errorf("%d permits in second %d, want at most 100", count, second)
			}
		}
		if alone > 3*interval {
			t.Errorf("the only pod of a namespace waits %s, want at most two others", alone)
		}
		if !limiter.Take(first) || limiter.Take(first) {
			t.Error("a permit is for one write")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
