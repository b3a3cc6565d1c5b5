// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// The rows of the measure of exclusive marks.
const (
	rowElectAll     = "10,000 pods of 1,000 groups claim exclusive marks at once: until each group has its pod"
	rowHandOver     = "hand-over in one of 1,000 groups, median"
	rowHandOverP99  = "hand-over in one of 1,000 groups, 99th percentile"
	rowHandOverCost = "requests of the manager per hand-over"
)

const (
	// shard is the label of the groups, and shardPods how many pods a group has.
	shard     = "shard"
	shardPods = 10
)

// shards are groups of pods on several nodes that claim the same marks.
type shards struct {
	*harness.Bench
	server  *harness.Server
	cluster fixture.Cluster
	agents  []*fixture.Agent
	// places are the agent and the position of each pod.
	places map[string][2]int

	mu sync.Mutex
	// holders are the pods with the marks, by group. second counts the changes after which a group had two.
	holders map[string]map[string]bool
	second  int
	changed chan struct{}
}

// measureElections lets all pods claim the marks of their groups, and then one holder after the other fail.
func measureElections(b *harness.Bench) harness.Output {
	s := &shards{Bench: b, server: b.Server(), places: make(map[string][2]int), holders: make(map[string]map[string]bool), changed: make(chan struct{}, 1),
		cluster: fixture.Cluster{Name: "election", Nodes: harness.Pick(b, 100, 5), Pods: harness.Pick(b, 10000, 20)}}
	s.create()
	manager := s.server.Manager()
	fixture.Planned(b, s.server, s.cluster.Pods)
	s.prepare()
	b.Idle(harness.Pick(b, 4*time.Second, time.Second))
	groups := s.cluster.Pods / shardPods
	elected := s.elect(groups)
	bare := s.bare(2 * groups)
	b.Idle(harness.Pick(b, 4*time.Second, time.Second))

	var whole, first []float64
	n := harness.Pick(b, 200, 2)
	requests := s.server.Counted(func() {
		for i := range n {
			lost, taken := s.handOver(fmt.Sprint(i * groups / n))
			first, whole = append(first, lost), append(whole, taken)
		}
	}).Requests
	manager.Stop()
	if s.second > 0 {
		b.Errorf("%d times, two pods of a group had the marks", s.second)
	}
	cost := 0
	for request, count := range requests {
		if request.Resource == "pods" && request.Verb != "WATCH" {
			cost += count
		}
	}
	const floor = "loss of a mark in the same hand-overs"
	return harness.Output{
		Results: []harness.Result{
			{
				Name: rowElectAll, Value: elected.Seconds(), Unit: "s", Floor: bare.Seconds(), FloorName: "bare writes, two per group",
				Budget: harness.RatioAtMost(3),
			},
			{
				Name: rowHandOver, Value: harness.Percentile(whole, 0.5), Unit: "ms", Floor: harness.Percentile(first, 0.5),
				FloorName: floor, Budget: harness.RatioAtMost(3),
			},
			{
				Name: rowHandOverP99, Value: harness.Percentile(whole, 0.99), Unit: "ms", Floor: harness.Percentile(first, 0.99),
				FloorName: floor, Budget: harness.RatioAtMost(4),
			},
			{Name: rowHandOverCost, Value: float64(cost) / float64(n), Floor: 4, FloorName: "three writes and one list", Budget: harness.RatioAtMost(1)},
		},
		Notes: []string{fmt.Sprintf("%d pods on %d nodes, %d groups, one marker. A hand-over begins with the write of the report that the holder has failed, and ends when "+
			"a watch shows another pod with the marks. The watch saw no two pods of a group with the marks.", s.cluster.Pods, s.cluster.Nodes, groups)},
	}
}

