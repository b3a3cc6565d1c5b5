// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func now() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

func newStore(t *testing.T, dir string) *Store {
	t.Helper()
	store, err := NewStore(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func authority(t *testing.T, store *Store, name string) Pair {
	t.Helper()
	pair, err := store.Authority(name)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestPairIsValidForItsSubjectOnly(t *testing.T) {
	store := newStore(t, t.TempDir())
	ca, other := authority(t, store, "ca"), authority(t, store, "other")
	client := Subject{CommonName: "c"}
	server := Subject{CommonName: "system:node:a", Groups: []string{"system:nodes"},
		Names: []string{"a"}, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
	tests := map[string]struct {
		subject Subject
		trust   Pair
		usage   x509.ExtKeyUsage
		host    string
		at      time.Time
		wantErr bool
	}{
		"client":            {subject: client, trust: ca, usage: x509.ExtKeyUsageClientAuth},
		"server by name":    {subject: server, trust: ca, usage: x509.ExtKeyUsageServerAuth, host: "a"},
		"server by address": {subject: server, trust: ca, usage: x509.ExtKeyUsageServerAuth, host: "10.0.0.1"},
		"server as client":  {subject: server, trust: ca, usage: x509.ExtKeyUsageClientAuth},
		"other name":        {subject: server, trust: ca, usage: x509.ExtKeyUsageServerAuth, host: "b", wantErr: true},
		"client as server":  {subject: client, trust: ca, usage: x509.ExtKeyUsageServerAuth, wantErr: true},
		"other authority":   {subject: server, trust: other, usage: x509.ExtKeyUsageServerAuth, wantErr: true},
		"expired": {subject: server, trust: ca, usage: x509.ExtKeyUsageServerAuth,
			at: now().Add(lifetime + time.Hour), wantErr: true},
		"end of lifetime": {subject: server, trust: ca, usage: x509.ExtKeyUsageServerAuth, at: now().Add(lifetime)},
		"clock behind":    {subject: server, trust: ca, usage: x509.ExtKeyUsageServerAuth, at: now().Add(-backdate)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pair, err := store.Pair(name, ca, test.subject)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AddCert(test.trust.Cert)
			at := test.at
			if at.IsZero() {
				at = now()
			}
			_, err = pair.Cert.Verify(x509.VerifyOptions{
				Roots: roots, DNSName: test.host, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{test.usage},
			})
			if (err != nil) != test.wantErr {
				t.Errorf("error = %v, want error: %t", err, test.wantErr)
			}
			if got := pair.Cert.Subject; got.CommonName != test.subject.CommonName || len(got.Organization) != len(test.subject.Groups) {
				t.Errorf("subject %v, want %v", got, test.subject)
			}
		})
	}
}

func TestStoreKeepsIssuedPairs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	load := func() (Pair, Pair, string) {
		store := newStore(t, dir)
		ca := authority(t, store, "ca")
		pair, err := store.Pair("client", ca, Subject{CommonName: "client"})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Key("tokens"); err != nil {
			t.Fatal(err)
		}
		public, err := os.ReadFile(filepath.Join(dir, "tokens.pub"))
		if err != nil {
			t.Fatal(err)
		}
		return ca, pair, string(public)
	}
	ca, pair, public := load()
	caAgain, pairAgain, publicAgain := load()
	if !ca.Cert.Equal(caAgain.Cert) || !pair.Cert.Equal(pairAgain.Cert) || public != publicAgain {
		t.Error("the second load issued new pairs")
	}
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %s of the key, want 0600", info.Mode())
	}
	// An interrupted write leaves a key without its certificate.
	if err := os.Remove(filepath.Join(dir, "client.crt")); err != nil {
		t.Fatal(err)
	}
	if _, fresh, _ := load(); fresh.Cert.Equal(pair.Cert) {
		t.Error("a lost certificate was not replaced")
	}
}

func TestStoreRefusesKeyOfAnotherCertificate(t *testing.T) {
	store := newStore(t, t.TempDir())
	authority(t, store, "one")
	authority(t, store, "two")
	if err := os.Rename(filepath.Join(store.dir, "two.key"), filepath.Join(store.dir, "one.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Authority("one"); err == nil {
		t.Error("the store accepted the key of another certificate")
	}
}
