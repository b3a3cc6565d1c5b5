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
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// newImage returns another name of the busybox image on the nodes.
func (s *suite) newImage() string {
	s.Helper()
	name := "docker.io/seamark/in-place:" + s.Namespace
	s.tag(cluster.BusyboxImage, name)
	return name
}

// sets are the kinds, with their pods updated in place after a grace period of a second.
func sets() map[string]ctrl.Object {
	strategy := &pub.InPlaceUpdateStrategy{GracePeriodSeconds: 1}
	return map[string]ctrl.Object{
		"CloneSet": newCloneSet("updated", 1, inPlace, func(set *v1alpha1.CloneSet) {
			set.Spec.UpdateStrategy.InPlaceUpdateStrategy = strategy
		}),
		"StatefulSet": newStatefulSet("updated", 1, statefulInPlace, func(set *v1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = strategy
		}),
	}
}

// change changes the template of a set of either kind.
func (s *suite) change(set ctrl.Object, change func(*corev1.PodTemplateSpec)) {
	s.Helper()
	switch set := set.(type) {
	case *v1alpha1.CloneSet:
		patch(s, set, func(set *v1alpha1.CloneSet) { change(&set.Spec.Template) })
	case *v1beta1.StatefulSet:
		patch(s, set, func(set *v1beta1.StatefulSet) { change(&set.Spec.Template) })
	default:
		s.Fatalf("unknown kind %T", set)
	}
}

// TestImageInPlace changes the image of a pod: the pod stays, and its container is restarted once.
// The new image has the ID of the old one, so only the container shows the update.
func TestImageInPlace(t *testing.T) {
	t.Parallel()
	for kind, set := range sets() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSuite(t)
			image := s.newImage()
			s.Create(set)
			before := s.Pod(s.settled("updated", 1)[0])

			s.change(set, func(template *corev1.PodTemplateSpec) {
				template.Spec.Containers[0].Image = image
				template.Labels["example.com/changed"] = "yes"
			})
			s.settled("updated", 1, runs(image), restartedOnce(before))
			after := s.Pod(before.Name)
			if got := after.Labels["example.com/changed"]; got != "yes" {
				t.Errorf("label %q, want that of the new template", got)
			}
			if c := condition(after, pub.InPlaceUpdateReady); c == nil || c.Status != corev1.ConditionTrue {
				t.Errorf("condition %s: %+v, want True", pub.InPlaceUpdateReady, c)
			}
			if after.Labels["controller-revision-hash"] == before.Labels["controller-revision-hash"] {
				t.Error("the pod has the old revision")
			}
			s.Eventually("the status counts the updated pod", func(ctx context.Context) error { return s.updated(ctx, set, 1) })
		})
	}
}

// restartedOnce expects the same pod, with another container that was restarted once.
func restartedOnce(before *corev1.Pod) func(*corev1.Pod) error {
	return func(after *corev1.Pod) error {
		if after.UID != before.UID || after.Spec.NodeName != before.Spec.NodeName || after.Status.PodIP != before.Status.PodIP {
			return fmt.Errorf("pod %s was replaced", after.Name)
		}
		old, now := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
		if now.RestartCount != old.RestartCount+1 || now.ContainerID == old.ContainerID {
			return fmt.Errorf("pod %s: %d restarts, container %s, want one restart", after.Name, now.RestartCount, now.ContainerID)
		}
		return nil
	}
}

// updated expects that the status of a set counts updated and ready pods of its latest version.
func (s *suite) updated(ctx context.Context, set ctrl.Object, want int32) error {
	if err := s.Client.Get(ctx, ctrl.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	var observed int64
	var updated, ready int32
	switch set := set.(type) {
	case *v1alpha1.CloneSet:
		observed, updated, ready = set.Status.ObservedGeneration, set.Status.UpdatedReplicas, set.Status.UpdatedReadyReplicas
	case *v1beta1.StatefulSet:
		observed, updated, ready = set.Status.ObservedGeneration, set.Status.UpdatedReplicas, set.Status.UpdatedReadyReplicas
	}
	if observed != set.GetGeneration() || updated != want || ready != want {
		return fmt.Errorf("observed generation %d of %d, %d updated, %d of them ready, want %d",
			observed, set.GetGeneration(), updated, ready, want)
	}
	return nil
}

// gateOpen expects that the readiness gate of updates in place is open.
func gateOpen(pod *corev1.Pod) error {
	c := condition(pod, pub.InPlaceUpdateReady)
	return await.ErrorIf(c == nil || c.Status != corev1.ConditionTrue, "pod %s: condition %s: %+v", pod.Name, pub.InPlaceUpdateReady, c)
}

// TestResourcesInPlace changes the CPU request and limit: the kubelet resizes the container and does not
// restart it.
func TestResourcesInPlace(t *testing.T) {
	t.Parallel()
	cpu := func(request string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(request)},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
		}
	}
	for kind, set := range sets() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSuite(t)
			switch set := set.(type) {
			case *v1alpha1.CloneSet:
				set.Spec.Template.Spec.Containers[0].Resources = cpu("5m")
			case *v1beta1.StatefulSet:
				set.Spec.Template.Spec.Containers[0].Resources = cpu("5m")
			}
			s.Create(set)
			before := s.Pod(s.settled("updated", 1)[0])
			s.change(set, func(template *corev1.PodTemplateSpec) { template.Spec.Containers[0].Resources = cpu("7m") })
			s.settled("updated", 1, func(pod *corev1.Pod) error {
				status := pod.Status.ContainerStatuses[0]
				if pod.UID != before.UID || status.RestartCount != 0 {
					return fmt.Errorf("pod %s was replaced or restarted", pod.Name)
				}
				if status.Resources == nil || status.Resources.Requests.Cpu().String() != "7m" {
					return fmt.Errorf("pod %s: resources %+v, want 7m", pod.Name, status.Resources)
				}
				return nil
			})
			s.Eventually("the status counts the updated pod", func(ctx context.Context) error { return s.updated(ctx, set, 1) })
		})
	}
}

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
