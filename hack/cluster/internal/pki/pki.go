// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki issues the keys and certificates of one cluster.
//
// A cluster has three authorities that do not trust each other: one for clients and servers, one for
// etcd, one for the front proxy. All keys are ECDSA P-256. Certificates last ten years: the cluster is
// thrown away long before.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"time"
)

const lifetime = 10 * 365 * 24 * time.Hour

// backdate covers clocks that differ a little.
const backdate = time.Hour

// Pair is a private key with the certificate of its public half.
type Pair struct {
	Key  *ecdsa.PrivateKey
	Cert *x509.Certificate
}

// Subject says whom a certificate names and where it may be used.
type Subject struct {
	// CommonName is the user name of a client, the host name of a server.
	CommonName string
	// Groups are the groups of a client.
	Groups []string
	// Names and Addresses are what a server is called. A certificate with either serves; every
	// certificate may also be shown by a client.
	Names     []string
	Addresses []netip.Addr
}

// NewAuthority makes an authority that signs for itself, valid from shortly before now.
func NewAuthority(name string, now time.Time) (Pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	key, err := NewKey()
	if err != nil {
		return Pair{}, err
	}
	return sign(template, key, template, key)
}

// Issue makes a key pair that the authority vouches for.
func (authority Pair) Issue(subject Subject, now time.Time) (Pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: subject.CommonName, Organization: subject.Groups},
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		DNSNames:    subject.Names,
	}
	for _, address := range subject.Addresses {
		template.IPAddresses = append(template.IPAddresses, address.AsSlice())
	}
	if len(subject.Names)+len(subject.Addresses) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	key, err := NewKey()
	if err != nil {
		return Pair{}, err
	}
	return sign(template, key, authority.Cert, authority.Key)
}

// NewKey makes a private key.
func NewKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	return key, nil
}

func sign(template *x509.Certificate, key *ecdsa.PrivateKey, parent *x509.Certificate, signer crypto.Signer) (Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Pair{}, fmt.Errorf("choose a serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %q: %w", template.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return Pair{}, fmt.Errorf("read back the certificate of %q: %w", template.Subject.CommonName, err)
	}
	return Pair{Key: key, Cert: cert}, nil
}

// CertPEM is the certificate as Kubernetes reads it.
func (authority Pair) CertPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Cert.Raw})
}

// KeyPEM is a private key as Kubernetes reads it.
func KeyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// PublicKeyPEM is the public half of a key as Kubernetes reads it.
func PublicKeyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encode a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// ParsePair reads back what CertPEM and KeyPEM wrote.
func ParsePair(certPEM, keyPEM []byte) (Pair, error) {
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return Pair{}, errors.New("read a key pair: no PEM block")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return Pair{}, fmt.Errorf("read a certificate: %w", err)
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return Pair{}, fmt.Errorf("read a private key: %w", err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return Pair{}, errors.New("read a key pair: key and certificate do not belong together")
	}
	return Pair{Key: key, Cert: cert}, nil
}
