// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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
