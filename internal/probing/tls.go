// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probing

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"net"
	"sync/atomic"
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

// Limited is a connection of which a limited number of bytes is read, because protocols keep
// parts of what they read in memory, at a multiple of its size.
type Limited struct {
	net.Conn

	part  string
	limit int
	left  atomic.Int64
}

// Limit returns a connection that fails when more bytes than the limit are read. The error names
// the part that is too long, such as "TLS handshake".
func Limit(conn net.Conn, part string, limit int) *Limited {
	l := &Limited{Conn: conn, part: part, limit: limit}
	l.left.Store(int64(limit))
	return l
}

// Lift removes the limit.
func (l *Limited) Lift() { l.left.Store(math.MaxInt64) }

// Read reads from the connection within the limit.
func (l *Limited) Read(p []byte) (int, error) {
	left := l.left.Load()
	if left <= 0 {
		return 0, fmt.Errorf("%s exceeded %d bytes", l.part, l.limit)
	}
	n, err := l.Conn.Read(p[:min(int64(len(p)), left)])
	l.left.Add(-int64(n))
	return n, err
}
