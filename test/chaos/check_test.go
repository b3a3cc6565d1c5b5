// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/chaos/ledger"
	"github.com/seamark-dev/seamark/test/chaos/programs"
)

// recoveryLimit is the longest time after a fault until everything must be as it should be. It is the time that the
// kubelet and Kubernetes' controllers may need on a loaded machine, too.
const recoveryLimit = 4 * time.Minute

// restartInterval is how often daemons of Kubernetes that have ended are started while the world does not settle. The
// scheduler ends when its cache does not agree with the API server, and a kubelet would start it again.
const restartInterval = 20 * time.Second

// settle waits until everything is as it should be, and returns what is not, if the time is over.
func (w *world) settle(ctx context.Context) error {
	var last error
	restart := time.Now().Add(restartInterval)
	err := poll(ctx, recoveryLimit, func(ctx context.Context) bool {
		if time.Now().After(restart) {
			restart = time.Now().Add(restartInterval)
			if last = w.up(ctx); last != nil {
				return false
			}
		}
		problem := w.whole(ctx)
		if problem == nil {
			problem = w.allRun(ctx)
		}
		if ctx.Err() == nil { // At the end of the time, the last request says nothing.
			last = problem
		}
		return problem == nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// allRun checks that all programs run, and that one process of each leads, except for agents.
func (w *world) allRun(ctx context.Context) error {
	for name, want := range map[string]int{managerName: 1, workloadsName: 1, agentName: 0} {
		leaders := 0
		for _, program := range w.of(name) {
			sample, err := program.Sample(ctx)
			if err != nil {
				return err
			}
			if sample.Leads {
				leaders++
			}
		}
		if leaders != want {
			return fmt.Errorf("%s has %d leaders, want %d", name, leaders, want)
		}
	}
	return nil
}

// whole returns what is not as it should be.
func (w *world) whole(ctx context.Context) error {
	pods, markers := &corev1.PodList{}, &v1alpha1.PodProbeMarkerList{}
	if err := w.Client.List(ctx, pods, client.InNamespace(w.Namespace)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	if err := w.Client.List(ctx, markers, client.InNamespace(w.Namespace)); err != nil {
		return fmt.Errorf("list markers: %w", err)
	}
	var problems []error
	owned := map[string][]*corev1.Pod{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		name := "bare"
		if owner := metav1.GetControllerOf(pod); owner != nil {
			name = owner.Kind + "/" + owner.Name
		}
		owned[name] = append(owned[name], pod)
		switch wrong, err := w.watch.differences(pod, markers); {
		case !isReady(pod) || !isRunning(pod):
			problems = append(problems, fmt.Errorf("pod %s of %s does not run", pod.Name, name))
		case err != nil:
			return err
		case len(wrong) > 0:
			problems = append(problems, fmt.Errorf("pod %s: %v", pod.Name, slices.Sorted(maps.Values(wrong))))
		}
	}
	if have, may := w.watch.exclusive(pods, markers); len(have) != min(1, len(may)) || len(have) == 1 && !slices.Contains(may, have[0]) {
		problems = append(problems, fmt.Errorf("pods %q have the exclusive label, want one of %q", have, may))
	}
	problems = append(problems, w.accounted(pods), w.bareExist(owned["bare"]))
	for _, name := range slices.Sorted(maps.Keys(w.users.goals)) {
		problems = append(problems, w.reached(ctx, name, w.users.goals[name], owned[name]))
	}
	return errors.Join(problems...)
}

// accounted checks that the ledger has seen these pods, and the end of all others.
func (w *world) accounted(pods *corev1.PodList) error {
	var have, know []types.UID
	for i := range pods.Items {
		have = append(have, pods.Items[i].UID)
	}
	for _, pod := range w.ledger.Alive() {
		know = append(know, pod.UID)
	}
	slices.Sort(have)
	slices.Sort(know)
	if !slices.Equal(have, know) {
		return fmt.Errorf("the pods are %q, and the ledger knows %q", have, know)
	}
	return nil
}

// bareExist checks that the pods without a set are those that users want.
func (w *world) bareExist(pods []*corev1.Pod) error {
	var have []string
	for _, pod := range pods {
		have = append(have, pod.Name)
	}
	slices.Sort(have)
	if w.users.mayLose {
		maps.DeleteFunc(w.users.bare, func(name string, _ bool) bool { return !slices.Contains(have, name) })
	}
	if want := slices.Sorted(maps.Keys(w.users.bare)); !slices.Equal(have, want) {
		return fmt.Errorf("pods without a set are %q, want %q", have, want)
	}
	return nil
}

// reached checks that a set has its goal, and says so.
func (w *world) reached(ctx context.Context, name string, goal ledger.Goal, pods []*corev1.Pod) error {
	if len(pods) != goal.Replicas {
		return fmt.Errorf("%s has %d pods, want %d", name, len(pods), goal.Replicas)
	}
	for _, pod := range pods {
		if version := pod.Labels[ledger.VersionLabel]; version != goal.Version {
			return fmt.Errorf("%s: pod %s has template %s, want %s", name, pod.Name, version, goal.Version)
		}
	}
	key := client.ObjectKey{Namespace: w.Namespace, Name: path.Base(name)}
	set := w.users.set(name)
	if err := w.Client.Get(ctx, key, set); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	var observed int64
	var ready, updated int32
	switch set := set.(type) {
	case *v1alpha1.CloneSet:
		observed, ready, updated = set.Status.ObservedGeneration, set.Status.ReadyReplicas, set.Status.UpdatedReplicas
	case *v1beta1.StatefulSet:
		observed, ready, updated = set.Status.ObservedGeneration, set.Status.ReadyReplicas, set.Status.UpdatedReplicas
	case *v1alpha1.DaemonSet:
		observed, ready, updated = set.Status.ObservedGeneration, set.Status.NumberReady, set.Status.UpdatedNumberScheduled
	}
	if int(ready) != goal.Replicas || int(updated) != goal.Replicas || observed != set.GetGeneration() {
		return fmt.Errorf("%s: the status has %d ready and %d updated pods of generation %d, want %d of %d",
			name, ready, updated, observed, goal.Replicas, set.GetGeneration())
	}
	return nil
}

// usage is what the processes of a program use together: which of the replicas leads does not matter.
type usage map[string]programs.Sample

// use reads what all programs use.
func (w *world) use(ctx context.Context) (usage, error) {
	all := usage{}
	for _, name := range []string{managerName, agentName, workloadsName} {
		var sum programs.Sample
		for _, program := range w.of(name) {
			sample, err := program.Sample(ctx)
			if err != nil {
				return nil, fmt.Errorf("sample: %w", err)
			}
			w.Logf("  %s: %d starts, %+v", program.Name, program.Starts(), sample)
			sum.Goroutines += sample.Goroutines
			sum.Descriptors += sample.Descriptors
			sum.Threads += sample.Threads
			sum.RSS += sample.RSS
			sum.Writes += sample.Writes
		}
		all[name] = sum
	}
	return all, nil
}

// The growth that is noise: the runtime keeps threads and memory, and connections that are idle for a while.
const (
	moreGoroutines, moreDescriptors, moreThreads = 60, 24, 16
	moreMemory                                   = 64 << 20
)

// grown returns what has grown by more than noise between two idle points.
func grown(before, after usage) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		b, a := before[name], after[name]
		for _, count := range []struct {
			what              string
			before, now, more int
		}{
			{"goroutines", b.Goroutines, a.Goroutines, moreGoroutines},
			{"file descriptors", b.Descriptors, a.Descriptors, moreDescriptors},
			{"threads", b.Threads, a.Threads, moreThreads},
			{"bytes of memory", int(b.RSS), int(a.RSS), moreMemory}, //nolint:gosec // They fit.
		} {
			if count.now > count.before+count.more {
				found = append(found, fmt.Sprintf("%s: %d %s, and %d at the first idle point", name, count.now, count.what, count.before))
			}
		}
	}
	return found
}
