// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
)

// removeStrays removes files that programs create outside of the cluster's folder: the sockets of containerd's
// shims, CNI's results, and the kubelet's links to logs. It returns their number.
func removeStrays(nodes []layout.Node) (int, error) {
	var strays []string
	for _, files := range nodes {
		bundles, err := filepath.Glob(filepath.Join(files.State(), "io.containerd.runtime.v2.task", "k8s.io", "*"))
		if err != nil {
			return 0, fmt.Errorf("list containers: %w", err)
		}
		for _, bundle := range bundles {
			strays = append(strays, shimSockets(bundle)...)
			results, err := filepath.Glob(filepath.Join("/var/lib/cni/results", "*-"+filepath.Base(bundle)+"-*"))
			if err != nil {
				return 0, fmt.Errorf("list CNI results: %w", err)
			}
			strays = append(strays, results...)
		}
		links, err := linksInto("/var/log/containers", files.PodLogs())
		if err != nil {
			return 0, err
		}
		strays = append(strays, links...)
	}
	for _, stray := range strays {
		if err := os.Remove(stray); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("remove stray file: %w", err)
		}
	}
	return len(strays), nil
}

// shimSockets returns the sockets on which the shim of a bundle listens. containerd 2 records them as JSON,
// containerd 1 as plain text.
func shimSockets(bundle string) []string {
	var address string
	if text, err := os.ReadFile(filepath.Join(bundle, "bootstrap.json")); err == nil {
		var recorded struct {
			Address string `json:"address"`
		}
		if json.Unmarshal(text, &recorded) == nil {
			address = recorded.Address
		}
	} else if text, err := os.ReadFile(filepath.Join(bundle, "address")); err == nil {
		address = strings.TrimSpace(string(text))
	}
	if socket, ok := strings.CutPrefix(address, "unix://"); ok {
		return []string{socket}
	}
	return nil
}

// linksInto lists the symbolic links of a folder that point below target.
func linksInto(folder, target string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list links: %w", err)
	}
	var links []string
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if to, err := os.Readlink(path); err == nil && strings.HasPrefix(to, target+"/") {
			links = append(links, path)
		}
	}
	return links, nil
}

// removeEmpty removes the folders that containerd, CNI and the kubelet create at fixed paths, if they are
// empty.
func removeEmpty() error {
	// Each kubelet listens here, independent of its root folder. If one answers, it is not part of a cluster.
	const devices = "/var/lib/kubelet/device-plugins"
	socket := filepath.Join(devices, "kubelet.sock")
	if connection, err := net.Dial("unix", socket); err == nil {
		_ = connection.Close()
	} else if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove unused socket: %w", err)
	}
	for _, path := range []string{
		devices, "/var/lib/kubelet", "/var/log/containers", "/var/lib/cni/results", "/var/lib/cni",
		"/run/containerd/s", "/run/containerd/runc", "/run/containerd",
	} {
		err := syscall.Rmdir(path)
		if err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTEMPTY) {
			return fmt.Errorf("remove folder %s: %w", path, err)
		}
	}
	return nil
}
