// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// games records how the servers of examples/idle-first ended. It is safe for concurrent use.
type games struct {
	mu sync.Mutex
	// gone holds the termination message of each server that has ended.
	gone map[string]string
	// held holds the servers that have had the state PreparingDelete.
	held map[string]bool
}

func (g *games) see(o ctrl.Object, deleted bool) {
	pod := o.(*corev1.Pod)
	g.mu.Lock()
	defer g.mu.Unlock()
	if pod.Labels[pub.LifecycleStateKey] == string(pub.LifecycleStatePreparingDelete) {
		g.held[pod.Name] = true
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Terminated != nil {
			g.gone[pod.Name] = status.State.Terminated.Message
		}
	}
	if _, known := g.gone[pod.Name]; deleted && !known {
		g.gone[pod.Name] = "ended without a status"
	}
}

// result returns the number of servers that have ended, and the messages of those that were
// interrupted.
func (g *games) result() (gone, held int, interrupted []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, message := range g.gone {
		if message != "" {
			interrupted = append(interrupted, name+": "+strings.TrimSpace(message))
		}
	}
	return len(g.gone), len(g.held), interrupted
}

// TestIdleFirst scales game servers from 10 to 5 while matches are running on most of them. No
// match is interrupted.
func TestIdleFirst(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	g := &games{gone: map[string]string{}, held: map[string]bool{}}
	s.stream(&corev1.PodList{}, g.see)
	s.Kubectl("apply", "-f", filepath.Join(s.Root, "examples", "idle-first"))
	set := &v1alpha1.CloneSet{}
	set.Name, set.Namespace = "idle-first", s.Namespace
	s.settled("idle-first", 10, labelled("gameserver-idle"))
	// Some servers may become idle before the controller sees the change.
	s.Eventually("at least seven servers are busy", func(ctx context.Context) error { return s.busy(ctx, 7) })
	patch(s, set, func(set *v1alpha1.CloneSet) { *set.Spec.Replicas = 5 })

	s.settled("idle-first", 5)
	s.Eventually("five servers have ended", func(context.Context) error {
		gone, _, _ := g.result()
		return await.ErrorIf(gone < 5, "%d servers", gone)
	})
	gone, held, interrupted := g.result()
	t.Logf("%d servers ended, %d of them were held by the hook", gone, held)
	if gone != 5 || len(interrupted) != 0 {
		t.Errorf("%d servers ended, want 5; interrupted: %v", gone, interrupted)
	}
	if held == 0 {
		t.Error("no server was held by the hook, although at most three were idle when the set was scaled down")
	}
	s.interrupt(g)
}

func labelled(key string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		return await.ErrorIf(pod.Labels[key] == "", "pod %s has no label %s", pod.Name, key)
	}
}

// busy expects that at least as many servers have a lobby or a match.
func (s *suite) busy(ctx context.Context, want int) error {
	pods, err := s.pods(ctx, "idle-first")
	if err != nil {
		return err
	}
	busy := 0
	for _, pod := range pods {
		if pod.Labels["gameserver-idle"] == "false" {
			busy++
		}
	}
	return await.ErrorIf(busy < want, "%d servers are busy", busy)
}

// interrupt deletes a server during a match, to check that the test observes interruptions.
func (s *suite) interrupt(g *games) {
	s.Helper()
	s.Eventually("a deleted server reports that its match was interrupted", func(ctx context.Context) error {
		if _, _, interrupted := g.result(); len(interrupted) != 0 {
			return nil
		}
		pods, err := s.pods(ctx, "idle-first")
		if err != nil {
			return err
		}
		for _, pod := range pods {
			c := condition(&pod, "game.io/idle")
			if pod.DeletionTimestamp == nil && c != nil && strings.HasPrefix(c.Message, "playing") {
				cluster.Must(s, ctrl.IgnoreNotFound(s.Client.Delete(ctx, &pod)))
				return fmt.Errorf("deleted %s", pod.Name)
			}
		}
		return fmt.Errorf("no match is running")
	})
}
