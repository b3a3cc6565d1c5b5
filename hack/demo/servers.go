// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	watchtools "k8s.io/client-go/tools/watch"
)

const (
	serversFolder   = "examples/game-server"
	serversSelector = "app=game-server"
	// idleLabel is the label that the example's marker sets: true or false.
	idleLabel = "gameserver-idle"
	// size is the number of servers of the example, and excess how many of them are removed.
	size, excess = 5, 2
	// patience is the timeout of a step.
	patience = 2 * time.Minute
)

// servers is the demo of the game servers.
type servers struct {
	*shell
	pods typedcore.PodInterface
}

// play runs all scenes on a cluster from which it removes the example first.
func (s *servers) play(ctx context.Context) error {
	if err := s.run(ctx, "kubectl delete --ignore-not-found --cascade=foreground -f "+serversFolder, io.Discard); err != nil {
		return err
	}
	s.scene("Five game servers, and a marker: an exec probe checks whether a match is running.")
	if err := s.command(ctx, "kubectl apply -f "+serversFolder); err != nil {
		return err
	}
	if err := s.command(ctx, "kubectl rollout status deployment game-server"); err != nil {
		return err
	}
	s.scene("Seamark runs the probe in every pod. What does it say?")
	if err := s.command(ctx, "kubectl seamark get --watch --request-timeout=12s"); err != nil {
		return err
	}
	s.scene("Each step from the marker to the marks of a pod, with the evidence.")
	pods, err := s.pods.List(ctx, metav1.ListOptions{LabelSelector: serversSelector, Limit: 1})
	if err != nil {
		return fmt.Errorf("list the game servers: %w", err)
	}
	if len(pods.Items) == 0 {
		return errors.New("list the game servers: there is none")
	}
	if err := s.command(ctx, "kubectl seamark explain "+pods.Items[0].Name); err != nil {
		return err
	}
	s.scene("The results are labels and deletion costs: a scale-down removes idle servers only.")
	return s.shrink(ctx)
}

// shrink removes two servers when three of five are idle. It returns an error if a match was
// interrupted.
func (s *servers) shrink(ctx context.Context) error {
	const list = "kubectl get pods -L " + idleLabel
	line := fmt.Sprintf("%s && kubectl scale deployment game-server --replicas=%d", list, size-excess)
	if err := s.show(ctx, line); err != nil {
		return err
	}
	f := &fleet{live: map[string]*corev1.Pod{}, gone: map[string]*corev1.Pod{}}
	var before map[string]*corev1.Pod
	within, stop := context.WithTimeout(ctx, patience)
	defer stop()
	// A watch without a resource version begins with the pods that exist.
	watcher, err := s.pods.Watch(within, metav1.ListOptions{LabelSelector: serversSelector})
	if err != nil {
		return fmt.Errorf("watch the game servers: %w", err)
	}
	_, err = watchtools.UntilWithoutRetry(within, watcher,
		func(event watch.Event) (bool, error) {
			f.see(event)
			if !scalable(f.live) {
				return false, nil
			}
			before = maps.Clone(f.live)
			fmt.Fprintln(s.out)
			return true, s.execute(ctx, line)
		},
		func(event watch.Event) (bool, error) {
			f.see(event)
			return len(f.live) == size-excess && len(f.gone) == excess && f.ended == excess, nil
		})
	if err != nil {
		return fmt.Errorf("scale down: %d servers are left, %d removed, %d ended: %w", len(f.live), len(f.gone), f.ended, err)
	}
	fmt.Fprintln(s.out)
	if err := s.command(ctx, list); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.gone)) {
		reason, interrupted := verdict(isIdle(before[name]), isIdle(f.gone[name]))
		if interrupted {
			return fmt.Errorf("server %s was removed: %s", name, reason)
		}
		s.note("%s was removed: %s", name, reason)
	}
	s.note("Of %d servers, %d were removed, and no match was interrupted.", size, excess)
	return nil
}

// fleet is what a watch has shown of the servers.
type fleet struct {
	// live holds the pods that are not terminating, and gone each other one as it was when its
	// termination began.
	live, gone map[string]*corev1.Pod
	// ended is the number of pods in gone that no longer exist.
	ended int
}

// see handles an event. Pods that were already terminating before are ignored.
func (f *fleet) see(event watch.Event) {
	pod, isPod := event.Object.(*corev1.Pod)
	if !isPod {
		return
	}
	if event.Type != watch.Deleted && pod.DeletionTimestamp == nil {
		f.live[pod.Name] = pod
		return
	}
	if f.live[pod.Name] != nil {
		delete(f.live, pod.Name)
		f.gone[pod.Name] = pod
	}
	if event.Type == watch.Deleted && f.gone[pod.Name] != nil {
		f.ended++
	}
}

// scalable reports whether this is the time to remove the excess servers. One more is idle, because
// a match can start between reading the marks and the choice of the pods. All are ready, because the
// ReplicaSet controller orders only those by deletion cost.
func scalable(pods map[string]*corev1.Pod) bool {
	idle := 0
	for _, pod := range pods {
		if !isReady(pod) || pod.Labels[idleLabel] == "" {
			return false
		}
		if isIdle(pod) {
			idle++
		}
	}
	return len(pods) == size && idle == excess+1
}

func isIdle(pod *corev1.Pod) bool { return pod.Labels[idleLabel] == "true" }

// verdict describes the removal of a server by whether it was idle when scaling began, and when it
// was removed. It reports whether the scale-down interrupted a match.
func verdict(before, removed bool) (reason string, interrupted bool) {
	switch {
	case before && removed:
		return "idle", false
	case removed:
		return "its match had just ended", false
	case before:
		return "a match had begun since the scale-down", false
	default:
		return "during a match", true
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
