// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki issues and stores the keys and certificates of one cluster, with kubeadm's code.
//
// A cluster has three authorities that do not trust each other: one for clients and servers, one for
// etcd, one for the front proxy. All keys are ECDSA P-256. Certificates are valid for ten years, which
// is longer than any cluster lasts.
package pki

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

const (
	lifetime = 10 * 365 * 24 * time.Hour
	// backdate allows for clocks that differ a little.
	backdate = time.Hour
)

// Pair is a private key with the certificate of its public key.
type Pair struct {
	Key  crypto.Signer
	Cert *x509.Certificate
}

// CertPEM returns the certificate as PEM.
func (p Pair) CertPEM() []byte { return pkiutil.EncodeCertPEM(p.Cert) }

// KeyPEM returns the private key as PEM.
func (p Pair) KeyPEM() ([]byte, error) {
	text, err := keyutil.MarshalPrivateKeyToPEM(p.Key)
	if err != nil {
		return nil, fmt.Errorf("encode the private key of %q: %w", p.Cert.Subject.CommonName, err)
	}
	return text, nil
}

// Subject describes the holder of a certificate.
type Subject struct {
	// CommonName is the user name of a client, the host name of a server.
	CommonName string
	// Groups are the groups of a client.
	Groups []string
	// Names and Addresses are those of a server. A subject with neither is only a client; a server may
	// also act as a client.
	Names     []string
	Addresses []netip.Addr
}

// Store keeps pairs as files `<name>.crt` and `<name>.key` in one folder that only its owner can read.
type Store struct {
	dir string
}

// NewStore returns a store in dir, which it creates.
func NewStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the key folder: %w", err)
	}
	return &Store{dir: dir}, nil
}

// Authority returns the named authority. The first call creates it.
func (s *Store) Authority(name string) (Pair, error) {
	return s.ensure(name, func() (*x509.Certificate, crypto.Signer, error) {
		return pkiutil.NewCertificateAuthority(config(Subject{CommonName: name}))
	})
}

// Pair returns the named pair. The first call has the authority issue it.
func (s *Store) Pair(name string, authority Pair, subject Subject) (Pair, error) {
	return s.ensure(name, func() (*x509.Certificate, crypto.Signer, error) {
		return pkiutil.NewCertAndKey(authority.Cert, authority.Key, config(subject))
	})
}

// Key creates `<name>.key` and its public key `<name>.pub` unless they exist.
func (s *Store) Key(name string) error {
	if _, err := os.Stat(filepath.Join(s.dir, name+".pub")); err == nil {
		return nil
	}
	key, err := pkiutil.GeneratePrivateKey(kubeadm.EncryptionAlgorithmECDSAP256)
	if err != nil {
		return fmt.Errorf("generate key %s: %w", name, err)
	}
	if err := pkiutil.WriteKey(s.dir, name, key); err != nil {
		return fmt.Errorf("write key %s: %w", name, err)
	}
	// The public key is written last: an interrupted call is repeated.
	if err := pkiutil.WritePublicKey(s.dir, name, key.Public()); err != nil {
		return fmt.Errorf("write public key %s: %w", name, err)
	}
	return nil
}

func config(subject Subject) *pkiutil.CertConfig {
	made := &pkiutil.CertConfig{
		Config: cert.Config{
			CommonName: subject.CommonName, Organization: subject.Groups, NotBefore: time.Now().Add(-backdate),
			AltNames: cert.AltNames{DNSNames: subject.Names},
			Usages:   []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		},
		NotAfter:            time.Now().Add(lifetime),
		EncryptionAlgorithm: kubeadm.EncryptionAlgorithmECDSAP256,
	}
	for _, address := range subject.Addresses {
		made.AltNames.IPs = append(made.AltNames.IPs, net.IP(address.AsSlice()))
	}
	if len(subject.Names)+len(subject.Addresses) > 0 {
		made.Usages = append(made.Usages, x509.ExtKeyUsageServerAuth)
	}
	return made
}

func (s *Store) ensure(name string, issue func() (*x509.Certificate, crypto.Signer, error)) (Pair, error) {
	certPath, _ := pkiutil.PathsForCertAndKey(s.dir, name)
	if _, err := os.Stat(certPath); err == nil {
		certificate, key, err := pkiutil.TryLoadCertAndKeyFromDisk(s.dir, name)
		if err != nil {
			return Pair{}, fmt.Errorf("read %s: %w", name, err)
		}
		return Pair{Key: key, Cert: certificate}, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Pair{}, fmt.Errorf("find certificate %s: %w", name, err)
	}
	certificate, key, err := issue()
	if err != nil {
		return Pair{}, fmt.Errorf("issue %s: %w", name, err)
	}
	// The certificate is written last: an interrupted call is repeated.
	if err := pkiutil.WriteCertAndKey(s.dir, name, certificate, key); err != nil {
		return Pair{}, fmt.Errorf("write %s: %w", name, err)
	}
	return Pair{Key: key, Cert: certificate}, nil
}
