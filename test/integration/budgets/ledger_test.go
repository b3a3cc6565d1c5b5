// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budgets_test tests budgets of unavailable pods with a real API server and the disruption controller of Kubernetes.
package budgets_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/workloads/ledger"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/kubelet"
)

// server is the API server that the tests of this package share.
var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server) }

const (
	oldImage = "program:1"
	newImage = "program:2"
)

// world is a namespace with pods of one budget, kubelets and the disruption controller.
type world struct {
	*env.World
	kubelets *kubelet.Kubelet
	budget   *policyv1.PodDisruptionBudget

	mu sync.Mutex
	// restarting are the pods that are not ready.
	restarting sets.Set[string]
}

// newWorld creates a budget of at least so many pods, and the pods.
func newWorld(t *testing.T, least int32, pods int) *world {
	t.Helper()
	w := &world{World: env.NewWorld(t, server), restarting: sets.New[string]()}
	w.kubelets = w.RunKubelets(func(pod *corev1.Pod) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.restarting.Has(pod.Name)
	})
	server.RunControllerManager(t, "disruption-controller")
	minimum := intstr.FromInt32(least)
	w.budget = &policyv1.PodDisruptionBudget{ObjectMeta: w.Meta("budget"), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &minimum, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "program"}},
	}}
	w.Create(w.budget)
	for range pods {
		w.Create(w.newPod())
	}
	w.permits(int32(pods) - least)
	return w
}

func (w *world) newPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, GenerateName: "program-", Labels: map[string]string{"app": "program"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: oldImage}}},
	}
}

// permits waits until the controller has counted so many disruptions.
func (w *world) permits(count int32) {
	w.Helper()
	w.Shows(w.budget, fmt.Sprintf("%d disruptions", count), func() error {
		if status := w.budget.Status; status.ObservedGeneration != w.budget.Generation || status.DisruptionsAllowed != count {
			return fmt.Errorf("status %+v", status)
		}
		return nil
	})
}

// pods returns the pods that are ready and not terminating.
func (w *world) pods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := w.Client.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
		return nil, err
	}
	var ready []corev1.Pod
	for _, pod := range list.Items {
		if available(&pod) {
			ready = append(ready, pod)
		}
	}
	return ready, nil
}

func available(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// errRefused is that of a disruption that the budget does not permit now.
var errRefused = errors.New("refused")

// charge charges a pod in the status of the budget, for an update if the target is not empty. It returns errRefused if it is not
// permitted, or another client has written the budget.
func (w *world) charge(ctx context.Context, pod, target string) error {
	budget := &policyv1.PodDisruptionBudget{}
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(w.budget), budget); err != nil {
		return err
	}
	decision := ledger.Charge(budget, []ledger.Disruption{{Pod: pod, Target: target}}, time.Now())
	if len(decision.Permitted) == 0 {
		return errRefused
	}
	return w.write(ctx, decision.Charged)
}

// release removes the charge of an update.
func (w *world) release(ctx context.Context, pod, target string) error {
	budget := &policyv1.PodDisruptionBudget{}
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(w.budget), budget); err != nil {
		return err
	}
	return w.write(ctx, ledger.Release(budget, []ledger.Disruption{{Pod: pod, Target: target}}))
}

func (w *world) write(ctx context.Context, budget *policyv1.PodDisruptionBudget) error {
	if budget == nil {
		return nil
	}
	err := w.Client.Status().Update(ctx, budget)
	if apierrors.IsConflict(err) {
		return errRefused
	}
	return err
}

// TestChargesCountAsEvictions charges pods in the status of a budget, and looks at what the disruption controller and the API server
// make of it.
func TestChargesCountAsEvictions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 5)
	pods, err := w.pods(t.Context())
	expect.NoError(t, err)
	first, second := &pods[0], &pods[1]

	expect.NoError(t, w.charge(t.Context(), first.Name, newImage))
	// The controller counts the pod as unhealthy, and keeps the charge.
	w.Shows(w.budget, "the pod as unhealthy", func() error {
		status := w.budget.Status
		if _, kept := status.DisruptedPods[first.Name]; !kept || status.CurrentHealthy != 4 || status.DisruptionsAllowed != 1 {
			return fmt.Errorf("status %+v", status)
		}
		return nil
	})
	// The same pod again costs nothing.
	version := w.budget.ResourceVersion
	expect.NoError(t, w.charge(t.Context(), first.Name, newImage))
	w.Get(w.budget)
	expect.Equal(t, "resource version after a repeated charge", version, w.budget.ResourceVersion)

	// Evictions share the count, whichever is first.
	expect.NoError(t, w.Client.SubResource("eviction").Create(t.Context(), second, &policyv1.Eviction{}))
	if err := w.Client.SubResource("eviction").Create(t.Context(), &pods[2], &policyv1.Eviction{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("eviction beyond the budget: %v, want 429", err)
	}
	if err := w.charge(t.Context(), pods[2].Name, ""); !errors.Is(err, errRefused) {
		t.Errorf("charge beyond the budget: %v, want a refusal", err)
	}

	// A charge that is released permits another disruption. The name of a pod that is gone leaves the status.
	w.Gone(second)
	w.Create(w.newPod())
	expect.NoError(t, w.releaseUntil(t.Context(), first.Name, newImage))
	w.permits(2)
	expect.Equal(t, "charges that are left", 0, len(w.budget.Status.DisruptedPods))
}

