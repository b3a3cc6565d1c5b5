// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/test/await"
)

// quota limits the pods of the namespace. The controller of quotas does not run here, so the test
// writes the status.
func (w *world) quota(pods string) {
	w.Helper()
	hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
	quota := &corev1.ResourceQuota{ObjectMeta: w.Meta("pods")}
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(quota), quota); err != nil {
		quota.Spec.Hard = hard
		w.Create(quota)
		quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	}
	quota.Spec.Hard = hard
	used := quota.Status.Used
	w.Must(w.Client.Update(w.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: used}
	w.UpdateStatus(quota)
}

// failing returns the message of the condition that reports pods which cannot be created, empty if
// the condition is not True.
func (w *world) failing(set client.Object) string {
	w.Helper()
	w.Get(set)
	switch set := set.(type) {
	case *v1alpha1.CloneSet:
		for _, c := range set.Status.Conditions {
			if c.Type == v1alpha1.CloneSetConditionFailedScale && c.Status == corev1.ConditionTrue {
				return c.Message
			}
		}
	case *v1beta1.StatefulSet:
		for _, c := range set.Status.Conditions {
			if c.Type == v1beta1.FailedCreatePod && c.Status == corev1.ConditionTrue {
				return c.Message
			}
		}
	}
	return ""
}

// says waits until the message of the condition satisfies the check.
func (w *world) says(set client.Object, what string, check func(message string) bool) {
	w.Helper()
	w.Until(set.GetName()+" reports "+what, func() error {
		message := w.failing(set)
		return await.ErrorIf(!check(message), "message %q", message)
	})
}

// TestRefusedPodsAreReportedAndRetried checks that pods which a quota rejects are reported
// with the reason, cost few requests, and are created when they are admitted.
func TestRefusedPodsAreReportedAndRetried(t *testing.T) {
	for _, kind := range []string{"CloneSet", "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorldWithoutProgram(t, servers.Parallel(t))
			w.quota("2")
			var set client.Object
			if kind == "CloneSet" {
				set = w.cloneSet("web", 20)
			} else {
				set = w.statefulSet("db", 20, func(s *v1beta1.StatefulSet) { s.Spec.PodManagementPolicy = "Parallel" })
			}
			line := &wire{decide: func(string, int) fate { return deliver }}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			config := w.Component(w, workloads.Name)
			go func() { defer close(done); w.process(ctx, config, line) }()
			defer func() { cancel(); <-done }()

			w.says(set, "the reason", func(message string) bool { return strings.Contains(message, "exceeded quota: pods") })
			before := line.podPosts()
			<-time.After(5 * time.Second)
			if pods, err := w.pods(t.Context(), set.GetName()); err != nil || len(pods) != 2 {
				t.Errorf("%d pods (%v), want 2", len(pods), err)
			}
			// The back-off doubles: after 10 ms, it takes nine attempts to reach 5 s.
			posts := line.podPosts()
			t.Logf("%d requests until the condition, %d in the next 5 s", before, posts-before)
			if posts > 50 {
				t.Errorf("%d requests, and %d in the next 5 s: too many", before, posts-before)
			}
			w.quota("50")
			w.calm(patience(), set, 20, "image:1")
			w.says(set, "nothing any more", func(message string) bool { return message == "" })
		})
	}
}

// TestSelectorsOfOwnLabels checks that a set whose selector has a label that Seamark sets on pods creates none, and says
// why: it would release its pods and create others, for ever.
func TestSelectorsOfOwnLabels(t *testing.T) {
	w := newWorld(t)
	absent := metav1.LabelSelectorRequirement{Key: pub.WorkloadKey, Operator: metav1.LabelSelectorOpDoesNotExist}
	for _, set := range []client.Object{
		w.cloneSet("absent", 3, func(s *v1alpha1.CloneSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{absent}
		}),
		w.cloneSet("value", 3, func(s *v1alpha1.CloneSet) {
			s.Spec.Selector.MatchLabels[appsv1.ControllerRevisionHashLabelKey] = "x"
			s.Spec.Template.Labels[appsv1.ControllerRevisionHashLabelKey] = "x"
		}),
		w.statefulSet("ordinals", 3, func(s *v1beta1.StatefulSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{absent}
		}),
	} {
		w.says(set, "why it creates no pods", func(message string) bool {
			return strings.HasPrefix(message, "spec.selector.") && strings.HasSuffix(message, "which Seamark sets")
		})
		if pods, err := w.pods(t.Context(), set.GetName()); err != nil || len(pods) > 0 {
			t.Errorf("%s has %d pods, error %v", set.GetName(), len(pods), err)
		}
	}
}
