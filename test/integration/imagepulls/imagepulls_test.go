// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepulls_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
)

type spec = v1alpha1.ImagePullJobSpec

func parallelism(n int32) func(*spec) {
	return func(s *spec) { s.Parallelism = new(intstr.FromInt32(n)) }
}

func attempts(timeout, limit int32) func(*spec) {
	return func(s *spec) {
		s.PullPolicy = &v1alpha1.ImagePullJobPullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &limit}
	}
}

func TestImagePulls(t *testing.T) {
	start(t, 100)
	for name, test := range map[string]func(t *testing.T){
		"pulls":             testPulls,
		"image is present":  testPresent,
		"attempts":          testAttempts,
		"timeout":           testTimeout,
		"quota 0":           testQuota,
		"quota for some":    testSomeQuota,
		"demanded requests": testDemandedRequests,
		"foreign pod":       testForeignPod,
		"node dies":         testNodeDies,
		"deadline and ttl":  testDeadline,
		"never":             testNever,
		"pod selector":      testPodSelector,
		"one pull per node": testPerNode,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func testPulls(t *testing.T) {
	w := newWorld(t, 12)
	w.create(parallelism(3), func(s *spec) { s.PullSecrets = []string{"registry"} })
	w.ends("Completed")
	w.counts("12 0 12 0")
	asked, most := w.asks()
	if most > 3 || len(asked) != 12 || sets.New(asked...).Len() != 12 {
		t.Errorf("at most %d pods, on %v", most, asked)
	}
	if s := w.job.Status; s.Cursor != w.NodeName("9") || s.StartTime == nil || s.Message != "12 of 12 nodes have the image." {
		t.Errorf("status %+v", s)
	}
	w.events("Completed")
}

func testPresent(t *testing.T) {
	w := newWorld(t, 0)
	for i := range 3 {
		w.join(fmt.Sprint(i), "docker.io/library/game:1")
	}
	w.create()
	w.ends("Completed")
	w.counts("3 0 3 0")
	if asked, _ := w.asks(); len(asked) > 0 {
		t.Errorf("pods on %v, although the nodes have the image", asked)
	}
	w.create(func(s *spec) { s.ImagePullPolicy = corev1.PullAlways })
	w.ends("Completed")
	if asked, _ := w.asks(); len(asked) != 3 {
		t.Errorf("pods on %v, want each node", asked)
	}
}

func testAttempts(t *testing.T) {
	w := newWorld(t, 2)
	w.kubelets(func(pod *corev1.Pod) string {
		if pod.Spec.NodeName == w.NodeName("0") {
			return "ErrImagePull"
		}
		return "InvalidImageName"
	})
	w.create(parallelism(2), attempts(600, 1))
	w.ends("NodesFailed")
	asked, most := w.asks()
	slices.Sort(asked)
	if s := w.job.Status; !slices.Equal(asked, []string{"0", "0", "1"}) || most > 2 ||
		!slices.Equal(s.FailedNodes, []string{w.NodeName("0"), w.NodeName("1")}) ||
		!strings.Contains(s.Message, ": ErrImagePull: text of the runtime") {
		t.Errorf("asked %v, status %+v", asked, s)
	}
	w.events("PullFailed", "NodesFailed")
}

func testTimeout(t *testing.T) {
	w := newWorld(t, 1)
	w.kubelets(func(*corev1.Pod) string { return "" })
	w.create(attempts(1, 0))
	w.ends("NodesFailed")
	if !strings.Contains(w.job.Status.Message, "pullPolicy.timeoutSeconds, 1") {
		t.Errorf("message %q", w.job.Status.Message)
	}
}

func testQuota(t *testing.T) {
	w := newWorld(t, 5)
	w.Quota("few", "count/pods", "0")
	w.create(parallelism(2))
	w.ends("NodesFailed")
	w.counts("5 0 0 5")
	w.has(v1alpha1.ImagePullJobPullsCreated, metav1.ConditionFalse, "Refused")
	if !strings.Contains(w.job.Status.Message, "exceeded quota: few") {
		t.Errorf("message %q", w.job.Status.Message)
	}
	w.events("FailedCreate")
}

// testSomeQuota checks that a quota that the job itself uses up fails no node.
func testSomeQuota(t *testing.T) {
	w := newWorld(t, 3)
	w.Quota("few", "count/pods", "1")
	w.kubelets(func(*corev1.Pod) string { return "" })
	w.create(parallelism(3))
	w.has(v1alpha1.ImagePullJobPullsCreated, metav1.ConditionFalse, "Refused")
	w.counts("3 1 0 0")
}

// testDemandedRequests checks that pods request cpu and memory only if a LimitRange demands it.
func testDemandedRequests(t *testing.T) {
	w := newWorld(t, 2)
	w.kubelets(func(*corev1.Pod) string { return "" })
	requests := func(cpu, memory string) {
		w.Helper()
		w.until("the pods request "+cpu+" and "+memory, func() error {
			pods := &corev1.PodList{}
			w.List(pods)
			for i := range pods.Items {
				if got := pods.Items[i].Spec.Containers[0].Resources.Requests; got.Cpu().String() != cpu || got.Memory().String() != memory {
					return fmt.Errorf("requests %v", got)
				}
			}
			return await.ErrorIf(len(pods.Items) != 2, "%d pods", len(pods.Items))
		})
	}
	limits := &corev1.LimitRange{ObjectMeta: w.Meta("defaults")}
	limits.Spec.Limits = []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
	}}
	w.Create(limits)
	w.create(parallelism(2))
	requests("0", "0")
	w.release("sha256:1")
	w.ends("Completed")
	limits.Spec.Limits[0].Min = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
	expect.NoError(t, server.Client.Update(t.Context(), limits))
	w.kubelets(func(*corev1.Pod) string { return "" })
	w.create(parallelism(2), func(s *spec) { s.Image = "game:2" })
	requests("1m", "16Mi")
	w.release("sha256:1")
	w.ends("Completed")
	if refused := meta.FindStatusCondition(w.job.Status.Conditions, v1alpha1.ImagePullJobPullsCreated); refused != nil {
		t.Errorf("condition %+v", refused)
	}
}

