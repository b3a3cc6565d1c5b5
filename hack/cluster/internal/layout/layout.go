// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout defines the path of every file of a cluster.
//
// All files are in one folder. No other package joins paths in it, so that `down` removes the same files that
// the daemons write.
package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxDirLength is the maximum length of a folder whose sockets fit into the address of a Unix socket (108 bytes on
// Linux). The longest path of a socket in it has fewer than 64 bytes.
const maxDirLength = 40

// Claim is a symbolic link to the folder of the cluster that runs on this machine. The names of links and cgroups
// are unique on a machine, so only one cluster can run.
const Claim = "/run/seamark-cluster"

// Dir is the absolute path of the folder of a cluster, without symbolic links.
type Dir string

// New returns the absolute form of path. It creates the folder if necessary.
func New(path string) (Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", fmt.Errorf("create the cluster folder: %w", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the cluster folder: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("resolve the cluster folder: %w", err)
	}
	return Dir(resolved), nil
}

func (d Dir) join(parts ...string) string {
	return filepath.Join(append([]string{string(d)}, parts...)...)
}

// Short returns a path for daemons that open sockets: it goes through the link Claim if the path of the folder is
// too long for the address of a socket.
func (d Dir) Short(path string) string {
	if len(d) <= maxDirLength {
		return path
	}
	if rest, ok := strings.CutPrefix(path, string(d)); ok {
		return Claim + rest
	}
	return path
}

// Bin returns the path of a program.
func (d Dir) Bin(name string) string { return d.join("bin", name) }

// BinDir returns the folder of the programs, which `down` keeps.
func (d Dir) BinDir() string { return d.join("bin") }

// LogDir returns the folder of logs, one per daemon, which `down` keeps.
func (d Dir) LogDir() string { return d.join("logs") }

// Log returns the path of a daemon's log.
func (d Dir) Log(name string) string { return d.join("logs", name+".log") }

// RunDir returns the folder of records, one per daemon.
func (d Dir) RunDir() string { return d.join("run") }

// Lock returns the lock file, which excludes concurrent commands.
func (d Dir) Lock() string { return d.join(".lock") }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.join("kubeconfig") }

// PKIDir returns the folder of keys and certificates.
func (d Dir) PKIDir() string { return d.join("pki") }

// Cert returns the path of the certificate of a named pair.
func (d Dir) Cert(name string) string { return d.join("pki", name+".crt") }

// Key returns the path of the private key of a named pair.
func (d Dir) Key(name string) string { return d.join("pki", name+".key") }

// ConfigDir returns the folder of the control plane's generated configuration.
func (d Dir) ConfigDir() string { return d.join("config") }

// Config returns the path of a configuration file of the control plane.
func (d Dir) Config(name string) string { return d.join("config", name) }

// EtcdData returns etcd's data folder.
func (d Dir) EtcdData() string { return d.join("etcd") }

// Kubernetes returns the folder of the module that pins another version of Kubernetes, which `down` keeps.
func (d Dir) Kubernetes() string { return d.join("kubernetes") }

// ImageDir returns the folder of image archives, which `down` keeps.
func (d Dir) ImageDir() string { return d.join("images") }

// Image returns the path of an image archive.
func (d Dir) Image(name string) string { return d.join("images", name+".tar") }

// NodesDir returns the folder with one folder per node.
func (d Dir) NodesDir() string { return d.join("nodes") }

// Tunables returns the file with the original values of the kernel settings that the kubelet changes.
func (d Dir) Tunables() string { return d.join("run", "kernel-tunables.json") }

// Node returns the layout of a node's folder.
func (d Dir) Node(name string) Node { return Node{dir: d, name: name} }

// Node defines the paths of the files of a node.
type Node struct {
	dir  Dir
	name string
}

func (n Node) join(parts ...string) string {
	return n.dir.join(append([]string{"nodes", n.name}, parts...)...)
}

// Dir returns the node's folder.
func (n Node) Dir() string { return n.join() }

// Socket returns containerd's socket, which serves containerd's API and the CRI.
func (n Node) Socket() string { return n.join("containerd.sock") }

// Root returns containerd's persistent folder.
func (n Node) Root() string { return n.join("containerd") }

// State returns containerd's volatile folder.
func (n Node) State() string { return n.join("state") }

// Runc returns the folder of runc's state.
func (n Node) Runc() string { return n.join("runc") }

// CNIConf returns the folder of the CNI configuration.
func (n Node) CNIConf() string { return n.join("cni") }

// CNIData returns the folder of address allocations.
func (n Node) CNIData() string { return n.join("ipam") }

// Kubelet returns the kubelet's root folder.
func (n Node) Kubelet() string { return n.join("kubelet") }

// Plugins returns the kubelet's folder of volume plugins.
func (n Node) Plugins() string { return n.join("plugins") }

// PodLogs returns the folder of container logs.
func (n Node) PodLogs() string { return n.join("pod-logs") }

// StaticPods returns the folder of the manifests of static pods, which need not exist.
func (n Node) StaticPods() string { return n.join("static-pods") }

// Config returns the path of a configuration file of the node.
func (n Node) Config(name string) string { return n.join("config", name) }

// Imported returns the file that lists the archives in the node's containerd.
func (n Node) Imported() string { return n.join("imported.json") }