// TestStatusOfBudgetsKeepsAnnotations checks that the status of a budget can be charged together with an annotation, in one write that
// conflicts with another one.
func TestStatusOfBudgetsKeepsAnnotations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 2)
	charge := func(version string) error {
		return w.Client.Status().Patch(t.Context(), w.budget.DeepCopy(), env.MergePatch(fmt.Sprintf(
			`{"metadata": {"resourceVersion": %q, "annotations": {"example.com/note": "x"}}, `+
				`"status": {"disruptionsAllowed": 0}, "spec": {"minAvailable": 2}}`, version)))
	}
	version := w.budget.ResourceVersion
	expect.NoError(t, charge(version))
	if err := charge(version); !apierrors.IsConflict(err) {
		t.Errorf("charge of an old version: %v, want a conflict", err)
	}
	w.Get(w.budget)
	expect.Equal(t, "annotation", "x", w.budget.Annotations["example.com/note"])
	expect.Equal(t, "minimum, which the status endpoint does not write", 1, w.budget.Spec.MinAvailable.IntValue())
}

// TestBudgetHoldsForEveryOperation deletes, evicts and updates the pods of one budget at the same time. At no event are fewer pods
// available than it demands.
func TestBudgetHoldsForEveryOperation(t *testing.T) {
	t.Parallel()
	const pods, least, operations = 12, 8, 40
	w := newWorld(t, least, pods)
	w.watch(least)
	var deleted, evicted, updated atomic.Int32
	var actors sync.WaitGroup
	ctx := t.Context()
	for range 5 {
		actors.Go(func() { w.repeat(ctx, &deleted, operations, w.deleteOne) })
	}
	for range 3 {
		actors.Go(func() { w.repeat(ctx, &evicted, operations, w.evictOne) })
		actors.Go(func() { w.repeat(ctx, &updated, operations, w.updateOne) })
	}
	actors.Wait()
	t.Logf("%d deletions, %d evictions, %d updates", deleted.Load(), evicted.Load(), updated.Load())
	w.permits(pods - least)
}

// watch fails the test if fewer pods are available, and replaces those that are gone.
func (w *world) watch(least int) {
	ready := map[types.UID]bool{}
	w.FollowPods(func(event watch.Event) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return
		}
		delete(ready, pod.UID)
		if event.Type != watch.Deleted && available(pod) {
			ready[pod.UID] = true
		}
		if event.Type == watch.Deleted {
			if err := w.Client.Create(context.Background(), w.newPod()); err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				w.Error(err)
			}
		}
		if event.Type != watch.Added && len(ready) < least {
			w.Errorf("%d pods are available after pod %s changed at version %s, want at least %d", len(ready), pod.Name, pod.ResourceVersion, least)
		}
	})
}

// repeat repeats an operation on any available pod until it has succeeded so often in total. The budget refuses some.
func (w *world) repeat(ctx context.Context, count *atomic.Int32, times int32, operation func(context.Context, *corev1.Pod) error) {
	for count.Load() < times && ctx.Err() == nil {
		pods, err := w.pods(ctx)
		if err == nil && len(pods) > 0 {
			err = operation(ctx, &pods[rand.IntN(len(pods))])
		}
		switch {
		case err == nil:
			count.Add(1)
		case errors.Is(err, errRefused), apierrors.IsTooManyRequests(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
			pause(ctx, 50*time.Millisecond)
		case ctx.Err() == nil:
			w.Error(err)
			return
		}
	}
}

// pause waits for up to the time, as a client that is slow between two requests.
func pause(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(most)):
	}
}

// deleteOne charges a pod and deletes it later: other clients act in between.
func (w *world) deleteOne(ctx context.Context, pod *corev1.Pod) error {
	if err := w.charge(ctx, pod.Name, ""); err != nil {
		return err
	}
	pause(ctx, 200*time.Millisecond)
	return w.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
}

func (w *world) evictOne(ctx context.Context, pod *corev1.Pod) error {
	return w.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{})
}

// updateOne charges a pod, changes its image, and releases the charge when the pod is ready with the new image.
func (w *world) updateOne(ctx context.Context, pod *corev1.Pod) error {
	image := newImage
	if pod.Spec.Containers[0].Image == newImage {
		image = oldImage
	}
	if err := w.charge(ctx, pod.Name, image); err != nil {
		return err
	}
	w.restart(pod.Name, true)
	defer w.restart(pod.Name, false)
	body := fmt.Sprintf(`{"metadata": {"uid": %q, "resourceVersion": %q}, "spec": {"containers": [{"name": "main", "image": %q}]}}`,
		pod.UID, pod.ResourceVersion, image)
	if err := w.Client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(body))); err != nil {
		// Nothing was updated.
		return errors.Join(err, w.releaseUntil(ctx, pod.Name, image))
	}
	pause(ctx, 200*time.Millisecond)
	w.restart(pod.Name, false)
	for ctx.Err() == nil {
		now := &corev1.Pod{}
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(pod), now); err != nil {
			return err
		}
		if now.DeletionTimestamp != nil || now.UID != pod.UID {
			return nil
		}
		if statuses := now.Status.ContainerStatuses; available(now) && len(statuses) > 0 && statuses[0].Image == image {
			return w.releaseUntil(ctx, pod.Name, image)
		}
		pause(ctx, 20*time.Millisecond)
	}
	return ctx.Err()
}

// releaseUntil releases the charge of an update, again if another client has written the budget.
func (w *world) releaseUntil(ctx context.Context, pod, target string) error {
	for {
		if err := w.release(ctx, pod, target); !errors.Is(err, errRefused) {
			return err
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// restart sets whether a pod is not ready.
func (w *world) restart(pod string, restarting bool) {
	w.mu.Lock()
	if restarting {
		w.restarting.Insert(pod)
	} else {
		w.restarting.Delete(pod)
	}
	w.mu.Unlock()
	w.kubelets.Again()
}
