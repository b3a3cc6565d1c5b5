// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout names every file of a cluster.
//
// A cluster lives in one directory. Nothing else in this program joins paths below it, so that what
// `down` removes and what the daemons write cannot drift apart.
package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxDirLength is the longest directory whose sockets still fit a unix socket address (108 bytes on
// Linux): the deepest socket of a node adds less than 64 bytes.
const maxDirLength = 40

// Claim is the symbolic link that says which directory's cluster runs on this machine. The network
// and cgroup names are the machine's, so there is one cluster at a time.
const Claim = "/run/seamark-cluster"

// Dir is the absolute, symlink-free directory of one cluster.
type Dir string

// New makes the absolute form of path, creating the directory when it is missing.
func New(path string) (Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", fmt.Errorf("create the cluster directory: %w", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the cluster directory: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("resolve the cluster directory: %w", err)
	}
	return Dir(resolved), nil
}

func (d Dir) join(parts ...string) string {
	return filepath.Join(append([]string{string(d)}, parts...)...)
}

// Short is path as daemons that open sockets below it get it: through the claim's link where the
// directory itself is too long for a socket address.
func (d Dir) Short(path string) string {
	if len(d) <= maxDirLength {
		return path
	}
	if rest, ok := strings.CutPrefix(path, string(d)); ok {
		return Claim + rest
	}
	return path
}

// Bin is the path of a program.
func (d Dir) Bin(name string) string { return d.join("bin", name) }

// BinDir holds the programs and outlives the cluster.
func (d Dir) BinDir() string { return d.join("bin") }

// LogDir holds one file a daemon and outlives the cluster.
func (d Dir) LogDir() string { return d.join("logs") }

// Log is the path of a daemon's log.
func (d Dir) Log(name string) string { return d.join("logs", name+".log") }

// RunDir holds one record a daemon.
func (d Dir) RunDir() string { return d.join("run") }

// Lock is the file that keeps two commands on one directory apart.
func (d Dir) Lock() string { return d.join(".lock") }

// Kubeconfig is the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.join("kubeconfig") }

// PKIDir holds keys and certificates.
func (d Dir) PKIDir() string { return d.join("pki") }

// Cert and Key are the halves of a named key pair.
func (d Dir) Cert(name string) string { return d.join("pki", name+".crt") }

// Key is the private half of a named key pair.
func (d Dir) Key(name string) string { return d.join("pki", name+".key") }

// ConfigDir holds the control plane's generated configuration.
func (d Dir) ConfigDir() string { return d.join("config") }

// Config is the path of a control plane configuration file.
func (d Dir) Config(name string) string { return d.join("config", name) }

// EtcdData is etcd's data directory.
func (d Dir) EtcdData() string { return d.join("etcd") }

// ImageDir holds the archives that every node gets, and outlives the cluster.
func (d Dir) ImageDir() string { return d.join("images") }

// Image is the path of such an archive.
func (d Dir) Image(name string) string { return d.join("images", name+".tar") }

// NodesDir holds one directory a node.
func (d Dir) NodesDir() string { return d.join("nodes") }

// Tunables holds the kernel settings that the kubelet changes, as they were before.
func (d Dir) Tunables() string { return d.join("run", "kernel-tunables.json") }

// Node is the layout of one node's directory.
func (d Dir) Node(name string) Node { return Node{dir: d, name: name} }

// Node names the files of one node.
type Node struct {
	dir  Dir
	name string
}

func (n Node) join(parts ...string) string {
	return n.dir.join(append([]string{"nodes", n.name}, parts...)...)
}

// Dir is the node's own directory.
func (n Node) Dir() string { return n.join() }

// Socket is containerd's socket: it serves containerd's own API and CRI.
func (n Node) Socket() string { return n.join("containerd.sock") }

// Root is containerd's persistent directory.
func (n Node) Root() string { return n.join("containerd") }

// State is containerd's volatile directory.
func (n Node) State() string { return n.join("state") }

// Runc is where runc keeps its containers' state.
func (n Node) Runc() string { return n.join("runc") }

// CNIConf is the folder of the node's CNI configuration.
func (n Node) CNIConf() string { return n.join("cni") }

// CNIData is where address allocations are kept.
func (n Node) CNIData() string { return n.join("ipam") }

// Kubelet is the kubelet's root directory.
func (n Node) Kubelet() string { return n.join("kubelet") }

// Plugins is the kubelet's volume plugin directory.
func (n Node) Plugins() string { return n.join("plugins") }

// PodLogs holds the logs of the node's containers.
func (n Node) PodLogs() string { return n.join("pod-logs") }

// Config is the path of one of the node's configuration files.
func (n Node) Config(name string) string { return n.join("config", name) }

// Imported lists the archives that the node's containerd has.
func (n Node) Imported() string { return n.join("imported.json") }
