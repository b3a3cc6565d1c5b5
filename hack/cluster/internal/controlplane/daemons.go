// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane configures etcd and the three daemons of the control plane.
//
// They run on the machine and listen only on its bridge address, which nodes, pods and the machine can reach,
// and other machines cannot.
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
	"github.com/seamark-dev/seamark/hack/cluster/internal/process"
)

// Names of the daemons, of their programs and of their logs.
const (
	EtcdName              = "etcd"
	APIServerName         = "kube-apiserver"
	ControllerManagerName = "kube-controller-manager"
	SchedulerName         = "kube-scheduler"
)

// issuer is the issuer of service account tokens.
const issuer = "https://kubernetes.default.svc.cluster.local"

// Environment returns the environment of daemons. They find iptables, mount and other programs in PATH.
func Environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
}

// quotaVariable is the variable of etcd with its quota in bytes. Tests set it to fill the quota.
const quotaVariable = "ETCD_QUOTA_BACKEND_BYTES"

func etcdURL(port int) string { return fmt.Sprintf("https://%s:%d", address.Host(), port) }

// Etcd returns the daemon of etcd: one member that trusts clients of the etcd authority.
func Etcd(dir layout.Dir) process.Spec {
	cert, key, ca := dir.Cert(etcdServer), dir.Key(etcdServer), dir.Cert(etcdAuthority)
	environment := Environment()
	if quota := os.Getenv(quotaVariable); quota != "" {
		environment = append(environment, quotaVariable+"="+quota)
	}
	return process.Spec{
		Name: EtcdName,
		Path: dir.Bin(EtcdName),
		Args: []string{
			"--name=seamark",
			"--data-dir=" + dir.EtcdData(),
			"--listen-client-urls=" + etcdURL(address.EtcdPort),
			"--advertise-client-urls=" + etcdURL(address.EtcdPort),
			"--listen-peer-urls=" + etcdURL(address.EtcdPeerPort),
			"--initial-advertise-peer-urls=" + etcdURL(address.EtcdPeerPort),
			"--initial-cluster=seamark=" + etcdURL(address.EtcdPeerPort),
			"--client-cert-auth", "--cert-file=" + cert, "--key-file=" + key, "--trusted-ca-file=" + ca,
			"--peer-client-cert-auth", "--peer-cert-file=" + cert, "--peer-key-file=" + key, "--peer-trusted-ca-file=" + ca,
			// The data need not survive a crash of the machine.
			"--unsafe-no-fsync",
		},
		Env:    environment,
		Inputs: []string{cert, ca},
	}
}

// APIServer returns the daemon of kube-apiserver, with the Node and RBAC authorizers and NodeRestriction.
func APIServer(dir layout.Dir) process.Spec {
	return process.Spec{
		Name: APIServerName,
		Path: dir.Bin(APIServerName),
		Args: []string{
			"--advertise-address=" + address.Host().String(),
			"--bind-address=" + address.Host().String(),
			fmt.Sprintf("--secure-port=%d", address.APIServerPort),
			"--service-cluster-ip-range=" + address.ServiceRange().String(),
			"--etcd-servers=" + etcdURL(address.EtcdPort),
			"--etcd-cafile=" + dir.Cert(etcdAuthority),
			"--etcd-certfile=" + dir.Cert(etcdClient),
			"--etcd-keyfile=" + dir.Key(etcdClient),
			"--client-ca-file=" + dir.Cert(authority),
			"--tls-cert-file=" + dir.Cert(APIServerName),
			"--tls-private-key-file=" + dir.Key(APIServerName),
			"--kubelet-certificate-authority=" + dir.Cert(authority),
			"--kubelet-client-certificate=" + dir.Cert(kubeletClient),
			"--kubelet-client-key=" + dir.Key(kubeletClient),
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=" + issuer,
			"--service-account-key-file=" + publicKey(dir),
			"--service-account-signing-key-file=" + dir.Key(tokenKey),
			"--requestheader-client-ca-file=" + dir.Cert(frontProxyAuthority),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-username-headers=X-Remote-User",
			"--proxy-client-cert-file=" + dir.Cert(frontProxyClient),
			"--proxy-client-key-file=" + dir.Key(frontProxyClient),
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--allow-privileged=true",
			// The machine has routes to pods but not to Services: call webhooks at the addresses of pods.
			"--enable-aggregator-routing=true",
		},
		Env:    Environment(),
		Inputs: []string{dir.Cert(authority), dir.Cert(APIServerName), dir.Cert(etcdAuthority), publicKey(dir)},
	}
}

// ControllerManager returns the daemon of kube-controller-manager. Each controller has its own service account.
func ControllerManager(dir layout.Dir) process.Spec {
	kubeconfig := dir.Config(ControllerManagerName + ".kubeconfig")
	return process.Spec{
		Name: ControllerManagerName,
		Path: dir.Bin(ControllerManagerName),
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=" + address.Host().String(),
			"--leader-elect=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + dir.Key(tokenKey),
			"--root-ca-file=" + dir.Cert(authority),
			"--cluster-signing-cert-file=" + dir.Cert(authority),
			"--cluster-signing-key-file=" + dir.Key(authority),
			"--requestheader-client-ca-file=" + dir.Cert(frontProxyAuthority),
			"--allocate-node-cidrs=false",
			"--cluster-name=seamark",
		},
		Env:    Environment(),
		Inputs: []string{kubeconfig},
	}
}

// Scheduler returns the daemon of kube-scheduler.
func Scheduler(dir layout.Dir) process.Spec {
	kubeconfig := dir.Config(SchedulerName + ".kubeconfig")
	return process.Spec{
		Name: SchedulerName,
		Path: dir.Bin(SchedulerName),
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=" + address.Host().String(),
			"--leader-elect=false",
		},
		Env:    Environment(),
		Inputs: []string{kubeconfig},
	}
}

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