// testForeignPod checks a pod of the job's namespace that has the name of a pull, and one of a hostile namespace that names
// the job as its controller, with a version that is not served: garbage collectors leave such pods alone.
func testForeignPod(t *testing.T) {
	w := newWorld(t, 2)
	w.create(parallelism(0))
	w.has(v1alpha1.ImagePullJobComplete, metav1.ConditionFalse, "Paused")
	foreign := imagepull.Pod(w.job, w.NodeName("0"), 0)
	foreign.OwnerReferences = nil
	hostile := imagepull.Pod(w.job, w.NodeName("1"), 0)
	hostile.Namespace, hostile.OwnerReferences[0].APIVersion = server.Namespace(t), "apps.kruise.io/v9"
	for _, pod := range []*corev1.Pod{foreign, hostile} {
		w.Create(pod)
	}
	w.edit(parallelism(1))
	w.has(v1alpha1.ImagePullJobComplete, metav1.ConditionTrue, "NodesFailed")
	if s := w.job.Status; s.Failed != 1 || s.Succeeded != 1 || !strings.Contains(s.Message, "exists and does not belong to the set") {
		t.Errorf("status %+v", s)
	}
	for _, pod := range []*corev1.Pod{foreign, hostile} {
		after := &corev1.Pod{}
		expect.NoError(t, server.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), after))
		if after.UID != pod.UID || after.ResourceVersion != pod.ResourceVersion {
			t.Errorf("the pod of somebody else in namespace %s has changed", pod.Namespace)
		}
	}
}

func testNodeDies(t *testing.T) {
	w := newWorld(t, 2)
	w.kubelets(func(pod *corev1.Pod) string {
		if pod.Spec.NodeName == w.NodeName("0") {
			return ""
		}
		return "sha256:1"
	})
	w.create(attempts(600, 0))
	w.until("a pull is active", func() error { return w.atLeast(1) })
	w.set("0", corev1.NodeReady, corev1.ConditionUnknown)
	w.counts("2 0 1 0")
	w.has(v1alpha1.ImagePullJobComplete, metav1.ConditionFalse, "Waiting")
	w.release("sha256:1")
	w.set("0", corev1.NodeReady, corev1.ConditionTrue)
	w.ends("Completed")
	if _, most := w.asks(); most > 1 {
		t.Errorf("at most %d pods, want 1", most)
	}
}

// atLeast returns an error if fewer than n nodes were asked.
func (w *world) atLeast(n int) error {
	asked, _ := w.asks()
	return await.ErrorIf(len(asked) < n, "asked %v", asked)
}

func testDeadline(t *testing.T) {
	w := newWorld(t, 3)
	w.kubelets(func(pod *corev1.Pod) string {
		if pod.Spec.NodeName == w.NodeName("0") {
			return "sha256:1"
		}
		return ""
	})
	w.create(func(s *spec) {
		s.CompletionPolicy.ActiveDeadlineSeconds, s.CompletionPolicy.TTLSecondsAfterFinished = new(int64(2)), new(int32(2))
	})
	w.ends("DeadlineExceeded")
	w.counts("3 0 1 2")
	w.Gone(w.job)
}

func testNever(t *testing.T) {
	w := newWorld(t, 2)
	w.create(func(s *spec) { s.CompletionPolicy.Type = v1alpha1.CompleteNever })
	w.has(v1alpha1.ImagePullJobComplete, metav1.ConditionTrue, "Completed")
	w.ReadyNode("-first")
	w.counts("3 0 3 0")
	w.has(v1alpha1.ImagePullJobComplete, metav1.ConditionTrue, "Completed")
	if asked, _ := w.asks(); !slices.Equal(asked, []string{"0", "1", "-first"}) || w.job.Status.CompletionTime != nil {
		t.Errorf("asked %v, status %+v", asked, w.job.Status)
	}
}

func testPodSelector(t *testing.T) {
	w := newWorld(t, 3)
	pod := func(name, node string) {
		pod := imagepull.Pod(w.newJob(), w.NodeName(node), 0)
		pod.Name, pod.Labels, pod.OwnerReferences = name, map[string]string{"app": "game"}, nil
		w.Create(pod)
	}
	pod("a", "1")
	w.create(func(s *spec) {
		s.Selector, s.CompletionPolicy.Type = nil, v1alpha1.CompleteNever
		s.PodSelector = &v1alpha1.ImagePullJobPodSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}}
	})
	w.counts("1 0 1 0")
	pod("b", "2")
	w.counts("2 0 2 0")
}

// testPerNode checks that the jobs of a node pull one after the other.
func testPerNode(t *testing.T) {
	w := newWorld(t, 2)
	w.kubelets(func(*corev1.Pod) string { return "" })
	w.create(parallelism(2))
	w.counts("2 2 0 0")
	first := w.job
	w.create(parallelism(2), func(s *spec) { s.Image = "game:2" })
	w.counts("2 0 0 0")
	w.release("sha256:1")
	w.ends("Completed")
	w.job = first
	w.ends("Completed")
	if _, most := w.asks(); most > 2 {
		t.Errorf("at most %d pods on two nodes", most)
	}
}
