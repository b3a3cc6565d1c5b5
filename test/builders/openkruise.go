// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// OpenKruiseWebhook returns the configuration by which an installation of OpenKruise in the namespace is
// known. Its webhook is for a resource that does not exist.
func OpenKruiseWebhook(namespace string) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: planning.OpenKruiseWebhook},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:         "mpod.kb.io",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "kruise-webhook-service"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"none.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"none"}},
			}},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
}
