// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package entries decides which pods the API server sends to the injectors: one webhook entry per
// SidecarSet, whose selectors are those of the set, so that no other pod depends on the injectors. Beyond
// a number of sets, those of named namespaces share entries, whose conditions are as exact. It is pure.
package entries

import (
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
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

// Server is where the API server reaches the injectors.
type Server struct {
	// Client is the address of the injectors, whose path is replaced, and their CA.
	Client admissionregistrationv1.WebhookClientConfig
	// Namespace is the namespace of the injectors, whose pods no set selects, nor those of ExcludedNamespaces.
	Namespace          string
	ExcludedNamespaces []string
	// StoredVersions are the resource versions of the stored configurations, empty if they are not known.
	StoredVersions [Configurations]string
}

// Entry returns the webhook entry of a set that has been accepted.
func (s Server) Entry(set *v1alpha1.SidecarSet) admissionregistrationv1.MutatingWebhook {
	entry := s.entry(name(set), "/inject/"+set.Name, failurePolicy(set), set.Status.InForce.Inherits)
	entry.NamespaceSelector = s.namespaces(set.Status.InForce.Targets())
	entry.ObjectSelector = set.Status.InForce.Selector.DeepCopy()
	return entry
}

// entry returns an entry without selectors. It has a value for each field for which the API server has a
// default, so that it can be compared with a stored one.
func (s Server) entry(name, path string, failure admissionregistrationv1.FailurePolicyType, again bool) admissionregistrationv1.MutatingWebhook {
	reinvocation := admissionregistrationv1.NeverReinvocationPolicy
	if again {
		reinvocation = admissionregistrationv1.IfNeededReinvocationPolicy
	}
	return admissionregistrationv1.MutatingWebhook{
		Name:                    name,
		ClientConfig:            s.at(path),
		Rules:                   rules(),
		FailurePolicy:           &failure,
		MatchPolicy:             new(admissionregistrationv1.Equivalent),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(timeoutSeconds)),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      &reinvocation,
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			// The kubelet runs static pods from files: their mirrors must be as the files.
			Name:       "not-a-mirror-pod",
			Expression: `!has(object.metadata.annotations) || !('` + corev1.MirrorPodAnnotationKey + `' in object.metadata.annotations)`,
		}, {
			// Nothing runs in the pod of a pull, which seamark-workloads may not create with other containers.
			Name: "not-a-pull",
			Expression: `object.spec.containers.exists(c, c.?command.orValue([]) != ['` + imagepull.Command + `']) || ` +
				`size(object.spec.?initContainers.orValue([])) > 0`,
		}},
	}
}

// name returns the name of the entry of a set, whose name has at most 63 characters.
func name(set *v1alpha1.SidecarSet) string { return set.Name + suffix }

// at returns the address of the injectors with the path.
func (s Server) at(path string) admissionregistrationv1.WebhookClientConfig {
	client := *s.Client.DeepCopy()
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
func (s Server) namespaces(spec *v1alpha1.SidecarSetSpec) *metav1.LabelSelector {
	merged := &metav1.LabelSelector{}
	for _, selector := range overlap.Namespaces(spec) {
		for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
			// matchLabels can have a key only once.
			merged.MatchExpressions = append(merged.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{selector.MatchLabels[key]},
			})
		}
		merged.MatchExpressions = append(merged.MatchExpressions, selector.DeepCopy().MatchExpressions...)
	}
	merged.MatchExpressions = append(merged.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: s.Excluded(),
	})
	return merged
}

// Excluded returns the namespaces that no set selects: their pods are neither injected nor updated nor counted.
func (s Server) Excluded() []string {
	excluded := []string{kubeSystem, s.Namespace}
	for _, name := range s.ExcludedNamespaces {
		if !slices.Contains(excluded, name) {
			excluded = append(excluded, name)
		}
	}
	return excluded
}

// failurePolicy returns what happens to selected pods while no injector answers.
func failurePolicy(set *v1alpha1.SidecarSet) admissionregistrationv1.FailurePolicyType {
	if set.Annotations[v1alpha1.InjectionFailurePolicyKey] == string(admissionregistrationv1.Ignore) {
		return admissionregistrationv1.Ignore
	}
	return admissionregistrationv1.Fail
}