// create creates the pods, the marker and a watch of the marks.
func (s *shards) create() {
	s.Helper()
	nodes := s.cluster
	nodes.Pods = 0
	nodes.Create(s.Bench, s.server)
	s.Each(s.cluster.Pods, harness.Clients, func(ctx context.Context, i int) error {
		pod := s.cluster.Pod(i)
		pod.Labels[shard] = fmt.Sprint(i / shardPods)
		_, err := env.CreatePod(ctx, s.server.Client, pod)
		return err
	})
	fixture.CreateMarker(s.Bench, s.server, s.cluster.Name, func(probe *v1alpha1.PodContainerProbe) {
		probe.MarkerPolicy[0].Exclusive = &v1alpha1.ExclusivePolicy{PerLabel: shard}
	})
	fixture.Follow(s.Bench, s.server, &corev1.PodList{}, func(event watch.Event) {
		if pod, is := event.Object.(*corev1.Pod); is {
			s.see(pod)
		}
	}, client.InNamespace(fixture.Namespace))
}

// see remembers whether the pod has the marks of its group.
func (s *shards) see(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.holders[pod.Labels[shard]]
	if of == nil {
		of = make(map[string]bool)
		s.holders[pod.Labels[shard]] = of
	}
	delete(of, pod.Name)
	if pod.Labels[fixture.Mark] == fixture.Up {
		if of[pod.Name] = true; len(of) > 1 {
			s.second++
		}
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// holder returns the pod with the marks of the group, or an empty string.
func (s *shards) holder(group string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.holders[group] {
		return name
	}
	return ""
}

// until waits until the marks meet the condition, and returns when.
func (s *shards) until(what string, met func() bool) time.Time {
	s.Helper()
	for !met() {
		select {
		case <-s.changed:
		case <-time.After(time.Minute):
			s.Fatalf("waited a minute until %s", what)
		}
	}
	return time.Now()
}

// prepare creates the agents. The states of all pods are of the same time.
func (s *shards) prepare() {
	s.agents = make([]*fixture.Agent, s.cluster.Nodes)
	at := metav1.Now()
	for i := range s.agents {
		s.agents[i] = fixture.NewAgent(s.Bench, s.server, s.server.Raw, s.cluster.Node(i), fixture.DefaultSlice)
		for j, name := range s.agents[i].Names() {
			s.places[name] = [2]int{i, j}
			s.agents[i].Pods[j].Probes[0].LastTransitionTime = at
		}
	}
}

// elect reports the claims of all pods, and returns the time until each group has a pod with the marks.
func (s *shards) elect(groups int) time.Duration {
	s.Helper()
	began := time.Now()
	s.Each(len(s.agents), harness.Clients, func(ctx context.Context, i int) error { return s.agents[i].TakeOver(ctx) })
	return s.until("each group has a pod with the marks", func() bool {
		for group := range groups {
			if s.holder(fmt.Sprint(group)) == "" {
				return false
			}
		}
		return true
	}).Sub(began)
}

// bare returns how long n bare writes take.
func (s *shards) bare(n int) time.Duration {
	s.Helper()
	var pods corev1.PodList
	s.Must(s.server.Client.List(s.Context(), &pods, client.InNamespace(fixture.Namespace), client.Limit(int64(min(n, s.cluster.Pods)))))
	writer, began := fixture.NewBare(s.Bench, s.server), time.Now()
	s.Each(n, harness.Clients, func(ctx context.Context, i int) error {
		pod := &pods.Items[i%len(pods.Items)]
		return writer.Write(ctx, pod.Name, pod.UID, fmt.Sprint("bare-", i))
	})
	return time.Since(began)
}

// handOver lets the holder of the group fail. It returns the times until it has lost the marks, and until another pod has them.
func (s *shards) handOver(group string) (lost, taken float64) {
	s.Helper()
	before := s.holder(group)
	place := s.places[before]
	agent := s.agents[place[0]]
	began := time.Now()
	agent.Toggle(place[1])
	s.Must(agent.Write(s.Context(), agent.SliceOf(place[1])))
	lost = s.until("pod "+before+" has lost the marks", func() bool { return s.holder(group) != before }).Sub(began).Seconds() * 1000
	taken = s.until("another pod has the marks", func() bool { return s.holder(group) != "" && s.holder(group) != before }).Sub(began).Seconds() * 1000
	return lost, taken
}
