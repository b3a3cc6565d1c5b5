// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
	"github.com/seamark-dev/seamark/hack/cluster/internal/mount"
	"github.com/seamark-dev/seamark/hack/cluster/internal/network"
	"github.com/seamark-dev/seamark/hack/cluster/internal/tunable"
)

// Down removes the cluster and prints what it removed. It keeps programs, image archives and logs. If no
// cluster is running, it does nothing.
func (c *Cluster) Down(ctx context.Context) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.checkOwner(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	removed, err := c.remove(ctx)
	if err == nil && removed == 0 {
		c.say("no cluster is running: nothing to remove")
	}
	return err
}

// remove removes everything that belongs to a cluster and returns the number of messages about it. It releases
// the claim last: after an error, the rest still belongs to this folder.
func (c *Cluster) remove(ctx context.Context) (int, error) {
	var removed []string
	add := func(items ...string) { removed = append(removed, items...) }
	if err := c.removeProcesses(ctx, add); err != nil {
		return 0, err
	}
	steps := []func(func(...string)) error{
		c.removeMounts, c.removeNetwork, c.removeCgroups, c.removeFiles, c.removeTunables,
	}
	for _, step := range steps {
		if err := step(add); err != nil {
			return 0, err
		}
	}
	for _, item := range removed {
		c.say("removed %s", item)
	}
	if err := removeEmpty(); err != nil {
		return 0, err
	}
	records, err := c.processes.Records()
	if err != nil {
		return 0, err
	}
	for name := range records {
		if err := c.processes.Forget(name); err != nil {
			return 0, err
		}
	}
	if err := os.RemoveAll(c.dir.RunDir()); err != nil {
		return 0, fmt.Errorf("remove the process records: %w", err)
	}
	return len(removed), c.release()
}

func (c *Cluster) removeProcesses(ctx context.Context, removed func(...string)) error {
	ended, err := c.endProcesses(ctx, "")
	if err != nil {
		return err
	}
	if len(ended) > 0 {
		slices.Sort(ended)
		removed(fmt.Sprintf("%d processes: %s", len(ended), strings.Join(slices.Compact(ended), ", ")))
	}
	return nil
}

// endTimeout is the time that killed processes have to end.
const endTimeout = 30 * time.Second

// endProcesses kills every process in a cgroup, repeatedly until none is left, and returns their names. They
// have no state to save.
func (c *Cluster) endProcesses(ctx context.Context, path string) ([]string, error) {
	names := map[int]string{}
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, endTimeout, true, func(context.Context) (bool, error) {
		pids, err := c.cgroups.Processes(path)
		if err != nil || len(pids) == 0 {
			return err == nil, err
		}
		for _, pid := range pids {
			if _, seen := names[pid]; !seen {
				names[pid] = command(pid)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return false, err
			}
		}
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("end the processes of cgroup %s: %w", c.cgroups.Path(path), err)
	}
	var ended []string
	for _, name := range names {
		ended = append(ended, name)
	}
	return ended, nil
}

func command(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(text))
}

func (c *Cluster) removeMounts(removed func(...string)) error {
	count, err := mount.Clear(c.dir.NodesDir())
	if err == nil && count > 0 {
		removed(fmt.Sprintf("%d mounts", count))
	}
	return err
}

func (c *Cluster) removeNetwork(removed func(...string)) error {
	every, err := address.Nodes(address.MaxNodes)
	if err != nil {
		return err
	}
	for _, planned := range every {
		done, err := network.RemoveNode(planned)
		if err != nil {
			return err
		}
		removed(done...)
	}
	done, err := network.RemoveBridge()
	removed(done...)
	return err
}

func (c *Cluster) removeCgroups(removed func(...string)) error {
	count, err := c.cgroups.Remove("")
	if err == nil && count > 0 {
		removed(fmt.Sprintf("%d cgroups below %s", count, CgroupBase))
	}
	return err
}

func (c *Cluster) removeFiles(removed func(...string)) error {
	present, err := c.presentNodes()
	if err != nil {
		return err
	}
	var files []layout.Node
	for _, found := range present {
		files = append(files, c.dir.Node(found.Name))
	}
	strays, err := removeStrays(files)
	if err != nil {
		return err
	}
	if strays > 0 {
		removed(fmt.Sprintf("%d sockets and links below /run and /var", strays))
	}
	for _, path := range []string{
		c.dir.NodesDir(), c.dir.EtcdData(), c.dir.PKIDir(), c.dir.ConfigDir(), c.dir.Kubeconfig(),
	} {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove the cluster's files: %w", err)
		}
		removed(path)
	}
	return nil
}

func (c *Cluster) removeTunables(removed func(...string)) error {
	changed, err := tunable.Restore("/proc/sys", c.dir.Tunables())
	if err == nil && len(changed) > 0 {
		removed("changes of kernel settings: " + strings.Join(changed, ", "))
	}
	return err
}

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
