// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhook is a webhook of somebody else, which refuses what it is called for.
type webhook struct {
	w      *world
	config *admissionregistrationv1.ValidatingWebhookConfiguration
	server *http.Server
}

// hook starts a webhook for the objects that Seamark and the kubelet write. wait is called before each answer, with a
// context that ends when the webhook does.
func (w *world) hook(ctx context.Context, wait func(context.Context)) (*webhook, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey(hostAddress, []net.IP{net.ParseIP(hostAddress)}, nil)
	if err != nil {
		return nil, fmt.Errorf("certificate of the webhook: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the webhook: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", hostAddress+":0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	h := &webhook{w: w, server: &http.Server{
		ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			review := &admissionv1.AdmissionReview{}
			if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
				http.Error(rw, "no review", http.StatusBadRequest)
				return
			}
			wait(r.Context())
			review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "the webhook of the test refuses everything", Code: http.StatusForbidden}}
			review.Request = nil
			_ = json.NewEncoder(rw).Encode(review)
		}),
	}}
	go func() { _ = h.server.ServeTLS(listener, "", "") }()
	h.config = configOf(w.Namespace, "https://"+listener.Addr().String(), certificate)
	return h, w.persist(ctx, func(ctx context.Context) error { return client.IgnoreAlreadyExists(w.Client.Create(ctx, h.config)) })
}

// configOf returns the configuration of a webhook for a namespace. Requests of administrators, such as the test, are
// not concerned.
func configOf(namespace, url string, authority []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	operations := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete}
	rule := func(group string, resources ...string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
		}
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "refuse.chaos.seamark.dev", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority},
			Rules:             []admissionregistrationv1.RuleWithOperations{rule("", "pods", "pods/status", "persistentvolumeclaims"), rule("apps", "controllerrevisions")},
			FailurePolicy:     ptr.To(admissionregistrationv1.Fail),
			SideEffects:       ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:    ptr.To[int32](2),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			MatchConditions:   []admissionregistrationv1.MatchCondition{{Name: "others", Expression: "!('system:masters' in request.userInfo.groups)"}},

			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// remove removes the webhook.
func (h *webhook) remove(ctx context.Context) error {
	if h == nil {
		return nil
	}
	err := h.w.persist(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(h.w.Client.Delete(ctx, h.config)) })
	_ = h.server.Close()
	return err
}
