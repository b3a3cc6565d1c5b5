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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/webhook"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const webhookName = "seamark-webhook"

// webhookWorld has a manager that serves the webhook with the rights of config/serverless,
// and an API server that calls it.
type webhookWorld struct {
	*world
	port   int
	health string
}

func newWebhookWorld(t *testing.T) *webhookWorld {
	t.Helper()
	w := &webhookWorld{port: freePort(t), health: env.FreeAddress(t)}
	config := shared.Component(t, manager.Name)
	w.world = newWorldWithoutManager(t, shared)
	w.install()
	runManager(t, manager.Options{
		Config: config, MetricsBindAddress: "0", HealthProbeBindAddress: w.health, Serverless: true,
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
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// install makes what config/serverless makes, but for the Service: this API server reaches
// no pods, so the Service points to the machine.
func (w *webhookWorld) install() {
	w.Helper()
	rights, err := env.ReadManifests("config/serverless/rbac.yaml")
	w.must(err)
	w.env.Apply(w, rights...)
	objects, err := env.ReadManifests("config/serverless/webhook.yaml")
	w.must(err)
	for _, object := range objects {
		switch object.GetKind() {
		case "Service":
			w.must(unstructured.SetNestedField(object.Object, map[string]any{
				"type": "ExternalName", "externalName": "localhost",
				"ports": []any{map[string]any{"port": int64(w.port)}},
			}, "spec"))
		case "MutatingWebhookConfiguration":
			configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
			w.must(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, configuration))
			port := int32(w.port)
			configuration.Webhooks[0].ClientConfig.Service.Port = &port
			// A loaded machine is no reason to go on without an answer.
			seconds := int32(20)
			configuration.Webhooks[0].TimeoutSeconds = &seconds
			w.must(w.client.Create(w.Context(), configuration))
			continue
		}
		w.must(w.client.Create(w.Context(), object))
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
		if err := client.IgnoreNotFound(w.client.Delete(ctx, object)); err != nil {
			w.Errorf("cleaning up: %v", err)
		}
	}
}

func (w *webhookWorld) secret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := w.client.Get(ctx, types.NamespacedName{Namespace: env.SystemNamespace, Name: webhookName}, secret)
	return secret, err
}

// trusted waits until the API server trusts the authority in the Secret, and that is not
// the one before.
func (w *webhookWorld) trusted(before string) (authority string) {
	w.Helper()
	w.until("the API server trusts a new authority", func(ctx context.Context) (string, error) {
		secret, err := w.secret(ctx)
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := w.client.Get(ctx, types.NamespacedName{Name: webhookName}, configuration); err != nil {
			return "", err
		}
		authority = string(configuration.Webhooks[0].ClientConfig.CABundle)
		if authority == "" || authority == before || authority != string(secret.Data["ca.crt"]) {
			return fmt.Sprintf("it trusts %.60q", authority), nil
		}
		return "", nil
	})
	return authority
}

// tries makes pods until one has the annotations from its making on.
func (w *webhookWorld) tries(prefix string) {
	w.Helper()
	count := 0
	w.until("a new pod is annotated", func(ctx context.Context) (string, error) {
		count++
		pod := w.unbound(fmt.Sprintf("%s-%d", prefix, count)).Build()
		if err := w.client.Create(ctx, pod); err != nil {
			return "", err
		}
		got := strings.Join(marks(pod), ", ")
		if got == told+", "+named {
			return "", nil
		}
		return "it is marked " + got, nil
	})
}

// unbound is a pod that may run on a virtual kubelet and waits for a node.
func (w *webhookWorld) unbound(name string) *builders.PodBuilder {
	return builders.Pod(w.namespace, name).Label("app", "game").Node("").Unsaved()
}

func TestWebhook(t *testing.T) {
	w := newWebhookWorld(t)
	w.virtualNode("vk-hook")
	w.marker(builders.Marker(w.namespace, "game").Probe(documented()))
	w.matched("game", 0)
	w.trusted("")
	w.tries("waits")

	// Bound from the start, as a provider meets it.
	bound := w.unbound("bound").Node("vk-hook").Annotation("mine", "stays").Build()
	w.must(w.client.Create(t.Context(), bound))
	if got, want := strings.Join(marks(bound), ", "), told+", "+named+", annotation mine=stays"; got != want {
		t.Errorf("a new pod is marked %s, want %s", got, want)
	}
	for name, pod := range map[string]*builders.PodBuilder{
		"no marker selects it":         w.unbound("other").Label("app", "db"),
		"bound to a node with kubelet": w.unbound("elsewhere").Node("kubelet"),
		"its selector picks no such":   w.unbound("picky").NodeSelector("zone", "b"),
	} {
		made := pod.Build()
		w.must(w.client.Create(t.Context(), made))
		if got := marks(made); len(got) > 0 {
			t.Errorf("%s: it is marked %s", name, got)
		}
	}
}

// A Secret that was deleted and made anew, one that is due and one with nonsense are all
// filled anew, and the API server goes on to call the webhook.
func TestWebhookAuthorityIsRenewed(t *testing.T) {
	w := newWebhookWorld(t)
	w.virtualNode("vk-certs")
	w.marker(builders.Marker(w.namespace, "game").Probe(documented()))
	w.matched("game", 0)
	authority := w.trusted("")
	w.tries("first")

	secret, err := w.secret(t.Context())
	w.must(err)
	w.must(w.client.Delete(t.Context(), secret))
	w.rest()
	w.tries("deleted")
	secret = &corev1.Secret{}
	secret.Namespace, secret.Name = env.SystemNamespace, webhookName
	w.must(w.client.Create(t.Context(), secret))
	authority = w.trusted(authority)
	w.tries("empty")

	due, key := expiring(t)
	for name, data := range map[string]map[string][]byte{
		"due":      {"ca.crt": due, "tls.crt": due, "tls.key": key},
		"nonsense": {"ca.crt": []byte("x"), "tls.crt": []byte("x"), "tls.key": []byte("x")},
	} {
		secret, err := w.secret(t.Context())
		w.must(err)
		secret.Data = data
		w.must(w.client.Update(t.Context(), secret))
		w.until("the Secret that is "+name+" is made anew", func(ctx context.Context) (string, error) {
			secret, err := w.secret(ctx)
			if err != nil || string(secret.Data["ca.crt"]) == string(data["ca.crt"]) {
				return "it has what the test wrote", err
			}
			return "", nil
		})
		authority = w.trusted(authority)
		w.tries(name)
	}

	// A configuration that is made anew, as an upgrade may do, is told of the authority.
	w.uninstall()
	w.install()
	w.trusted("")
	w.tries("again")
}

// expiring returns a sound authority of which less than a third of its time is left.
func expiring(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "old"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().AddDate(0, -11, 0), NotAfter: time.Now().AddDate(0, 1, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
