// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

const (
	// OpenKruiseLease is the name of the lease of OpenKruise's manager, which is held while a manager runs
	// the controllers of all kinds.
	OpenKruiseLease = "kruise-manager"
	// OpenKruiseWebhook is the name of the MutatingWebhookConfiguration that OpenKruise installs.
	OpenKruiseWebhook = "kruise-mutating-webhook-configuration"
)

// IsOpenKruise reports whether OpenKruise is installed in the namespace: its webhooks are served there. A
// lease alone does not show it, because whoever may create the namespace could hold one. Configurations
// of webhooks belong to the administrators of the cluster.
func IsOpenKruise(config *admissionregistrationv1.MutatingWebhookConfiguration, namespace string) bool {
	return config != nil && slices.ContainsFunc(config.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
		return w.ClientConfig.Service != nil && w.ClientConfig.Service.Namespace == namespace
	})
}
