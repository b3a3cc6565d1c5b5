// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/manager/webhook"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

const webhookName = configv1alpha1.DefaultWebhookName

// webhookWorld is a fixture with a manager that serves the webhook with the rights of
// config/serverless, and an API server that calls it.
type webhookWorld struct {
	*world
	port   int
	health string
}

func newWebhookWorld(t *testing.T) *webhookWorld {
	t.Helper()
	w := &webhookWorld{port: freePort(t), health: env.FreeAddress(t)}
	w.world = newWorldWithoutManager(t, servers.Parallel(t))
	config := w.Component(t, manager.Name)
	w.install()
	program.StartManager(t, manager.Options{
		Config: config, HealthProbeBindAddress: w.health, Serverless: true,
		Webhook: &webhook.Options{
			Port: w.port, Namespace: env.SystemNamespace, Service: webhookName, Secret: webhookName, Configuration: webhookName,
			Logger: logr.Discard(),
		},
	})
	t.Cleanup(w.clean)
	t.Cleanup(w.uninstall)
	w.ready(w.health)
	return w
}

func freePort(t *testing.T) int {
	t.Helper()
	_, port, err := net.SplitHostPort(env.FreeAddress(t))
	expect.NoError(t, err)
	number, err := strconv.Atoi(port)
	expect.NoError(t, err)
	return number
}

// install creates the objects of config/serverless. The Service points to the local machine,
// because this API server can't reach pods.
func (w *webhookWorld) install() {
	w.Helper()
	w.Apply(w, env.Manifests(w, []string{"config/serverless/rbac.yaml"})...)
	for _, object := range env.Manifests(w, []string{"config/serverless/webhook.yaml"}) {
		switch object.GetKind() {
		case "Service":
			w.Must(unstructured.SetNestedField(object.Object, map[string]any{
				"type": "ExternalName", "externalName": "localhost",
				"ports": []any{map[string]any{"port": int64(w.port)}},
			}, "spec"))
		case "MutatingWebhookConfiguration":
			configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
			w.Must(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, configuration))
			port := int32(w.port)
			configuration.Webhooks[0].ClientConfig.Service.Port = &port
			// The default is too short for a loaded machine.
			seconds := int32(20)
			configuration.Webhooks[0].TimeoutSeconds = &seconds
			w.Create(configuration)
			continue
		}
		w.Create(object)
	}
}

func (w *webhookWorld) uninstall() {
	ctx, cancel := context.WithTimeout(context.Background(), await.Timeout)
	defer cancel()
	for _, object := range []client.Object{&admissionregistrationv1.MutatingWebhookConfiguration{}, &corev1.Service{}, &corev1.Secret{}} {
		object.SetName(webhookName)
		if _, clusterWide := object.(*admissionregistrationv1.MutatingWebhookConfiguration); !clusterWide {
			object.SetNamespace(env.SystemNamespace)
		}
		if err := client.IgnoreNotFound(w.Client.Delete(ctx, object)); err != nil {
			w.Errorf("clean up: %v", err)
		}
	}
}

func (w *webhookWorld) secret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := w.Client.Get(ctx, types.NamespacedName{Namespace: env.SystemNamespace, Name: webhookName}, secret)
	return secret, err
}

// trusted waits until the API server trusts the CA certificate in the Secret, and that is a
// new one.
func (w *webhookWorld) trusted(before string) (authority string) {
	w.Helper()
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhookName}}
	w.Shows(configuration, "the API server trusts a new CA certificate", func() error {
		secret, err := w.secret(w.Context())
		authority = string(configuration.Webhooks[0].ClientConfig.CABundle)
		same := authority == "" || authority == before || authority != string(secret.Data["ca.crt"])
		return errors.Join(client.IgnoreNotFound(err), await.ErrorIf(same, "it trusts %.60q", authority))
	})
	return authority
}

