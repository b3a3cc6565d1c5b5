// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imagepulls_test tests ImagePullJobs with a real API server. The tests play the kubelets.
package imagepulls_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// server is the API server that the tests share.
var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server) }

// install applies the rights and policies of the program for ImagePullJobs.
func install(t *testing.T) *rest.Config {
	t.Helper()
	return program.Install(t, server, "config/imagepulls/rbac.yaml", "config/imagepulls/author.yaml")
}

// start runs seamark-workloads with at most total pulls, until the test ends or the function is called.
func start(t *testing.T, total int32) (stop func()) {
	t.Helper()
	return program.Start(t, install(t), func(options *workloads.Options, enabled *configv1alpha1.WorkloadControllers) {
		options.ImagePull.Total, enabled.ImagePullJob.Enabled = total, new(true)
	})
}

// world is a namespace with jobs, nodes of its own, and their kubelets.
type world struct {
	*env.World
	job *v1alpha1.ImagePullJob

	mu sync.Mutex
	// reports returns what a kubelet reports about a new pod: a reason to wait, an image ID that begins with sha256, or
	// nothing.
	reports func(pod *corev1.Pod) string
	// pods are those that exist, most is the highest number of them, and asked the names of their nodes in order.
	pods  map[types.UID]*corev1.Pod
	most  int
	asked []string
}

// newWorld returns a world with nodes whose kubelets pull all images.
func newWorld(t *testing.T, nodes int) *world {
	t.Helper()
	w := &world{World: env.NewWorld(t, server), pods: map[types.UID]*corev1.Pod{}, reports: func(*corev1.Pod) string { return "sha256:1" }}
	// The pods of pulls satisfy the strictest standard.
	w.Patch(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`,
	)
	for i := range nodes {
		w.ReadyNode(fmt.Sprint(i))
	}
	w.FollowPods(w.see)
	return w
}

// join adds a ready node that has the images.
func (w *world) join(suffix string, images ...string) {
	w.Helper()
	node := w.ReadyNode(suffix)
	node.Status.Images = []corev1.ContainerImage{{Names: images}}
	w.UpdateStatus(node)
}

// set sets a condition of a node.
func (w *world) set(suffix string, kind corev1.NodeConditionType, status corev1.ConditionStatus) {
	w.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.NodeName(suffix)}}
	w.Get(node)
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()})
	w.UpdateStatus(node)
}

// see plays the kubelets.
func (w *world) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok || metav1.GetControllerOfNoCopy(pod) == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch event.Type {
	case watch.Deleted:
		delete(w.pods, pod.UID)
	case watch.Added:
		w.pods[pod.UID] = pod
		w.most = max(w.most, len(w.pods))
		w.asked = append(w.asked, pod.Spec.NodeName[len(w.Namespace)+1:])
		w.report(pod, w.reports(pod))
	}
}

// report writes the status of a pod.
func (w *world) report(pod *corev1.Pod, what string) {
	status := corev1.ContainerStatus{
		Name: "pull", Image: "x", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: what, Message: "text of the runtime"}},
	}
	switch {
	case what == "":
		return
	case len(what) > 6 && what[:6] == "sha256":
		status = corev1.ContainerStatus{
			Name: "pull", Image: "x", ImageID: what, State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError"},
			},
		}
	}
	pod = pod.DeepCopy()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	// A pod whose status was reported before has a conflict.
	if err := client.IgnoreNotFound(server.Client.Status().Update(context.Background(), pod)); err != nil && !apierrors.IsConflict(err) && w.Context().Err() == nil {
		w.Error(err)
	}
}

// release lets the kubelets report about all pods.
func (w *world) release(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = func(*corev1.Pod) string { return what }
	for _, pod := range w.pods {
		w.report(pod, what)
	}
}

// kubelets sets what the kubelets report about new pods.
func (w *world) kubelets(reports func(pod *corev1.Pod) string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = reports
}

// asks returns the nodes of all pods, and most the highest number of pods.
func (w *world) asks() (asked []string, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.asked...), w.most
}

// newJob returns a job for the nodes of the world.
func (w *world) newJob(edits ...func(*v1alpha1.ImagePullJobSpec)) *v1alpha1.ImagePullJob {
	job := &v1alpha1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, GenerateName: "pull-"}}
	job.Spec.Image, job.Spec.Parallelism = "game:1", new(intstr.FromInt32(1))
	job.Spec.Selector = &v1alpha1.ImagePullJobNodeSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"world": w.Namespace}}}
	for _, edit := range edits {
		edit(&job.Spec)
	}
	return job
}

// create creates the job, and deletes it at the end of the test.
func (w *world) create(edits ...func(*v1alpha1.ImagePullJobSpec)) {
	w.Helper()
	w.job = w.newJob(edits...)
	w.CreateFor(w.job)
}

// edit changes the specification.
func (w *world) edit(change func(*v1alpha1.ImagePullJobSpec)) {
	w.Helper()
	w.Edit(w.job, func() { change(&w.job.Spec) })
}

// until waits until the check of the job, which it reads, succeeds.
func (w *world) until(what string, check func() error) {
	w.Helper()
	w.Shows(w.job, what, check)
}

// counts waits until the status has the numbers: desired, active, succeeded, failed.
func (w *world) counts(want string) {
	w.Helper()
	w.until("the numbers of the status are "+want, func() error {
		s := w.job.Status
		got := fmt.Sprintf("%d %d %d %d", s.Desired, s.Active, s.Succeeded, s.Failed)
		return await.ErrorIf(got != want, "%s: %s", got, s.Message)
	})
}

// has waits for a condition.
func (w *world) has(kind string, status metav1.ConditionStatus, reason string) {
	w.Helper()
	w.Condition(w.job, &w.job.Status.Conditions, kind, status, reason)
}

// ends waits until the job has ended and its pods are gone.
func (w *world) ends(reason string) {
	w.Helper()
	w.has(v1alpha1.ImagePullJobComplete, metav1.ConditionTrue, reason)
	w.until("the pods are gone", func() error {
		pods := &corev1.PodList{}
		w.List(pods, client.HasLabels{v1alpha1.ImagePullJobKey})
		return await.ErrorIf(len(pods.Items) > 0 || w.job.Status.CompletionTime == nil, "%d pods, status %+v", len(pods.Items), w.job.Status)
	})
}

// events waits for events with the reasons.
func (w *world) events(reasons ...string) {
	w.Helper()
	w.until("events exist", func() error {
		for _, reason := range reasons {
			if len(w.Events(reason)) == 0 {
				return fmt.Errorf("no event %s", reason)
			}
		}
		return nil
	})
}
