// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/controlplane"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
	"github.com/seamark-dev/seamark/hack/cluster/internal/network"
	"github.com/seamark-dev/seamark/hack/cluster/internal/pki"
	"github.com/seamark-dev/seamark/hack/cluster/internal/process"
)

// Names of a node's daemons and of their programs.
const (
	ContainerdName = "containerd"
	KubeletName    = "kubelet"
	ProxyName      = "kube-proxy"
)

// Node is the input of the configuration of a node.
type Node struct {
	Dir  layout.Dir
	Plan address.Node
	// Runtime is the container runtime.
	Runtime Runtime
	// Snapshotter is containerd's snapshotter: overlayfs, or native if the file system does not support it.
	Snapshotter string
	// CgroupRoot is the existing cgroup in which the kubelet creates the cgroups of pods.
	CgroupRoot string
	// AuthorityCert is the file with the certificate of the cluster's authority.
	AuthorityCert string
}

// DaemonName returns the name of a node's daemon, which is also that of its log, record and cgroup.
func DaemonName(program, node string) string { return program + "-" + node }

// pair returns the name of a key pair of the node.
func (n Node) pair(program string) string { return DaemonName(program, n.Plan.Name) }

// bin returns the path of a program of the node's runtime.
func (n Node) bin(program string) string {
	return filepath.Join(n.Dir.Bin(n.Runtime.folder()), program)
}

// Client returns the path of the program that imports images into the node's runtime.
func (n Node) Client() string { return n.bin("ctr") }

// Files returns the content of the node's configuration files, by path.
func (n Node) Files() (map[string][]byte, error) {
	files := n.files()
	rendered := map[string][]byte{files.Config("resolv.conf"): []byte("# The kubelet creates the resolv.conf of pods.\n")}
	renderers := map[string]func(Node) ([]byte, error){
		files.Config("containerd.toml"):          containerdConfig,
		files.Config("kubelet.yaml"):             kubeletConfig,
		files.Config("kube-proxy.yaml"):          proxyConfig,
		files.CNIConf() + "/10-seamark.conflist": networkConfig,
	}
	for path, render := range renderers {
		text, err := render(n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Plan.Name, err)
		}
		rendered[path] = text
	}
	return rendered, nil
}

// Identities issues the missing keys, certificates and kubeconfigs of the node.
func (n Node) Identities(store *pki.Store) error {
	// The kubelet is client and server with the same pair. The Node authorizer identifies it by name and group.
	kubelet := pki.Subject{
		CommonName: "system:node:" + n.Plan.Name,
		Groups:     []string{"system:nodes"},
		Names:      []string{n.Plan.Name},
		Addresses:  []netip.Addr{n.Plan.IP},
	}
	files := n.files()
	err := controlplane.Kubeconfig(files.Config("kubelet.kubeconfig"), store, n.pair(KubeletName), kubelet)
	if err != nil {
		return err
	}
	proxy := pki.Subject{CommonName: "system:kube-proxy"}
	return controlplane.Kubeconfig(files.Config("kube-proxy.kubeconfig"), store, n.pair(ProxyName), proxy)
}

// Containerd returns the daemon of the node's container runtime.
func (n Node) Containerd() process.Spec {
	config := n.files().Config("containerd.toml")
	spec := n.daemon(ContainerdName, []string{"--config=" + config}, config)
	spec.Path = n.bin(ContainerdName)
	// containerd finds its shim in PATH.
	spec.Env[0] = "PATH=" + n.bin("") + ":" + spec.Env[0][len("PATH="):]
	return spec
}

// Kubelet returns the daemon of the node's kubelet.
func (n Node) Kubelet() process.Spec {
	files := n.files()
	config, kubeconfig := files.Config("kubelet.yaml"), files.Config("kubelet.kubeconfig")
	args := []string{
		"--config=" + config,
		"--kubeconfig=" + kubeconfig,
		"--root-dir=" + n.Dir.Short(files.Kubelet()),
		"--hostname-override=" + n.Plan.Name,
		"--node-ip=" + n.Plan.IP.String(),
	}
	return n.daemon(KubeletName, args, config, kubeconfig, n.Dir.Cert(n.pair(KubeletName)))
}

// Proxy returns the daemon of kube-proxy, which makes Services reachable from the node and its pods.
func (n Node) Proxy() process.Spec {
	files := n.files()
	config, kubeconfig := files.Config("kube-proxy.yaml"), files.Config("kube-proxy.kubeconfig")
	return n.daemon(ProxyName, []string{"--config=" + config}, config, kubeconfig)
}

func (n Node) daemon(program string, args []string, inputs ...string) process.Spec {
	return process.Spec{
		Name:   DaemonName(program, n.Plan.Name),
		Path:   n.Dir.Bin(program),
		Args:   args,
		Env:    controlplane.Environment(),
		NetNS:  network.NamespacePath(n.Plan.NetNS),
		Inputs: inputs,
	}
}
