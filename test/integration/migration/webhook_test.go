// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/process"
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
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"apps.kruise.io"}, APIVersions: []string{"v1alpha1"}, Resources: []string{resource},
				},
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

// helm runs the pinned helm against an API server.
type helm struct {
	testing.TB
	root, program, kubeconfig string
}

func newHelm(t *testing.T, e *env.Env) *helm {
	t.Helper()
	root, err := env.ModuleRoot()
	expect.NoError(t, err)
	program, err := process.Built("helm", "test-integration")
	expect.NoError(t, err)
	return &helm{TB: t, root: root, program: program, kubeconfig: env.Kubeconfig(t, e.Config)}
}

func (h *helm) try(args ...string) (string, error) {
	command := exec.CommandContext(h.Context(), h.program, append([]string{"--kubeconfig", h.kubeconfig}, args...)...)
	command.Dir = h.root
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func (h *helm) run(args ...string) {
	h.Helper()
	if _, err := h.try(args...); err != nil {
		h.Fatal(err)
	}
}

// kruiseChart creates a chart that contains the CRDs as OpenKruise's chart does: as templates,
// controlled by the value crds.managed.
func kruiseChart(t *testing.T, e *env.Env) string {
	t.Helper()
	dir := t.TempDir()
	var crds bytes.Buffer
	crds.WriteString("{{- if .Values.crds.managed }}\n")
	for _, crd := range e.CRDs {
		if crd.Spec.Group != v1alpha1.GroupName {
			continue
		}
		crd = crd.DeepCopy()
		crd.APIVersion, crd.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
		text, err := yaml.Marshal(crd)
		expect.NoError(t, err)
		crds.WriteString("---\n")
		crds.Write(text)
	}
	crds.WriteString("{{- end }}\n")
	files := map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: kruise\nversion: 1.9.0\n",
		"values.yaml":         "crds:\n  managed: true\n",
		"templates/crds.yaml": crds.String(),
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// TestChartNextToOpenKruise moves the CRDs from OpenKruise's release to Seamark's and uninstalls
// OpenKruise, while the markers stay.
func TestChartNextToOpenKruise(t *testing.T) {
	w := newWorld(t)
	h, chart := newHelm(t, w.Env), kruiseChart(t, w.Env)
	// The release that owns the cluster's CRDs.
	h.run("install", "kruise", chart, "--namespace", "kruise-system", "--create-namespace", "--take-ownership", "--force-conflicts")
	w.Create(game(w.Namespace))

	seamark := []string{"seamark", "charts/seamark", "--namespace", env.SystemNamespace}
	if out, err := h.try(append([]string{"install", "--create-namespace"}, seamark...)...); err == nil || !strings.Contains(out, "ownership metadata") {
		t.Errorf("install the CRDs of another release: %v, want an ownership error", err)
	}
	h.run(append([]string{
		"install", "--create-namespace", "--set", "crds.install=false", "--set", "policies.markerAuthor.enforcement=Warn",
		"--set", "manager.config.messageUpdates=Immediate", "--set-json",
		`manager.config.probeDefaults={"initialDelaySeconds":1,"periodSeconds":1,"timeoutSeconds":1,"successThreshold":1,"failureThreshold":1}`,
	}, seamark...)...)
	w.crdIs("kruise", false)

	h.run(append([]string{"upgrade", "--reset-then-reuse-values", "--set", "crds.install=true", "--take-ownership", "--force-conflicts"}, seamark...)...)
	w.crdIs("seamark", true)

	crd := &apiextensionsv1.CustomResourceDefinition{}
	for _, name := range []string{"podprobemarkers.apps.kruise.io", "nodepodprobes.apps.kruise.io"} {
		crd.Name = name
		w.Patch(crd, `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`)
	}
	h.run("upgrade", "kruise", chart, "--namespace", "kruise-system", "--reuse-values", "--set", "crds.managed=false")
	w.crdIs("seamark", true)
	h.run("uninstall", "kruise", "--namespace", "kruise-system")
	w.crdIs("seamark", true)
	h.run("uninstall", "seamark", "--namespace", env.SystemNamespace, "--no-hooks")
	w.crdIs("seamark", true)
	w.Must(w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "game"}, &v1alpha1.PodProbeMarker{}))
}

// crdIs checks which release owns the CRD of the markers, whether it is Seamark's version, and
// that it is not being deleted.
func (w *world) crdIs(release string, ours bool) {
	w.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := w.Client.Get(w.Context(), client.ObjectKey{Name: "podprobemarkers.apps.kruise.io"}, crd)
	if apierrors.IsNotFound(err) {
		w.Fatal("the CRD was deleted, and with it all markers")
	}
	w.Must(err)
	_, conditions := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
	if owner := crd.Annotations["meta.helm.sh/release-name"]; owner != release || conditions != ours || crd.DeletionTimestamp != nil {
		w.Errorf("the CRD belongs to release %q, has conditions: %t, deleted: %v; want %q, %t", owner, conditions, crd.DeletionTimestamp, release, ours)
	}
}
