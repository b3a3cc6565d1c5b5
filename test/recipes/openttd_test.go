// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	openttdImage = "docker.io/seamark/recipe-openttd"
	idleLabel    = "gameserver-idle"
)

// runOpenttd scales in, updates and drains servers while players join and leave. The clients count the matches that a server
// ended: none, until servers are deleted in spite of the guard.
func runOpenttd(s *suite) {
	ends := &ends{busy: map[string]string{}, seen: map[string]bool{}, costs: map[string]bool{}}
	s.observe(ends.see)
	s.apply()
	s.marked(6, "v1")
	s.Kubectl("apply", "-f", "examples/recipes/openttd/players")
	s.Eventually("a server with a player, and one without", func(context.Context) error { return ends.counted("0", "1") })

	s.Kubectl("scale", "cloneset", "openttd", "--replicas=4")
	s.marked(4, "v1")
	s.setImage("cloneset/openttd", openttdImage+":v2")
	s.marked(4, "v2")
	s.drainServers()
	s.marked(4, "v2")

	count, busy := ends.all()
	// Two servers of the scale-in, four of the rollout, four of the drain.
	expect.Equal(s, "servers that ended", 10, count)
	expect.Equal(s, "servers that ended without the mark that nobody plays", map[string]string{}, busy)
	expect.Equal(s, "interrupted matches", 0, s.matches("interrupted"))
	s.Eventually("a server with two players", func(context.Context) error { return ends.counted("2") })
	s.Logf("matches: %d ended by the player, %d not joined", s.matches("left"), s.matches("not joined"))
	if s.matches("left") == 0 {
		s.Errorf("no player has left a match")
	}
	s.killServers()
	s.endServers()
}

// ends are the servers whose deletion has begun, and the costs of deletions.
type ends struct {
	mu   sync.Mutex
	seen map[string]bool
	// busy has those that were not marked as idle at this time, and their label.
	busy map[string]string
	// costs are the deletion costs that were the number of players in the message of the probe.
	costs map[string]bool
}

func (e *ends) see(pod *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	cost := pod.Annotations[corev1.PodDeletionCost]
	if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == "game.io/idle" && c.Message == `{"players":`+cost+`}`
	}) {
		e.costs[cost] = true
	}
	if pod.Labels["app"] != "openttd" || pod.DeletionTimestamp == nil || e.seen[pod.Name] {
		return
	}
	e.seen[pod.Name] = true
	if idle := pod.Labels[idleLabel]; idle != "true" {
		e.busy[pod.Name] = idle
	}
}

func (e *ends) all() (count int, busy map[string]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.seen), maps.Clone(e.busy)
}

// counted expects that servers had these costs.
func (e *ends) counted(costs ...string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, cost := range costs {
		if !e.costs[cost] {
			return fmt.Errorf("no server had the cost %s", cost)
		}
	}
	return nil
}

// marked waits until there are as many servers with a version of the image, all marked.
func (s *suite) marked(count int, version string) {
	s.Helper()
	s.settled("app=openttd", openttdImage+":"+version, count, func(_ context.Context, pods []corev1.Pod) error {
		for i := range pods {
			if pods[i].Labels[idleLabel] == "" {
				return fmt.Errorf("server %s is not marked", pods[i].Name)
			}
		}
		return nil
	})
}

// drainServers evicts all servers that exist until they are gone, as a drain of their nodes does.
func (s *suite) drainServers() {
	s.Helper()
	old, err := s.pods(s.Context(), "app=openttd")
	cluster.Must(s, err)
	await.Poll{Interval: time.Second, Timeout: 3 * cluster.Timeout}.Success(s, "eviction of all servers", func(ctx context.Context) error {
		var left []string
		for i := range old {
			err := s.Client.SubResource("eviction").Create(ctx, old[i].DeepCopy(), &policyv1.Eviction{})
			if !apierrors.IsNotFound(err) {
				left = append(left, fmt.Sprintf("%s: %v", old[i].Name, err))
			}
		}
		return await.ErrorIf(len(left) > 0, "%q", left)
	})
}

// matches returns how many matches ended like this, as the clients say.
func (s *suite) matches(end string) int {
	s.Helper()
	return strings.Count(s.Kubectl("logs", "--selector=app=openttd-players", "--tail=-1"), ": "+end+"\n")
}

// killServers deletes servers with players in spite of the guard, until a client says that its match was interrupted.
func (s *suite) killServers() {
	s.Helper()
	s.Eventually("an interrupted match", func(ctx context.Context) error {
		if s.matches("interrupted") > 0 {
			return nil
		}
		for _, line := range []string{
			"label pod --overwrite -l app=openttd," + idleLabel + "=false seamark.dev/guard-exempt=test",
			"delete pod -l app=openttd,seamark.dev/guard-exempt=test --grace-period=1 --wait=false",
		} {
			if out, err := s.TryKubectl(ctx, strings.Fields(line)...); err != nil {
				return fmt.Errorf("kubectl %s: %w: %s", line, err, out)
			}
		}
		return errors.New("none yet")
	})
}

// endServers deletes the recipe while servers start in place of those that were killed, and waits until all are gone: within the grace
// period of hours, the hook ends.
func (s *suite) endServers() {
	s.Helper()
	s.Kubectl("delete", "-f", "examples/recipes/openttd/players", "-f", "examples/recipes/openttd")
	s.noServers()
}

func (s *suite) noServers() {
	s.Helper()
	s.Eventually("no server", func(ctx context.Context) error {
		pods, err := s.pods(ctx, "app=openttd")
		if err != nil {
			return err
		}
		return await.ErrorIf(len(pods) > 0, "%d servers are left", len(pods))
	})
}
