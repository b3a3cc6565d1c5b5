// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cert-manager/cert-manager/pkg/util/pki"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const serverName = "injector.ns.svc"

// TestEveryClientTrustsEveryServer renews the certificates of two servers for 18 months. A client that has the
// published authorities of a day before trusts both servers at each time.
func TestEveryClientTrustsEveryServer(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}}
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	api := fake.NewClientBuilder().WithObjects(secret, published).Build()
	var sources []*Source
	for range 2 {
		sources = append(sources, New(Options{
			Client: api, Secret: client.ObjectKeyFromObject(secret), Bundle: client.ObjectKeyFromObject(published),
			ServerName: serverName, Lifetimes: DefaultLifetimes(), Log: logr.Discard(), Now: func() time.Time { return now },
		}))
	}
	if sources[0].Ready() {
		t.Error("ready without a certificate")
	}
	var bundles []string
	authorities := map[string]bool{}
	for range 18 * 30 * 2 {
		for i, source := range sources {
			if err := source.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(published), published); err != nil {
				t.Fatal(err)
			}
			bundles = append(bundles, published.Data[BundleKey])
			certificate, err := source.GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			authorities[certificate.Leaf.Issuer.CommonName] = true
			// Two lists are published per half a day.
			for _, known := range bundles[max(0, len(bundles)-4):] {
				pool := x509.NewCertPool()
				pool.AppendCertsFromPEM([]byte(known))
				_, err := certificate.Leaf.Verify(x509.VerifyOptions{DNSName: serverName, Roots: pool, CurrentTime: now})
				if err != nil {
					t.Fatalf("%s, server %d: %v", now, i, err)
				}
			}
		}
		now = now.Add(12 * time.Hour)
	}
	if len(authorities) < 3 {
		t.Errorf("%d authorities want a new one after eight months each", len(authorities))
	}
}

