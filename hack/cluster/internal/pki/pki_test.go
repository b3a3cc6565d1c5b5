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

func authority(t *testing.T, name string) Pair {
	t.Helper()
	pair, err := NewAuthority(name, now())
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestIssue(t *testing.T) {
	ca, stranger := authority(t, "ca"), authority(t, "stranger")
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
		"client":            {subject: Subject{CommonName: "c"}, trust: ca, usage: x509.ExtKeyUsageClientAuth},
		"server by name":    {subject: server, trust: ca, usage: x509.ExtKeyUsageServerAuth, host: "a"},
		"server by address": {subject: server, trust: ca, usage: x509.ExtKeyUsageServerAuth, host: "10.0.0.1"},
		"server as client":  {subject: server, trust: ca, usage: x509.ExtKeyUsageClientAuth},
		"other name":        {subject: server, trust: ca, usage: x509.ExtKeyUsageServerAuth, host: "b", wantErr: true},
		"client as server":  {subject: Subject{CommonName: "c"}, trust: ca, usage: x509.ExtKeyUsageServerAuth, wantErr: true},
		"stranger":          {subject: server, trust: stranger, usage: x509.ExtKeyUsageServerAuth, wantErr: true},
		"too late": {subject: server, trust: ca, usage: x509.ExtKeyUsageServerAuth,
			at: now().Add(lifetime + time.Hour), wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pair, err := ca.Issue(test.subject, now())
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
				t.Errorf("error = %v, wanted one: %t", err, test.wantErr)
			}
			if got := pair.Cert.Subject.CommonName; got != test.subject.CommonName {
				t.Errorf("common name %q", got)
			}
		})
	}
}

func TestStoreKeepsWhatItIssued(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	load := func() (Pair, Pair, string) {
		store, err := NewStore(dir, now)
		if err != nil {
			t.Fatal(err)
		}
		ca, err := store.Authority("ca")
		if err != nil {
			t.Fatal(err)
		}
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
	again, pairAgain, publicAgain := load()
	if !ca.Cert.Equal(again.Cert) || !pair.Cert.Equal(pairAgain.Cert) || public != publicAgain {
		t.Error("the second load issued anew")
	}
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %s", info.Mode())
	}
	// A key without its certificate is what a broken write leaves.
	if err := os.Remove(filepath.Join(dir, "client.crt")); err != nil {
		t.Fatal(err)
	}
	if _, fresh, _ := load(); fresh.Cert.Equal(pair.Cert) {
		t.Error("a lost certificate was not issued anew")
	}
}

func TestStoreRefusesStrangeFiles(t *testing.T) {
	dir := t.TempDir()
	store, err := NewStore(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	one, two := authority(t, "one"), authority(t, "two")
	key, err := KeyPEM(two.Key)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"ca.crt": one.CertPEM(), "ca.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Authority("ca"); err == nil {
		t.Error("a key of another certificate was accepted")
	}
}
