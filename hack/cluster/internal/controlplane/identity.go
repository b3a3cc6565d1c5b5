// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
	"github.com/seamark-dev/seamark/hack/cluster/internal/pki"
)

// Names of key pairs that only this package uses.
const (
	authority           = "ca"
	etcdAuthority       = "etcd-ca"
	frontProxyAuthority = "front-proxy-ca"
	etcdServer          = "etcd"
	etcdClient          = "etcd-client"
	kubeletClient       = "kubelet-client"
	frontProxyClient    = "front-proxy-client"
	tokenKey            = "service-accounts"
	administrator       = "admin"
)

func publicKey(dir layout.Dir) string { return filepath.Join(dir.PKIDir(), tokenKey+".pub") }

// AuthorityCert returns the file with the certificate of the authority of clients and servers.
func AuthorityCert(dir layout.Dir) string { return dir.Cert(authority) }

// Identities issues the missing keys, certificates and kubeconfigs of the control plane and the
// administrator.
func Identities(dir layout.Dir, store *pki.Store) error {
	host := []netip.Addr{address.Host()}
	steps := []struct {
		authority string
		pairs     map[string]pki.Subject
	}{
		{authority: etcdAuthority, pairs: map[string]pki.Subject{
			etcdServer: {CommonName: "etcd", Addresses: host},
			etcdClient: {CommonName: "kube-apiserver"},
		}},
		{authority: frontProxyAuthority, pairs: map[string]pki.Subject{
			frontProxyClient: {CommonName: "front-proxy-client"},
		}},
		{authority: authority, pairs: map[string]pki.Subject{
			kubeletClient: {CommonName: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
			APIServerName: {
				CommonName: "kube-apiserver",
				Addresses:  append(host, address.APIService()),
				Names: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc",
					"kubernetes.default.svc.cluster.local"},
			},
		}},
	}
	for _, step := range steps {
		signer, err := store.Authority(step.authority)
		if err != nil {
			return err
		}
		for name, subject := range step.pairs {
			if _, err := store.Pair(name, signer, subject); err != nil {
				return err
			}
		}
	}
	if err := store.Key(tokenKey); err != nil {
		return err
	}
	return clients(dir, store)
}

func clients(dir layout.Dir, store *pki.Store) error {
	admin := pki.Subject{CommonName: "admin", Groups: []string{"system:masters"}}
	if err := Kubeconfig(dir.Kubeconfig(), store, administrator, admin); err != nil {
		return err
	}
	for _, name := range []string{ControllerManagerName, SchedulerName} {
		err := Kubeconfig(dir.Config(name+".kubeconfig"), store, name, pki.Subject{CommonName: "system:" + name})
		if err != nil {
			return err
		}
	}
	return nil
}

// Kubeconfig writes the kubeconfig of a client of the API server to path. name is the name of the client's
// pair in the store.
func Kubeconfig(path string, store *pki.Store, name string, subject pki.Subject) error {
	signer, err := store.Authority(authority)
	if err != nil {
		return err
	}
	pair, err := store.Pair(name, signer, subject)
	if err != nil {
		return err
	}
	key, err := pair.KeyPEM()
	if err != nil {
		return err
	}
	config := clientcmdapi.Config{
		CurrentContext: "seamark",
		Clusters: map[string]*clientcmdapi.Cluster{"seamark": {
			Server: address.APIServer(), CertificateAuthorityData: signer.CertPEM(),
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: pair.CertPEM(), ClientKeyData: key,
		}},
		Contexts: map[string]*clientcmdapi.Context{"seamark": {Cluster: "seamark", AuthInfo: name}},
	}
	text, err := clientcmd.Write(config)
	if err != nil {
		return fmt.Errorf("encode the kubeconfig of %s: %w", name, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
