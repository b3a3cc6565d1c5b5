// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates gives the injectors their server certificates. The injectors share a certificate
// authority in a Secret, and publish in a ConfigMap which authorities to trust. A new authority is published a
// day before it signs, and the old one stays published after that: each API server trusts both long before
// the first certificate of the new one, so that no call fails.
package certificates

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"maps"
	"net"
	"time"

	"github.com/cert-manager/cert-manager/pkg/util/pki"
)

// The keys of the Secret.
const (
	currentKey  = "current"
	nextKey     = "next"
	previousKey = "previous"

	certificateSuffix = ".crt"
	privateSuffix     = ".key"
)

// Lifetimes are how long certificates are valid.
type Lifetimes struct {
	// Authority and Server are the lifetimes of certificates. They are renewed after two thirds of them.
	Authority, Server time.Duration
	// Overlap is how long an authority is published before it signs. It is less than a third of Authority, by several
	// looks: the next authority is issued when a third is left, and the current one must not expire before the next signs.
	Overlap time.Duration
	// Look is how often an injector reads what others have written, and Skew is how much clocks differ. A third
	// of Server is long enough for several looks: some fail, as when two injectors write at once.
	Look, Skew time.Duration
}

// DefaultLifetimes returns those of an installation.
func DefaultLifetimes() Lifetimes {
	return Lifetimes{
		Authority: 365 * 24 * time.Hour, Server: 7 * 24 * time.Hour, Overlap: 24 * time.Hour,
		Look: 30 * time.Second, Skew: time.Minute,
	}
}

// pair is a certificate with its private key.
type pair struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// read returns the pair with the name, or nil if it is missing, invalid or not valid at the time.
func read(data map[string][]byte, name string, now time.Time) *pair {
	certificate, private := data[name+certificateSuffix], data[name+privateSuffix]
	if _, err := tls.X509KeyPair(certificate, private); err != nil {
		return nil
	}
	parsed, err := pki.DecodeX509CertificateBytes(certificate)
	if err != nil || !parsed.IsCA || now.After(parsed.NotAfter) {
		return nil
	}
	key, err := pki.DecodePrivateKeyBytes(private)
	if err != nil {
		return nil
	}
	return &pair{certificate: parsed, key: key}
}

// isDue reports whether two thirds of the lifetime are over.
func isDue(certificate *x509.Certificate, now time.Time) bool {
	third := certificate.NotAfter.Sub(certificate.NotBefore) / 3
	return now.After(certificate.NotAfter.Add(-third))
}

// renew returns what the Secret should contain, and false if it does. Data that is not valid is replaced at
// once: nothing else can be done.
func renew(data map[string][]byte, lifetimes Lifetimes, now time.Time) (map[string][]byte, bool, error) {
	current, next := read(data, currentKey, now), read(data, nextKey, now)
	renewed := maps.Clone(data)
	if renewed == nil {
		renewed = map[string][]byte{}
	}
	switch {
	case current == nil && next == nil:
		return renewed, true, issue(renewed, currentKey, lifetimes, now)
	case next != nil && (current == nil || !now.Before(next.certificate.NotBefore.Add(lifetimes.Skew+lifetimes.Overlap))):
		promote(renewed)
		return renewed, true, nil
	case next == nil && isDue(current.certificate, now):
		return renewed, true, issue(renewed, nextKey, lifetimes, now)
	default:
		return data, false, nil
	}
}

// promote makes the next authority the current one. The private key of the previous one is not needed.
func promote(data map[string][]byte) {
	if certificate := data[currentKey+certificateSuffix]; len(certificate) > 0 {
		data[previousKey+certificateSuffix] = certificate
	}
	for _, suffix := range []string{certificateSuffix, privateSuffix} {
		data[currentKey+suffix] = data[nextKey+suffix]
		delete(data, nextKey+suffix)
	}
}

// issue adds a new authority with the name.
func issue(data map[string][]byte, name string, lifetimes Lifetimes, now time.Time) error {
	key, err := pki.GenerateECPrivateKey(pki.ECCurve256)
	if err != nil {
		return fmt.Errorf("generate the key of a certificate authority: %w", err)
	}
	private, err := pki.EncodePKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key of a certificate authority: %w", err)
	}
	template := &x509.Certificate{
		BasicConstraintsValid: true, IsCA: true, PublicKeyAlgorithm: x509.ECDSA,
		// The time makes the names of two authorities differ.
		Subject:   pkix.Name{CommonName: "seamark-injector-ca@" + now.UTC().Format(time.RFC3339)},
		NotBefore: now.Add(-lifetimes.Skew), NotAfter: now.Add(lifetimes.Authority),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	certificate, _, err := pki.SignCertificate(template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("sign a certificate authority: %w", err)
	}
	data[name+certificateSuffix], data[name+privateSuffix] = certificate, private
	return nil
}

// bundle returns the certificates of all authorities to trust.
func bundle(data map[string][]byte, now time.Time) []byte {
	var all []byte
	for _, name := range []string{previousKey, currentKey, nextKey} {
		certificate := data[name+certificateSuffix]
		parsed, err := pki.DecodeX509CertificateBytes(certificate)
		if err != nil || now.After(parsed.NotAfter) || bytes.Contains(all, certificate) {
			continue
		}
		all = append(all, certificate...)
	}
	return all
}

// serve returns a new server certificate for the name or address, signed by the current authority. It is valid no longer
// than the authority.
func serve(data map[string][]byte, name string, lifetimes Lifetimes, now time.Time) (*tls.Certificate, error) {
	authority := read(data, currentKey, now)
	if authority == nil {
		return nil, fmt.Errorf("sign a server certificate: the Secret has no valid authority")
	}
	key, err := pki.GenerateECPrivateKey(pki.ECCurve256)
	if err != nil {
		return nil, fmt.Errorf("generate the key of a server certificate: %w", err)
	}
	until := now.Add(lifetimes.Server)
	if until.After(authority.certificate.NotAfter) {
		until = authority.certificate.NotAfter
	}
	template := &x509.Certificate{
		BasicConstraintsValid: true, PublicKeyAlgorithm: x509.ECDSA,
		NotBefore: now.Add(-lifetimes.Skew), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	_, certificate, err := pki.SignCertificate(template, authority.certificate, key.Public(), authority.key)
	if err != nil {
		return nil, fmt.Errorf("sign a server certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key, Leaf: certificate}, nil
}

// isSignedBy reports whether the certificate is valid, not due for renewal and signed by the current authority.
func isSignedBy(certificate *tls.Certificate, data map[string][]byte, now time.Time) bool {
	authority := read(data, currentKey, now)
	return certificate != nil && authority != nil && !isDue(certificate.Leaf, now) && certificate.Leaf.CheckSignatureFrom(authority.certificate) == nil
}
