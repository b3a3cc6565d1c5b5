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

// servers are the pods of a CloneSet that are not stopped while clients use them. It records those whose deletion has begun, and the
// deletion costs.
type servers struct {
	*suite
	// image is the name of the image without a tag, and idle the label of a server that nobody uses.
	image, idle string
	// counted is the message of the probe with a number of clients.
	counted string

	mu   sync.Mutex
	seen map[string]bool
	// busy has those that were not marked as idle at this time, and their label.
	busy map[string]string
	// costs are the deletion costs that were the number of clients in a message.
	costs map[string]bool
}

// run creates the objects of the recipe, whose CloneSet and whose label app have its name.
func (v *servers) run() {
	v.Helper()
	v.seen, v.busy, v.costs = map[string]bool{}, map[string]string{}, map[string]bool{}
	v.observe(v.see)
	v.apply()
	v.marked(6, "v1")
}

func (v *servers) see(pod *corev1.Pod) {
	v.mu.Lock()
	defer v.mu.Unlock()
	cost := pod.Annotations[corev1.PodDeletionCost]
	if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Message == fmt.Sprintf(v.counted, cost) }) {
		v.costs[cost] = true
	}
	if pod.Labels["app"] != v.recipe || pod.DeletionTimestamp == nil || v.seen[pod.Name] {
		return
	}
	v.seen[pod.Name] = true
	if idle := pod.Labels[v.idle]; idle != "true" {
		v.busy[pod.Name] = idle
	}
}

func (v *servers) ended() (count int, busy map[string]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.seen), maps.Clone(v.busy)
}

// hadCosts waits until servers have had these costs.
func (v *servers) hadCosts(costs ...string) {
	v.Helper()
	v.Eventually("servers with clients and without", func(context.Context) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, cost := range costs {
			if !v.costs[cost] {
				return fmt.Errorf("no server had the cost %s", cost)
			}
		}
		return nil
	})
}

// marked waits until there are as many servers with a version of the image, all marked.
func (v *servers) marked(count int, version string) {
	v.Helper()
	v.settled("app="+v.recipe, v.image+":"+version, count, func(_ context.Context, pods []corev1.Pod) error {
		for i := range pods {
			if pods[i].Labels[v.idle] == "" {
				return fmt.Errorf("server %s is not marked", pods[i].Name)
			}
		}
		return nil
	})
}

// replace scales in, updates and drains the servers: none ends that a client uses.
func (v *servers) replace() {
	v.Helper()
	before, _ := v.ended()
	v.Kubectl("scale", "cloneset", v.recipe, "--replicas=4")
	v.marked(4, "v1")
	v.setImage("cloneset/"+v.recipe, v.image+":v2")
	v.marked(4, "v2")
	v.drain()
	v.marked(4, "v2")
	count, busy := v.ended()
	// Two servers of the scale-in, four of the rollout, four of the drain.
	expect.Equal(v, "servers that ended", 10, count-before)
	expect.Equal(v, "servers that ended without the mark that nobody uses them", map[string]string{}, busy)
}

// drain evicts all servers that exist until they are gone, as a drain of their nodes does.
func (v *servers) drain() {
	v.Helper()
	old, err := v.pods(v.Context(), "app="+v.recipe)
	cluster.Must(v, err)
	await.Poll{Interval: time.Second, Timeout: 3 * cluster.Timeout}.Success(v, "eviction of all servers", func(ctx context.Context) error {
		var left []string
		for i := range old {
			err := v.Client.SubResource("eviction").Create(ctx, old[i].DeepCopy(), &policyv1.Eviction{})
			if !apierrors.IsNotFound(err) {
				left = append(left, fmt.Sprintf("%s: %v", old[i].Name, err))
			}
		}
		return await.ErrorIf(len(left) > 0, "%q", left)
	})
}

// kill deletes servers with clients in spite of the guard, until a client says that it was interrupted.
func (v *servers) kill(interrupted func() int) {
	v.Helper()
	v.Eventually("an interrupted client", func(ctx context.Context) error {
		if interrupted() > 0 {
			return nil
		}
		for _, line := range []string{
			fmt.Sprintf("label pod --overwrite -l app=%s,%s=false seamark.dev/guard-exempt=test", v.recipe, v.idle),
			fmt.Sprintf("delete pod -l app=%s,seamark.dev/guard-exempt=test --grace-period=1 --wait=false", v.recipe),
		} {
			if out, err := v.TryKubectl(ctx, strings.Fields(line)...); err != nil {
				return fmt.Errorf("kubectl %s: %w: %s", line, err, out)
			}
		}
		return errors.New("none yet")
	})
}

// end deletes the recipe when nobody uses the servers, some of which still start in place of those that were killed, and waits until
// all are gone: they do not wait for the grace period of hours.
func (v *servers) end() {
	v.Helper()
	v.Kubectl("delete", "-f", "examples/recipes/"+v.recipe)
	v.gone()
}

// gone waits until no server is left.
func (v *servers) gone() {
	v.Helper()
	v.Eventually("no server", func(ctx context.Context) error {
		pods, err := v.pods(ctx, "app="+v.recipe)
		if err != nil {
			return err
		}
		return await.ErrorIf(len(pods) > 0, "%d servers are left", len(pods))
	})
}
