// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/test/crash"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// TestLeaderWithAnOldCacheCreatesNoSurplus starts a process whose cache does not have the pods that another one has created.
// A pod with the next name was deleted since: without a look at the API server, the process would create it again.
func TestLeaderWithAnOldCacheCreatesNoSurplus(t *testing.T) {
	start := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for name, created := range map[string]time.Time{
		"before it is the leader": start.Add(-time.Minute), "a minute later by a clock that is ahead": start.Add(time.Minute), "later": start.Add(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			set := &v1alpha1.CloneSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid", Generation: 1, CreationTimestamp: metav1.NewTime(created)},
				Spec:       v1alpha1.CloneSetSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			}
			set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
			w := crash.New(t, 1, start, set)
			w.Fate = func(string) crash.Fate { return crash.Done }
			pods := w.Store(&corev1.PodList{})
			stores := reconciler.Stores{
				Sets: w.Store(&v1alpha1.CloneSetList{}), Pods: pods,
				Revisions: fakeapi.NewStore[*appsv1.ControllerRevision](t, reconciler.RevisionIndexers(), nil),
				Claims:    fakeapi.NewStore[*corev1.PersistentVolumeClaim](t, reconciler.ClaimIndexers(), nil),
			}
			options, _ := w.Options(stores)
			old := reconciler.New(cloneset.Set(false), options)
			for range 3 {
				w.Reconcile(old, set)
				w.Fill()
			}
			before := crash.List[*corev1.Pod](w, &corev1.PodList{})
			if len(before) != 2 {
				t.Fatalf("the first process created %d pods, want 2", len(before))
			}
			options, _ = w.Options(stores)
			for _, pod := range before { // The cache of the next process does not have them.
				if err := pods.GetIndexer().Delete(pod); err != nil {
					t.Fatal(err)
				}
			}
			renamed := before[0].DeepCopy()
			if err := w.API.Delete(t.Context(), before[0]); err != nil {
				t.Fatal(err)
			}
			renamed.Name, renamed.ResourceVersion = "web-other", ""
			if err := w.API.Create(t.Context(), renamed); err != nil {
				t.Fatal(err)
			}
			next := reconciler.New(cloneset.Set(false), options)
			w.Reconcile(next, set)
			created := slices.DeleteFunc(crash.List[*corev1.Pod](w, &corev1.PodList{}), func(pod *corev1.Pod) bool {
				return pod.Name == "web-other" || pod.Name == before[1].Name
			})
			if surplus := len(created) > 0; surplus != (name == "later") {
				t.Errorf("the next process has created %d pods", len(created))
			}
		})
	}
}
