// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
	"github.com/seamark-dev/seamark/hack/cluster/internal/pki"
	"github.com/seamark-dev/seamark/hack/cluster/internal/process"
)

func identities(t *testing.T) layout.Dir {
	t.Helper()
	dir := layout.Dir(t.TempDir())
	store, err := pki.NewStore(dir.PKIDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Identities(dir, store); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func daemons(dir layout.Dir) []process.Spec {
	return []process.Spec{Etcd(dir), APIServer(dir), ControllerManager(dir), Scheduler(dir)}
}

func TestDaemonsNameFilesThatExist(t *testing.T) {
	dir := identities(t)
	for _, spec := range daemons(dir) {
		for _, input := range spec.Inputs {
			if _, err := os.Stat(input); err != nil {
				t.Errorf("%s: %v", spec.Name, err)
			}
		}
		for _, arg := range spec.Args {
			_, value, _ := strings.Cut(arg, "=")
			if !strings.HasPrefix(value, string(dir)) || value == dir.EtcdData() {
				continue
			}
			if _, err := os.Stat(value); err != nil {
				t.Errorf("%s: %s: %v", spec.Name, arg, err)
			}
		}
	}
}

func TestDaemonsListenOnTheBridgeOnly(t *testing.T) {
	for _, spec := range daemons("/c") {
		bound := 0
		for _, arg := range spec.Args {
			name, value, _ := strings.Cut(arg, "=")
			if name != "--bind-address" && name != "--listen-client-urls" && name != "--listen-peer-urls" {
				continue
			}
			bound++
			if !strings.Contains(value, address.Host().String()) {
				t.Errorf("%s listens on %s", spec.Name, value)
			}
		}
		if bound == 0 {
			t.Errorf("%s has no address to listen on", spec.Name)
		}
	}
}

func TestAuthorization(t *testing.T) {
	args := strings.Join(APIServer("/c").Args, "\n")
	for _, want := range []string{"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"} {
		if !strings.Contains(args, want) {
			t.Errorf("no %s in %s", want, args)
		}
	}
}

func TestAdministratorTrustsTheServer(t *testing.T) {
	dir := identities(t)
	config, err := clientcmd.LoadFromFile(dir.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	context := config.Contexts[config.CurrentContext]
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster.Server != address.APIServer() {
		t.Errorf("server %s", cluster.Server)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cluster.CertificateAuthorityData) {
		t.Fatal("no authority")
	}
	read := func(certPEM, keyPEM []byte) *x509.Certificate {
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf
	}
	certPEM, err := os.ReadFile(dir.Cert(APIServerName))
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := os.ReadFile(dir.Key(APIServerName))
	if err != nil {
		t.Fatal(err)
	}
	server := read(certPEM, keyPEM)
	for _, host := range []string{address.Host().String(), address.APIService().String(), "kubernetes.default.svc"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	client := read(user.ClientCertificateData, user.ClientKeyData)
	if got := client.Subject.Organization; len(got) != 1 || got[0] != "system:masters" {
		t.Errorf("groups %v", got)
	}
	_, err = client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		t.Error(err)
	}
}
