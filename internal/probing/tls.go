// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

const (
	// MaxHandshakeBytes is how much of a TLS handshake is read.
	MaxHandshakeBytes = 16 << 10
	// maxCertificateParts bounds the names and extensions in the certificates of a server. A name
	// of two bytes can need 150 bytes of memory for as long as the connection lasts.
	maxCertificateParts = 300
)

// TLSConfig returns the configuration of the TLS connections of probes. Certificates are not
// verified: one of a container rarely contains the pod's address.
func TLSConfig() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, VerifyConnection: checkCertificates} //nolint:gosec // as the kubelet probes
}

// checkCertificates rejects certificates that need much memory.
func checkCertificates(state tls.ConnectionState) error {
	parts := 0
	for _, certificate := range state.PeerCertificates {
		parts += partsOf(certificate)
	}
	if parts > maxCertificateParts {
		return fmt.Errorf("certificates have %d names and extensions, must have at most %d", parts, maxCertificateParts)
	}
	return nil
}

// partsOf returns how many parts of a certificate a server can repeat.
func partsOf(c *x509.Certificate) int {
	return len(c.Subject.Names) + len(c.Issuer.Names) + len(c.Extensions) +
		len(c.DNSNames) + len(c.EmailAddresses) + len(c.IPAddresses) + len(c.URIs) +
		len(c.ExtKeyUsage) + len(c.UnknownExtKeyUsage) + len(c.Policies) + len(c.PolicyMappings) +
		len(c.OCSPServer) + len(c.IssuingCertificateURL) + len(c.CRLDistributionPoints) +
		len(c.PermittedDNSDomains) + len(c.ExcludedDNSDomains) +
		len(c.PermittedEmailAddresses) + len(c.ExcludedEmailAddresses) +
		len(c.PermittedURIDomains) + len(c.ExcludedURIDomains) +
		len(c.PermittedIPRanges) + len(c.ExcludedIPRanges)
}
