// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// The rows of the measure of SidecarSets.
const (
	rowUnselected         = "create a pod that no set selects, with 256 entries and 64 groups"
	rowUnselectedRequests = "requests to the injector for such pods"
	rowInjectedMedian     = "create a pod that a set selects, p50, more than bare"
	rowInjectedTail       = "create a pod that a set selects, p99, more than bare"
	rowInjectorCPU        = "injector's processor time per pod"
	rowEntered            = "from the creation of a set until its entry is written, p99 of 50"
	rowInjectorMemory     = "injector's memory (RSS), 256 sets"
	rowSidecarWrites      = "update of an image in 3,000 pods: writes per pod"
	rowSidecarUpdate      = "update of an image in 3,000 pods"
	rowSidecarIdle        = "writes of a restart of the controller with 8,000 sets"
	rowInjectorMemoryMany = "injector's memory (RSS), 8,000 sets"
)

// injected is the namespace of the pods.
const injected = "injected"

// sidecars is an API server with SidecarSets.
type sidecars struct {
	*harness.Bench
	server               *harness.Server
	controller, injector *harness.Program
}

// measureSidecarSets creates pods with no set, with as many sets as have entries of their own, and with many more.
func measureSidecarSets(b *harness.Bench) harness.Output {
	s := &sidecars{Bench: b, server: b.Server()}
	b.Must(s.server.Client.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: injected}}))
	pods := harness.Pick(b, 1000, 20)
	s.create("warm", pods)
	bare := s.create("bare", pods)
	s.controller, s.injector = s.server.SidecarSets()
	own := harness.Pick(b, 256, 3)
	s.sets(0, own)
	memory := float64(s.injector.Usage().RSS) / harness.Mebibyte
	before := s.injector.Usage().CPU
	with := s.create("set-0", pods)
	used := (s.injector.Usage().CPU - before).Seconds() * 1000 / float64(pods)
	writes, took := s.update("set-0", harness.Pick(b, 3000, 10))
	entered := s.entered(harness.Pick(b, 50, 2))
	s.sets(own, harness.Pick(b, 8000, 5)-own)
	requests := s.requests()
	other := s.create("other", pods)
	requests = s.requests() - requests
	// The same pods again, without entries, because the machine becomes slower and faster within minutes.
	many := float64(s.injector.Usage().RSS) / harness.Mebibyte
	idle := s.restart()
	s.controller.Stop()
	s.clear()
	again := s.create("again", pods)
	mean, noise := harness.Mean(other)
	floor, _ := harness.Mean(again)
	median := func(values []float64, p float64) float64 { return harness.Percentile(slices.Clone(values), p) }
	return harness.Output{
		Results: []harness.Result{
			{Name: rowUnselected, Value: mean, Unit: "ms", Floor: floor, FloorName: "without entries", Noise: noise, Budget: harness.RatioAtMost(1.03)},
			{Name: rowUnselectedRequests, Value: requests, Budget: harness.AtMost(0)},
			{Name: rowInjectedMedian, Value: max(0, median(with, 0.5)-median(bare, 0.5)), Unit: "ms", Budget: harness.AtMost(3)},
			{Name: rowInjectedTail, Value: max(0, median(with, 0.99)-median(bare, 0.99)), Unit: "ms", Budget: harness.AtMost(10)},
			{Name: rowInjectorCPU, Value: used, Unit: "ms", Budget: harness.AtMost(0.3)},
			{Name: rowEntered, Value: harness.Percentile(entered, 0.99), Unit: "ms", Budget: harness.AtMost(300)},
			{Name: rowInjectorMemory, Value: memory, Unit: "MiB", Budget: harness.AtMost(25)},
			{Name: rowSidecarWrites, Value: writes, Budget: harness.AtMost(2.01)},
			{Name: rowSidecarUpdate, Value: took.Seconds(), Unit: "s"},
			{Name: rowSidecarIdle, Value: idle, Budget: harness.AtMost(0)},
			{Name: rowInjectorMemoryMany, Value: many, Unit: "MiB", Budget: harness.AtMost(60)},
		},
		Notes: []string{fmt.Sprintf("One client creates %d pods one after the other. Of the 8,000 sets, the first 256 have an entry of their own, and the others, which are bound to their namespaces, share entries. "+
			"The pods of the update run on no node, and maxUnavailable is 100%%.", pods)},
	}
}

// create creates pods with a label one after the other, deletes them, and returns the times in ms.
func (s *sidecars) create(label string, n int) []float64 {
	s.Helper()
	times := make([]float64, n)
	for i := range n {
		start := time.Now()
		s.Must(s.server.Client.Create(s.Context(), pod(label, i)))
		times[i] = time.Since(start).Seconds() * 1000
	}
	s.remove(label)
	return times
}

func pod(label string, i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: injected, Name: fmt.Sprintf("%s-%d", label, i), Labels: map[string]string{"set": label}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}
}

