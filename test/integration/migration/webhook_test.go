// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// The names of OpenKruise's webhooks.
const (
	webhooks      = "kruise-validating-webhook-configuration"
	markerWebhook = "vpodprobemarker.kb.io"
)

// serveRejections serves the response of OpenKruise's manager with PodProbeMarkerGate disabled.
// It registers the webhook as OpenKruise's chart does, together with one for another kind.
func serveRejections(w *world) {
	w.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
			Code: http.StatusForbidden, Message: "feature-gate PodProbeMarkerGate is not enabled",
		}}
		_ = json.NewEncoder(out).Encode(review)
	}))
	w.Cleanup(server.Close)
	webhook := func(name, resource string) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{
			Name: name, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL + "/validate-apps-kruise-io-podprobemarker"),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			SideEffects:   ptr.To(admissionregistrationv1.SideEffectClassNone),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps.kruise.io"}, APIVersions: []string{"v1alpha1"}, Resources: []string{resource}},
			}},
		}
	}
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhooks, Annotations: map[string]string{"template": "[]"}},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{webhook(markerWebhook, "podprobemarkers"), webhook("vcloneset.kb.io", "clonesets")},
	}
	w.Create(config)
}

// documented returns the patch of the webhook in docs/migrate-from-openkruise.md.
func documented(w *world) []byte {
	w.Helper()
	root, err := env.ModuleRoot()
	w.Must(err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "migrate-from-openkruise.md"))
	w.Must(err)
	found := regexp.MustCompile(`patch validatingwebhookconfiguration `+webhooks+`\s[^']*-p '([^']*)'`).FindAllSubmatch(page, -1)
	if len(found) != 1 {
		w.Fatalf("the page has %[2]d patches of %[1]s, want one", webhooks, len(found))
	}
	return found[0][1]
}

// TestWebhookOfOpenKruise covers OpenKruise with its feature gate disabled, which rejects every
// write of a marker except to its status. Existing markers are probed and marked, but markers
// can't be created or deleted until the webhook is removed.
func TestWebhookOfOpenKruise(t *testing.T) {
	w := newWorld(t)
	leave(t.Context(), w)
	serveRejections(w)
	key := client.ObjectKey{Namespace: w.Namespace, Name: "game"}
	env.Refused(w, "a marker", "PodProbeMarkerGate is not enabled", func(ctx context.Context) error {
		marker := game(w.Namespace)
		marker.Name = "other"
		return w.Client.Create(ctx, marker, client.DryRunAll)
	})
	w.startManager()
	w.startAgent()
	w.marked("turned", busy...)
	w.Delete(game(w.Namespace))
	w.marked("turned")
	marker := &v1alpha1.PodProbeMarker{}
	w.Must(w.Client.Get(t.Context(), key, marker))

	config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooks}}
	w.Must(w.Client.Patch(t.Context(), config, client.RawPatch(types.StrategicMergePatchType, documented(w))))
	if len(config.Webhooks) != 1 || config.Webhooks[0].Name != "vcloneset.kb.io" || config.Annotations["template"] != "" {
		t.Errorf("webhooks %v, annotations %v: want only the other webhook, and no template", config.Webhooks, config.Annotations)
	}
	w.Gone(game(w.Namespace))
	w.Create(game(w.Namespace))
	w.marked("turned", busy...)
}