// annotates creates pods until one is annotated at its creation.
func (w *webhookWorld) annotates(prefix string) {
	w.Helper()
	count := 0
	w.Until("a new pod is annotated", func() error {
		count++
		pod := w.unbound(fmt.Sprintf("%s-%d", prefix, count)).Build()
		if err := w.Client.Create(w.Context(), pod); err != nil {
			return fmt.Errorf("create a pod: %w", err)
		}
		got := strings.Join(marks(pod), ", ")
		return await.ErrorIf(got != probesAnnotation+", "+markersAnnotation, "it has the marks %s", got)
	})
}

// unbound returns an unscheduled pod that may run on a virtual node.
func (w *webhookWorld) unbound(name string) *builders.PodBuilder {
	return builders.Pod(w.Namespace, name).Label("app", "game").Node("").Unsaved()
}

func TestWebhook(t *testing.T) {
	w := newWebhookWorld(t)
	w.virtualNode("vk-hook")
	w.marker(builders.Marker(w.Namespace, "game").Probe(documented()))
	w.matched("game", 0)
	w.trusted("")
	w.annotates("waits")

	// Bound at its creation, as a provider sees it.
	bound := w.unbound("bound").Node("vk-hook").Annotation("mine", "stays").Build()
	w.Create(bound)
	expect.Equal(t, "a new pod has the marks", probesAnnotation+", "+markersAnnotation+", annotation mine=stays", strings.Join(marks(bound), ", "))
	for name, pod := range map[string]*builders.PodBuilder{
		"not selected":              w.unbound("other").Label("app", "db"),
		"bound to a kubelet's node": w.unbound("elsewhere").Node("kubelet"),
		"other node selector":       w.unbound("picky").NodeSelector("zone", "b"),
	} {
		made := pod.Build()
		w.Create(made)
		if got := marks(made); len(got) > 0 {
			t.Errorf("%s: it has the marks %s", name, got)
		}
	}
}

// TestWebhookCertificateRenewal checks that the manager fills a recreated Secret, one whose
// certificate is about to expire and one with invalid data, and that the API server still calls
// the webhook.
func TestWebhookCertificateRenewal(t *testing.T) {
	w := newWebhookWorld(t)
	w.virtualNode("vk-certs")
	w.marker(builders.Marker(w.Namespace, "game").Probe(documented()))
	w.matched("game", 0)
	authority := w.trusted("")
	w.annotates("first")

	secret, err := w.secret(t.Context())
	w.Must(err)
	w.Delete(secret)
	w.settle(1)
	w.annotates("deleted")
	secret = &corev1.Secret{}
	secret.Namespace, secret.Name = env.SystemNamespace, webhookName
	w.Create(secret)
	authority = w.trusted(authority)
	w.annotates("empty")

	due, key := expiring(t)
	for name, data := range map[string]map[string][]byte{
		"expiring": {"ca.crt": due, "tls.crt": due, "tls.key": key},
		"invalid":  {"ca.crt": []byte("x"), "tls.crt": []byte("x"), "tls.key": []byte("x")},
	} {
		secret, err := w.secret(t.Context())
		w.Must(err)
		secret.Data = data
		w.Must(w.Client.Update(t.Context(), secret))
		w.Until("the "+name+" Secret is renewed", func() error {
			secret, err := w.secret(t.Context())
			return errors.Join(err, await.ErrorIf(string(secret.Data["ca.crt"]) == string(data["ca.crt"]), "it has the data of the test"))
		})
		authority = w.trusted(authority)
		w.annotates(name)
	}

	// A recreated webhook configuration, as after an upgrade, gets the CA certificate.
	w.uninstall()
	w.install()
	w.trusted("")
	w.annotates("again")
}

// expiring returns a valid CA certificate with less than a third of its lifetime left.
func expiring(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "old"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().AddDate(0, -11, 0), NotAfter: time.Now().AddDate(0, 1, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	expect.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	expect.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
