// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package broadcastjobs_test tests BroadcastJobs with a real API server. The tests play the scheduler and the kubelets.
package broadcastjobs_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// server is the API server that the tests share.
var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server) }

// start runs seamark-workloads until the test ends or the function is called.
func start(t *testing.T) (stop func()) {
	t.Helper()
	cfg := program.Install(t, server, "config/broadcastjobs/rbac.yaml", "config/cronjobs/rbac.yaml", "config/cronjobs/policy.yaml", "config/policies/guards.yaml")
	return program.Start(t, cfg, func(_ *workloads.Options, enabled *configv1alpha1.WorkloadControllers) {
		enabled.BroadcastJob.Enabled, enabled.AdvancedCronJob.Enabled = new(true), new(true)
	})
}

// world is a job, nodes of its own, and their kubelets.
type world struct {
	*env.World
	job *v1alpha1.BroadcastJob

	mu sync.Mutex
	// becomes is what becomes of the pod of a node: Succeeded or Failed, or it runs.
	becomes func(node string) corev1.PodPhase
	// pods are those that exist, most is the highest number of them that had not ended, and ran counts those of each node.
	pods map[types.UID]*corev1.Pod
	most int
	ran  map[string]int
}

// newWorld returns a world with nodes whose pods succeed.
func newWorld(t *testing.T, nodes ...string) *world {
	t.Helper()
	w := &world{
		World: env.NewWorld(t, server), pods: map[types.UID]*corev1.Pod{}, ran: map[string]int{},
		becomes: func(string) corev1.PodPhase { return corev1.PodSucceeded },
	}
	for _, node := range nodes {
		w.ReadyNode(node)
	}
	w.FollowPods(w.see)
	return w
}

// see plays the scheduler and the kubelets.
func (w *world) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok || metav1.GetControllerOfNoCopy(pod) == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if event.Type == watch.Deleted {
		delete(w.pods, pod.UID)
		return
	}
	node := nodefit.Target(pod)[len(w.Namespace)+1:]
	if w.pods[pod.UID] == nil {
		w.ran[node]++
	}
	w.pods[pod.UID] = pod
	running := 0
	for _, each := range w.pods {
		if !planning.Finished(each) {
			running++
		}
	}
	w.most = max(w.most, running)
	if pod.DeletionTimestamp != nil {
		w.check(server.Client.Delete(context.Background(), pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
	} else if phase := w.becomes(node); phase != "" && phase != pod.Status.Phase && !planning.Finished(pod) {
		w.end(pod, phase)
	}
}

// end lets a pod end, or run.
func (w *world) end(pod *corev1.Pod, phase corev1.PodPhase) {
	pod = pod.DeepCopy()
	pod.Status.Phase = phase
	w.check(server.Client.Status().Update(context.Background(), pod))
}

func (w *world) check(err error) {
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) && w.Context().Err() == nil {
		w.Error(err)
	}
}

// let changes what becomes of pods, also of those that exist.
func (w *world) let(becomes func(node string) corev1.PodPhase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.becomes = becomes
	for _, pod := range w.pods {
		if phase := becomes(nodefit.Target(pod)[len(w.Namespace)+1:]); phase != "" && !planning.Finished(pod) && pod.DeletionTimestamp == nil {
			w.end(pod, phase)
		}
	}
}

// all returns a function for let.
func all(phase corev1.PodPhase) func(string) corev1.PodPhase {
	return func(string) corev1.PodPhase { return phase }
}

// ranOn returns how many pods each node got, and the highest number of pods at a time.
func (w *world) ranOn() (pods string, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.ran), w.most
}

func (w *world) spec() v1alpha1.BroadcastJobSpec {
	return v1alpha1.BroadcastJobSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "report"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "report:1"}}, NodeSelector: map[string]string{"world": w.Namespace},
			TerminationGracePeriodSeconds: new(int64(1)),
		},
	}}
}

// create creates the job.
func (w *world) create(change func(*v1alpha1.BroadcastJobSpec)) {
	w.Helper()
	w.job = &v1alpha1.BroadcastJob{ObjectMeta: w.Meta("report"), Spec: w.spec()}
	if change != nil {
		change(&w.job.Spec)
	}
	w.CreateFor(w.job)
}

// edit changes the specification.
func (w *world) edit(change func(*v1alpha1.BroadcastJobSpec)) {
	w.Helper()
	w.Edit(w.job, func() { change(&w.job.Spec) })
}

// until waits until the check of the job, which it reads, succeeds.
func (w *world) until(what string, check func() error) {
	w.Helper()
	w.Shows(w.job, what, check)
}

// is waits for the phase, with the numbers of nodes: desired, active, succeeded and failed.
func (w *world) is(phase v1alpha1.BroadcastJobPhase, numbers string) {
	w.Helper()
	w.until(fmt.Sprintf("%s %s", phase, numbers), func() error {
		s := &w.job.Status
		got := fmt.Sprintf("%d %d %d %d", s.Desired, s.Active, s.Succeeded, s.Failed)
		return await.ErrorIf(s.Phase != phase || got != numbers || s.ObservedGeneration != w.job.Generation, "%s %s, status %+v", s.Phase, got, s)
	})
}

// has waits for a condition.
func (w *world) has(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	w.Helper()
	return w.Condition(w.job, &w.job.Status.Conditions, kind, status, reason)
}

func number(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }
