// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxAuthorities is the number of published authorities: each webhook entry contains all of them.
const maxAuthorities = 4

// union returns the authorities to publish: those that are published and still valid, because other injectors may use
// them, and those of this injector. If there are too many, the newest ones stay. added is whether one of this injector
// is new next to others.
func union(published, own []byte, now time.Time) (all []byte, added bool) {
	kept, mine := valid(published, now), valid(own, now)
	others := len(kept) > 0
	for _, certificate := range mine {
		if !slices.ContainsFunc(kept, certificate.Equal) {
			kept, added = append(kept, certificate), others
		}
	}
	for len(kept) > max(maxAuthorities, len(mine)) {
		oldest := -1
		for i, certificate := range kept {
			if !slices.ContainsFunc(mine, certificate.Equal) && (oldest < 0 || certificate.NotBefore.Before(kept[oldest].NotBefore)) {
				oldest = i
			}
		}
		kept = slices.Delete(kept, oldest, oldest+1)
	}
	for _, certificate := range kept {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: certificate.Raw})...)
	}
	return all, added
}

// pemType is the type of certificates in PEM.
const pemType = "CERTIFICATE"

// valid returns the certificates that have not expired, each once.
func valid(data []byte, now time.Time) []*x509.Certificate {
	var found []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		parsed, err := x509.ParseCertificate(block.Bytes)
		if block.Type == pemType && err == nil && !now.After(parsed.NotAfter) && !slices.ContainsFunc(found, parsed.Equal) {
			found = append(found, parsed)
		}
	}
	return found
}

// verify returns an error if clients that trust the authorities do not trust the server. The files of cert-manager may
// be of two renewals if they change between two reads.
func verify(server *tls.Certificate, authorities []byte, now time.Time) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bytes.TrimSpace(authorities)) {
		return errors.New("read the certificate authority: the file has no certificate")
	}
	for _, raw := range server.Certificate[1:] {
		if parsed, err := x509.ParseCertificate(raw); err == nil {
			between.AddCert(parsed)
		}
	}
	if _, err := server.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now}); err != nil {
		return fmt.Errorf("verify the server certificate: %w", err)
	}
	return nil
}
