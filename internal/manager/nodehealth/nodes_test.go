// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func newStore(t *testing.T, objects ...client.Object) fakeapi.Store {
	t.Helper()
	indexers := gather.PodIndexers()
	maps.Copy(indexers, gather.AgentIndexers("seamark-system"))
	return fakeapi.NewStore(t, indexers, objects)
}

// Only nodes whose states are not current are remembered, with one timer each, whatever the number of pods.
func TestNodesHaveOneTimerEach(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	node := func(ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(now)}},
		}}
	}
	agent := builders.Pod("seamark-system", "agent").Node("node-1").Condition(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}).Build()
	agent.Spec.ServiceAccountName = "seamark-agent"
	pod := func(name, app string) *corev1.Pod {
		return builders.Pod("ns", name).Label("app", app).Node("node-1").Build()
	}
	inbox := &controllers.Inbox{}
	nodes := New(Options{
		Counted: &controllers.Inbox{},
		Reader: gather.Reader{Compiler: plan.NewCompiler(), Stores: gather.Stores{
			Pods: newStore(t, agent, pod("a", "game"), pod("b", "game"), pod("c", "db"), pod("d", "other")),
			Markers: newStore(t,
				builders.Marker("ns", "fast").Probe(builders.Probe("p").StaleAfter(10)).Probe(builders.Probe("q")).Build(),
				builders.Marker("ns", "slow").Selector("app", "db").Probe(builders.Probe("p").StaleAfter(60)).Build(),
				builders.Marker("ns", "never").Selector("app", "other").Probe(builders.Probe("p")).Build()),
		}},
		Namespace: "seamark-system", Pods: inbox, Limiter: NewLimiter(inbox), Now: func() time.Time { return now },
	})
	defer nodes.Limiter.queue.ShutDown()
	if got := nodes.Outage("node-1"); got.Cause != staleness.NotChecked {
		t.Errorf("outage %+v before the Nodes are known, want one that is not checked", got)
	}
	known := newStore(t, node(corev1.ConditionTrue))
	nodes.nodes = known
	nodes.synced.Store(true)
	step := func(pass time.Duration, status corev1.ConditionStatus, again time.Duration, asked, remembered int) {
		t.Helper()
		now = now.Add(pass)
		if old, _, _ := known.GetByKey("node-1"); status != "" && old.(*corev1.Node).Status.Conditions[0].Status != status {
			expect.NoError(t, known.Update(node(status)))
		}
		result, err := nodes.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}})
		if err != nil || result.RequeueAfter != again || nodes.Limiter.Waiting() != asked || nodes.states.Len() != remembered {
			t.Errorf("%v: again after %s, %d pods asked, %d nodes remembered, error %v; want %s, %d, %d",
				now, result.RequeueAfter, nodes.Limiter.Waiting(), nodes.states.Len(), err, again, asked, remembered)
		}
		for nodes.Limiter.Waiting() > 0 {
			pod, _ := nodes.Limiter.queue.Get()
			nodes.Limiter.queue.Done(pod)
		}
	}
	const second = time.Second
	step(0, corev1.ConditionTrue, 0, 0, 0)
	step(second, corev1.ConditionUnknown, 10*second, 0, 1)
	if nodes.Count(staleness.NodeNotReady) != 1 || nodes.Count(staleness.NodeGone) != 0 {
		t.Error("wrong count of nodes")
	}
	step(9*second, "", second, 0, 1)
	step(second, "", 50*second, 2, 1)
	step(second, "", 49*second, 0, 1)
	step(49*second, "", 0, 1, 1)
	step(second, corev1.ConditionTrue, 10*second, 0, 1)
	step(10*second, "", 0, 3, 0)

	// It is not ready for less than the shortest time.
	step(second, corev1.ConditionUnknown, 10*second, 0, 1)
	step(9*second, corev1.ConditionTrue, 10*second, 0, 1)
	step(10*second, "", 0, 0, 0)
}

// A pod that comes to a node whose states are not current already has the timer of the node, too.
func TestPodsThatComeToALostNode(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	pod := func(node, app string) *corev1.Pod {
		return builders.Pod("ns", "a").Label("app", app).Node(node).Build()
	}
	agent := builders.Pod("seamark-system", "agent").Node("healthy").Condition(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}).Build()
	agent.Spec.ServiceAccountName = "seamark-agent"
	nodes := New(Options{
		Reader:    gather.Reader{Compiler: plan.NewCompiler(), Stores: gather.Stores{Pods: newStore(t, agent), Markers: newStore(t)}},
		Namespace: "seamark-system", Now: func() time.Time { return now },
	})
	nodes.nodes = newStore(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "healthy"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lost"}})
	nodes.synced.Store(true)
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		want          int
	}{
		"new":                    {after: pod("lost", "game"), want: 1},
		"new on a healthy node":  {after: pod("healthy", "game")},
		"bound":                  {before: pod("", "game"), after: pod("lost", "game"), want: 1},
		"not bound yet":          {after: pod("", "game")},
		"other labels":           {before: pod("lost", "other"), after: pod("lost", "game"), want: 1},
		"nothing else than that": {before: pod("lost", "game"), after: pod("lost", "game")},
		"deleted":                {before: pod("lost", "game")},
	} {
		t.Run(name, func(t *testing.T) {
			q := fakeapi.Queue(t)
			defer q.ShutDown()
			if nodes.podChanged(q, tc.before, tc.after); len(fakeapi.Drain(q)) != tc.want {
				t.Errorf("want %d nodes enqueued", tc.want)
			}
		})
	}
}

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
		expect.NoError(t, <-ended)
	})
}
