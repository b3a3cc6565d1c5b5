// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestSidecarSetsOfAPod says for each set that selects the pod whether it was injected, and why not.
func TestSidecarSetsOfAPod(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, message string, age time.Duration) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: message, LastTransitionTime: ago(age)}
	}
	const accepted, injecting = v1alpha1.SidecarSetAccepted, v1alpha1.SidecarSetInjecting
	set := func(edit func(*v1alpha1.SidecarSet)) *v1alpha1.SidecarSet {
		s := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs"}}
		s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "worker"}}
		s.Status.InForce = &v1alpha1.SidecarSetInForce{Revision: "logs-2", Selector: s.Spec.Selector}
		s.Status.Conditions = []metav1.Condition{condition(injecting, metav1.ConditionTrue, "", time.Minute)}
		edit(s)
		return s
	}
	for name, test := range map[string]struct {
		edit func(*v1alpha1.SidecarSet)
		// revision is that of the pod, or empty.
		revision, want string
	}{
		"latest revision": {edit: func(*v1alpha1.SidecarSet) {}, revision: "logs-2", want: "added its containers, in the revision logs-2"},
		"older revision": {
			edit: func(*v1alpha1.SidecarSet) {}, revision: "logs-1", want: "added its containers, in the revision logs-1; the latest one is logs-2",
		},
		"named revision": {
			edit:     func(s *v1alpha1.SidecarSet) { s.Status.InForce.NamedRevision = "logs-1" },
			revision: "logs-1", want: "added its containers, in the revision logs-1, which the set names for new pods",
		},
		"other pods":      {edit: func(s *v1alpha1.SidecarSet) { s.Status.InForce.Selector.MatchLabels["app"] = "shop" }},
		"other namespace": {edit: func(s *v1alpha1.SidecarSet) { s.Status.InForce.Namespace = "shop" }},
		"not accepted": {
			edit: func(s *v1alpha1.SidecarSet) {
				s.Status.InForce = nil
				s.Status.Conditions = []metav1.Condition{condition(accepted, metav1.ConditionFalse, "spec: is wrong", 0)}
			},
			want: "has not added its containers: no generation of it is accepted: spec: is wrong",
		},
		"paused": {
			edit: func(s *v1alpha1.SidecarSet) {
				s.Status.Conditions = []metav1.Condition{condition(injecting, metav1.ConditionFalse, "It is paused.", 0)}
			},
			want: "has not added its containers: new pods do not get them: It is paused.",
		},
		"older pod": {
			edit: func(*v1alpha1.SidecarSet) {},
			want: "has not added its containers: the pod was created at 11:00:00, before the set was in force",
		},
		"optional": {
			edit: func(s *v1alpha1.SidecarSet) {
				s.Annotations = map[string]string{v1alpha1.InjectionFailurePolicyKey: "Ignore"}
				s.Status.Conditions[0].LastTransitionTime = ago(2 * time.Hour)
			},
			want: "has not added its containers: the pod was created while no injector answered, or has a container of its own with the name of one of the set's",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := marked()
			pod.CreationTimestamp = ago(time.Hour)
			if test.revision != "" {
				pod.Annotations = map[string]string{
					v1alpha1.SidecarSetListKey: "logs", v1alpha1.SidecarSetHashKey: `{"logs":{"controllerRevision":"` + test.revision + `"}}`,
				}
			}
			steps := explanation.Pod(explanation.Input{
				Namespace: pod.Namespace, Name: pod.Name, Pod: pod, SidecarSets: []*v1alpha1.SidecarSet{set(test.edit)}, Now: now(),
			}).Steps
			var want []explanation.Step
			if test.want != "" {
				want = []explanation.Step{{Title: "SidecarSet logs", Verdict: explanation.Info, Text: test.want}}
			}
			steps = slices.DeleteFunc(steps, func(s explanation.Step) bool { return s.Title != "SidecarSet logs" })
			if len(steps) == 0 {
				steps = nil
			}
			expect.Equal(t, "steps", want, steps)
		})
	}
}
