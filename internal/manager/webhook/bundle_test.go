// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The cache may still have a configuration that was deleted.
func TestDeletedConfigurationIsIgnored(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{authorityKey: []byte("x")},
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "c"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "w"}},
	}
	b := &bundles{
		reader: fake.NewClientBuilder().WithObjects(secret, configuration).Build(),
		writer: fake.NewClientBuilder().Build(),
		secret: types.NamespacedName{Namespace: "ns", Name: "s"}, configuration: types.NamespacedName{Name: "c"},
	}
	if _, err := b.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Errorf("error %v, want none", err)
	}
}