func (s *sidecars) remove(label string) {
	s.Helper()
	s.Must(s.server.Client.DeleteAllOf(
		s.Context(), &corev1.Pod{}, client.InNamespace(injected), client.MatchingLabels{"set": label}, client.GracePeriodSeconds(0),
	))
}

// newSet returns a set for the pods with the label of its name.
func newSet(i int, namespace string) *v1alpha1.SidecarSet {
	name := fmt.Sprintf("set-%d", i)
	return &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SidecarSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"set": name}}, Namespace: namespace,
		Containers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "agent", Image: "agent:1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}}},
	}}
}

// sets creates n sets and waits until all have entries. The first one is bound to the namespace of the pods.
func (s *sidecars) sets(from, n int) {
	s.Helper()
	s.Each(n, harness.Clients, func(ctx context.Context, i int) error {
		namespace := fmt.Sprintf("namespace-%d", from+i)
		if from+i == 0 {
			namespace = injected
		}
		return s.server.Client.Create(ctx, newSet(from+i, namespace))
	})
	s.Until("all sets have entries", time.Second, func(ctx context.Context) (bool, error) {
		list := &v1alpha1.SidecarSetList{}
		if err := s.server.Client.List(ctx, list); err != nil {
			return false, err
		}
		entered := 0
		for i := range list.Items {
			if isEntered(&list.Items[i]) {
				entered++
			}
		}
		return entered >= from+n, nil
	})
	s.Idle(2 * time.Second)
}

func isEntered(set *v1alpha1.SidecarSet) bool {
	return meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.SidecarSetInjecting)
}

// entered creates sets one after the other and returns the times in ms until their entries are written.
func (s *sidecars) entered(n int) []float64 {
	s.Helper()
	var times []float64
	for i := range n {
		set := newSet(1_000_000+i, "namespace-0")
		start := time.Now()
		s.Must(s.server.Client.Create(s.Context(), set))
		s.Until("the set has an entry", 5*time.Millisecond, func(ctx context.Context) (bool, error) {
			err := s.server.Client.Get(ctx, client.ObjectKeyFromObject(set), set)
			return isEntered(set), err
		})
		times = append(times, time.Since(start).Seconds()*1000)
		s.Must(s.server.Client.Delete(s.Context(), set))
		// Writes of entries may take a tenth of the time.
		s.Idle(2 * time.Second)
	}
	return times
}

// update changes the image of a set with n pods, and returns the writes per pod and the time.
func (s *sidecars) update(name string, n int) (float64, time.Duration) {
	s.Helper()
	s.Each(n, harness.Clients, func(ctx context.Context, i int) error { return s.server.Client.Create(ctx, pod(name, i)) })
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	reaches := func(what string, count func(*v1alpha1.SidecarSetStatus) int32) {
		s.Until(what, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
			err := s.server.Client.Get(ctx, client.ObjectKeyFromObject(set), set)
			return int(count(&set.Status)) == n, err
		})
	}
	reaches("all pods match", func(status *v1alpha1.SidecarSetStatus) int32 { return status.UpdatedPods })
	s.Idle(6 * time.Second)
	var took time.Duration
	counted := s.server.Counted(func() {
		start := time.Now()
		before := set.DeepCopy()
		set.Spec.Containers[0].Image, set.Spec.UpdateStrategy.MaxUnavailable = "agent:2", new(intstr.FromString("100%"))
		s.Must(s.server.Client.Patch(s.Context(), set, client.MergeFrom(before)))
		reaches("all pods are updated", func(status *v1alpha1.SidecarSetStatus) int32 {
			if status.ObservedGeneration != set.Generation {
				return -1
			}
			return status.UpdatedPods
		})
		took = time.Since(start)
		s.Idle(6 * time.Second)
	})
	s.remove(name)
	return float64(total(counted)-1) / float64(n), took
}

// requests returns the requests that the injector has answered.
func (s *sidecars) requests() float64 {
	s.Helper()
	total, err := s.injector.Total(s.Context(), "seamark_injector_pods_total")
	s.Must(err)
	return total
}

// restart restarts the controller and returns its writes.
func (s *sidecars) restart() float64 {
	s.Helper()
	return float64(total(s.server.Counted(func() {
		s.controller.Restart()
		s.controller.Runs(reconciles, 1)
		s.Idle(harness.Pick(s.Bench, 30*time.Second, 8*time.Second))
	})))
}

// clear deletes all entries.
func (s *sidecars) clear() {
	s.Helper()
	var wait sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wait.Go(func() {
			_, errs[i] = s.server.Raw.Delete().AbsPath(
				"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", fmt.Sprintf("seamark-sidecarsets-%d", i),
			).DoRaw(s.Context())
		})
	}
	wait.Wait()
	s.Must(errors.Join(errs...))
	s.Idle(3 * time.Second)
}
