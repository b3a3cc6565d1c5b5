// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "pods"}}
	if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(quota), quota); err != nil {
		quota.Spec.Hard = hard
		w.must(w.client.Create(w.Context(), quota))
		quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	}
	quota.Spec.Hard = hard
	used := quota.Status.Used
	w.must(w.client.Update(w.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: used}
	w.must(w.client.Status().Update(w.Context(), quota))
}

// policy rejects all pods of the namespace. It returns a function that removes the policy.
func (w *world) policy() (remove func()) {
	w.Helper()
	meta := metav1.ObjectMeta{Name: "reject-pods-" + w.namespace}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "Pods need a permit."}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        meta.Name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace},
			}},
		},
	}
	w.must(w.client.Create(w.Context(), policy))
	w.must(w.client.Create(w.Context(), binding))
	remove = func() {
		ctx := context.Background()
		_ = w.client.Delete(ctx, binding)
		_ = w.client.Delete(ctx, policy)
	}
	w.Cleanup(remove)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "attempt"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image:1"}}},
	}
	await.Until(w, "the policy rejects pods", func(ctx context.Context) (string, error) {
		if err := w.client.Create(ctx, pod, client.DryRunAll); err != nil && strings.Contains(err.Error(), "permit") {
			return "", nil
		}
		return "the pod is admitted", nil
	})
	return remove
}

// failing returns the message of the condition that reports pods which cannot be created, empty if
// the condition is not True.
func (w *world) failing(ctx context.Context, set client.Object) (string, error) {
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return "", err
	}
	switch set := set.(type) {
	case *v1alpha1.CloneSet:
		for _, c := range set.Status.Conditions {
			if c.Type == v1alpha1.CloneSetConditionFailedScale && c.Status == corev1.ConditionTrue {
				return c.Message, nil
			}
		}
	case *v1beta1.StatefulSet:
		for _, c := range set.Status.Conditions {
			if c.Type == v1beta1.FailedCreatePod && c.Status == corev1.ConditionTrue {
				return c.Message, nil
			}
		}
	}
	return "", nil
}

// TestRefusedPodsAreReportedAndRetried checks that pods which a quota or a policy rejects are reported
// with the reason, cost few requests, and are created when they are admitted.
func TestRefusedPodsAreReportedAndRetried(t *testing.T) {
	for name, test := range map[string]struct {
		refuse func(w *world) (admit func())
		// created is the number of pods that are admitted at first.
		created int
		message string
	}{
		"quota": {
			refuse: func(w *world) func() {
				w.quota("2")
				return func() { w.quota("50") }
			},
			created: 2, message: "exceeded quota: pods",
		},
		"policy": {refuse: (*world).policy, message: "Pods need a permit."},
	} {
		for _, kind := range []string{"CloneSet", "StatefulSet"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				w := newScene(t, shared)
				admit := test.refuse(w)
				var set client.Object
				if kind == "CloneSet" {
					set = w.cloneSet("web", 20)
				} else {
					set = w.statefulSet("db", 20, func(s *v1beta1.StatefulSet) { s.Spec.PodManagementPolicy = "Parallel" })
				}
				line := &wire{decide: func(string, int) fate { return deliver }}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				config := w.env.Component(w, workloads.Name)
				go func() { defer close(done); w.process(ctx, config, line) }()
				defer func() { cancel(); <-done }()

				await.Until(t, "the condition reports the reason", func(ctx context.Context) (string, error) {
					message, err := w.failing(ctx, set)
					if err != nil || strings.Contains(message, test.message) {
						return "", err
					}
					return fmt.Sprintf("message %q", message), nil
				})
				before := line.podPosts()
				<-time.After(5 * time.Second)
				if pods, err := w.pods(t.Context(), set.GetName()); err != nil || len(pods) != test.created {
					t.Errorf("%d pods (%v), want %d", len(pods), err, test.created)
				}
				// The back-off doubles: after 10 ms, it takes nine attempts to reach 5 s.
				posts := line.podPosts()
				t.Logf("%d requests until the condition, %d in the next 5 s", before, posts-before)
				if posts > 50 {
					t.Errorf("%d requests, and %d in the next 5 s: too many", before, posts-before)
				}
				admit()
				w.calm(set, 20, "image:1")
				await.Until(t, "the condition is not True any more", func(ctx context.Context) (string, error) {
					return w.failing(ctx, set)
				})
			})
		}
	}
}