// TestCertManagerRenews gives two injectors the files of a renewal by another authority, one minute after the other. A
// client that has the authorities of two minutes before trusts both at each time, and the injectors do not take turns.
func TestCertManagerRenews(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	writes := 0
	api := fake.NewClientBuilder().WithObjects(published).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			writes++
			return c.Update(ctx, object, options...)
		},
	}).Build()
	lifetimes := DefaultLifetimes()
	lifetimes.Authority, lifetimes.Server = 90*24*time.Hour, 90*24*time.Hour
	files := func(directory string) {
		t.Helper()
		data := map[string][]byte{}
		if err := issue(data, currentKey, lifetimes, now); err != nil {
			t.Fatal(err)
		}
		server, err := serve(data, serverName, lifetimes, now)
		if err != nil {
			t.Fatal(err)
		}
		key, err := pki.EncodePKCS8PrivateKey(server.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{
			"ca.crt": data["current.crt"], "tls.crt": pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: server.Leaf.Raw}), "tls.key": key,
		} {
			if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	start := func(directory string) *Source {
		return New(Options{
			Client: api, Bundle: client.ObjectKeyFromObject(published), Directory: directory,
			ServerName: serverName, Lifetimes: lifetimes, Log: logr.Discard(), Now: func() time.Time { return now },
		})
	}
	// The kubelet copies the files of the Secret to the nodes.
	secret, nodes := t.TempDir(), []string{t.TempDir(), t.TempDir()}
	files(secret)
	copyTo := func(i int) {
		t.Helper()
		for _, name := range []string{"ca.crt", "tls.crt", "tls.key"} {
			content, err := os.ReadFile(filepath.Join(secret, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(nodes[i], name), content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	copyTo(0)
	copyTo(1)
	sources := []*Source{start(nodes[0]), start(nodes[1])}
	var bundles []string
	const perRenewal = 4 + 60
	for i := range 3 * perRenewal {
		step := 10 * time.Minute
		switch i % perRenewal {
		case 0:
		case 1:
			files(secret)
			copyTo(0)
		case 2:
			copyTo(1)
		case 3:
			// An injector that starts now has the new certificate only.
			sources = append(sources[:2], start(nodes[1]))
		default:
			step = 24 * time.Hour
		}
		for i, source := range sources {
			if err := source.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !source.Ready() {
				t.Errorf("injector %d is not ready, although its authority is known", i)
				continue
			}
			for _, known := range bundles[max(0, len(bundles)-2):] {
				if err := verify(source.current.Load(), []byte(known), now); err != nil {
					t.Fatalf("%s, server %d: %v", now, i, err)
				}
			}
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(published), published); err != nil {
			t.Fatal(err)
		}
		bundles = append(bundles, published.Data[BundleKey])
		now = now.Add(step)
	}
	// Four authorities are published one after the other, and the expired ones are removed.
	if writes > 8 || strings.Count(bundles[len(bundles)-1], "BEGIN") > 2 {
		t.Errorf("%d writes, and at last %d authorities", writes, strings.Count(bundles[len(bundles)-1], "BEGIN"))
	}
	// An injector that starts with a certificate that nobody knows leaves the requests to others at first.
	files(nodes[0])
	late := start(nodes[0])
	if err := late.look(t.Context()); err != nil || late.Ready() {
		t.Errorf("ready %t, error %v", late.Ready(), err)
	}
	// So does another one that starts then, or the same one again: it finds the authority published.
	now = now.Add(lifetimes.Look / 3)
	again := start(nodes[0])
	if err := again.look(t.Context()); err != nil || again.Ready() {
		t.Errorf("the second one: ready %t, error %v", again.Ready(), err)
	}
	now = now.Add(lifetimes.Look - lifetimes.Look/3)
	if err := again.look(t.Context()); err != nil || !again.Ready() {
		t.Errorf("the second one: ready %t, error %v", again.Ready(), err)
	}
	if err := late.look(t.Context()); err != nil || !late.Ready() {
		t.Errorf("ready %t, error %v", late.Ready(), err)
	}
	// Files of two renewals are not used.
	files(secret)
	content, err := os.ReadFile(filepath.Join(secret, "ca.crt"))
	if err == nil {
		err = os.WriteFile(filepath.Join(nodes[0], "ca.crt"), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := late.look(t.Context()); err == nil {
		t.Error("a certificate of another authority is used")
	}
}

// TestAddresses checks the names in certificates.
func TestAddresses(t *testing.T) {
	data, _, err := renew(nil, DefaultLifetimes(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{serverName, "10.0.0.1", "2001:db8::1"} {
		certificate, err := serve(data, name, DefaultLifetimes(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := certificate.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}

// TestInvalidSecretIsReplaced checks that a Secret that somebody edited does not stop the injectors.
func TestInvalidSecretIsReplaced(t *testing.T) {
	now := time.Now()
	valid, _, err := renew(nil, DefaultLifetimes(), now)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := renew(nil, DefaultLifetimes(), now)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]map[string][]byte{
		"empty":          nil,
		"no PEM":         {"current.crt": []byte("x"), "current.key": []byte("x")},
		"no key":         {"current.crt": valid["current.crt"]},
		"key of another": {"current.crt": valid["current.crt"], "current.key": other["current.key"]},
		"none is valid":  {"current.crt": valid["current.crt"], "next.crt": []byte("x"), "next.key": []byte("x")},
	} {
		renewed, changed, err := renew(data, DefaultLifetimes(), now)
		if err != nil || !changed || read(renewed, currentKey, now) == nil {
			t.Errorf("%s: changed %t, error %v, want a valid authority", name, changed, err)
		}
	}
	if _, changed, err := renew(valid, DefaultLifetimes(), now.Add(400*24*time.Hour)); err != nil || !changed {
		t.Errorf("an expired authority: changed %t, error %v, want a new one", changed, err)
	}
	if got, changed, err := renew(valid, DefaultLifetimes(), now.Add(time.Hour)); err != nil || changed || len(got) != len(valid) {
		t.Errorf("a valid authority: changed %t, error %v", changed, err)
	}
}
