// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package entries decides which pods the API server sends to the injectors: one webhook entry per
// SidecarSet, whose selectors are those of the set, so that no other pod depends on the injectors. It is
// pure.
package entries

import (
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/overlap"
)

const (
	// suffix makes the name of a set the name of an entry.
	suffix = ".sidecarsets.seamark.dev"
	// timeoutSeconds is how long the API server waits for an injector.
	timeoutSeconds = 5
	// kubeSystem has what the injectors need to start: DNS and the network.
	kubeSystem = "kube-system"
)

// Entry returns the webhook entry of the set. The client is where the injectors serve /inject/, and own is
// their namespace, whose pods no set selects.
func Entry(set *v1alpha1.SidecarSet, client admissionregistrationv1.WebhookClientConfig, own string) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    set.Name + suffix,
		ClientConfig:            at(client, set.Name),
		Rules:                   rules(),
		FailurePolicy:           new(failurePolicy(set)),
		MatchPolicy:             new(admissionregistrationv1.Equivalent),
		NamespaceSelector:       namespaces(&set.Spec, own),
		ObjectSelector:          set.Spec.Selector.DeepCopy(),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(timeoutSeconds)),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      new(reinvocation(&set.Spec)),
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			// The kubelet runs static pods from files: their mirrors must be as the files.
			Name:       "not-a-mirror-pod",
			Expression: `!has(object.metadata.annotations) || !('` + corev1.MirrorPodAnnotationKey + `' in object.metadata.annotations)`,
		}},
	}
}

// at returns the client with the path of the set.
func at(client admissionregistrationv1.WebhookClientConfig, set string) admissionregistrationv1.WebhookClientConfig {
	client = *client.DeepCopy()
	path := "/inject/" + set
	if client.URL != nil {
		client.URL = new(strings.TrimSuffix(*client.URL, "/") + path)
	} else if client.Service != nil {
		client.Service.Path = new(path)
	}
	return client
}

func rules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: new(admissionregistrationv1.NamespacedScope),
		},
	}}
}

// namespaces returns one selector for all that the set and the injectors require.
func namespaces(spec *v1alpha1.SidecarSetSpec, own string) *metav1.LabelSelector {
	all := &metav1.LabelSelector{}
	for _, selector := range overlap.Namespaces(spec) {
		for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
			// matchLabels can have a key only once.
			all.MatchExpressions = append(all.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{selector.MatchLabels[key]},
			})
		}
		all.MatchExpressions = append(all.MatchExpressions, selector.DeepCopy().MatchExpressions...)
	}
	all.MatchExpressions = append(all.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{kubeSystem, own},
	})
	return all
}

// failurePolicy returns what happens to selected pods while no injector answers.
func failurePolicy(set *v1alpha1.SidecarSet) admissionregistrationv1.FailurePolicyType {
	if set.Annotations[v1alpha1.InjectionFailurePolicyKey] == string(admissionregistrationv1.Ignore) {
		return admissionregistrationv1.Ignore
	}
	return admissionregistrationv1.Fail
}

// reinvocation returns whether the set must see what later webhooks add to the pod.
func reinvocation(spec *v1alpha1.SidecarSetSpec) admissionregistrationv1.ReinvocationPolicyType {
	for _, list := range [][]v1alpha1.SidecarContainer{spec.InitContainers, spec.Containers} {
		for i := range list {
			if inherits(&list[i]) {
				return admissionregistrationv1.IfNeededReinvocationPolicy
			}
		}
	}
	return admissionregistrationv1.NeverReinvocationPolicy
}

// inherits reports whether the container gets something of the pod's containers.
func inherits(c *v1alpha1.SidecarContainer) bool {
	return len(c.TransferEnv) > 0 || c.ShareVolumePolicy.Type == v1alpha1.ShareVolumePolicyEnabled ||
		c.ShareVolumeDevicePolicy != nil && c.ShareVolumeDevicePolicy.Type == v1alpha1.ShareVolumePolicyEnabled
}
