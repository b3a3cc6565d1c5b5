// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package entries_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
)

func TestEntry(t *testing.T) {
	container := func(edit func(*v1alpha1.SidecarContainer)) []v1alpha1.SidecarContainer {
		c := v1alpha1.SidecarContainer{Container: corev1.Container{Name: "a"}}
		edit(&c)
		return []v1alpha1.SidecarContainer{c}
	}
	shares := func(c *v1alpha1.SidecarContainer) { c.ShareVolumePolicy.Type = v1alpha1.ShareVolumePolicyEnabled }
	devices := func(c *v1alpha1.SidecarContainer) {
		c.ShareVolumeDevicePolicy = &v1alpha1.ShareVolumePolicy{Type: v1alpha1.ShareVolumePolicyEnabled}
	}
	transfers := func(c *v1alpha1.SidecarContainer) { c.TransferEnv = []v1alpha1.TransferEnvVar{{EnvName: "A"}} }
	const fail, ignore, never, again = "Fail", "Ignore", "Never", "IfNeeded"
	for name, test := range map[string]struct {
		edit                  func(*v1alpha1.SidecarSet)
		namespaces            string
		failure, reinvocation string
	}{
		"all namespaces": {edit: func(*v1alpha1.SidecarSet) {}, failure: fail, reinvocation: never},
		"one namespace": {
			edit:       func(s *v1alpha1.SidecarSet) { s.Spec.Namespace = "games" },
			namespaces: "kubernetes.io/metadata.name in (games),", failure: fail, reinvocation: never,
		},
		"both spellings": {
			edit: func(s *v1alpha1.SidecarSet) {
				s.Spec.Namespace = "games"
				s.Spec.SpecificNamespace = &v1alpha1.SpecificNamespace{NamespaceSelector: &metav1.LabelSelector{
					MatchLabels:      map[string]string{"b": "2", "a": "1"},
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: metav1.LabelSelectorOpExists}},
				}}
			},
			namespaces: "a in (1),b in (2),c,kubernetes.io/metadata.name in (games),", failure: fail, reinvocation: never,
		},
		"optional": {
			edit: func(s *v1alpha1.SidecarSet) {
				s.Annotations = map[string]string{v1alpha1.InjectionFailurePolicyKey: "Ignore"}
			},
			failure: ignore, reinvocation: never,
		},
		"shares volumes":      {edit: func(s *v1alpha1.SidecarSet) { s.Spec.Containers = container(shares) }, failure: fail, reinvocation: again},
		"shares devices":      {edit: func(s *v1alpha1.SidecarSet) { s.Spec.InitContainers = container(devices) }, failure: fail, reinvocation: again},
		"transfers variables": {edit: func(s *v1alpha1.SidecarSet) { s.Spec.Containers = container(transfers) }, failure: fail, reinvocation: again},
	} {
		t.Run(name, func(t *testing.T) {
			set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs"}, Spec: v1alpha1.SidecarSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}, Containers: container(func(*v1alpha1.SidecarContainer) {}),
			}}
			test.edit(set)
			client := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "seamark-system", Name: "injector"}}
			got := entries.Entry(set, client, "seamark-system")
			want := test.namespaces + "kubernetes.io/metadata.name notin (kube-system,seamark-system)"
			if diff := cmp.Diff(want, metav1.FormatLabelSelector(got.NamespaceSelector)); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
			if string(*got.FailurePolicy) != test.failure || string(*got.ReinvocationPolicy) != test.reinvocation {
				t.Errorf("failure policy %s, reinvocation %s, want %s and %s", *got.FailurePolicy, *got.ReinvocationPolicy, test.failure, test.reinvocation)
			}
			if got.Name != "logs.sidecarsets.seamark.dev" || *got.ClientConfig.Service.Path != "/inject/logs" || !cmp.Equal(got.ObjectSelector, set.Spec.Selector) {
				t.Errorf("entry %+v", got)
			}
			if client.Service.Path != nil {
				t.Error("the argument changed")
			}
		})
	}
}
