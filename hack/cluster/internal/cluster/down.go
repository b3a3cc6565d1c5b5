package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

// Down removes the cluster of this directory and says what that was. Programs, image archives and logs
// stay. Nothing to remove is no error.
func (c *Cluster) Down() error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.checkOwner(); err != nil {
		return err
	}
	return c.remove()
}

// checkOwner refuses to touch the cluster of another directory.
func (c *Cluster) checkOwner() error {
	owner, err := os.Readlink(layout.Claim)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the cluster that runs on this machine: %w", err)
	}
	if owner != string(c.dir) {
		return &OwnedError{Owner: owner}
	}
	return nil
}

// remove takes away all that belongs to a cluster. The claim goes last: what is left after an error is
// still this directory's.
func (c *Cluster) remove() error {
	var removed []string
	add := func(items ...string) { removed = append(removed, items...) }
	steps := []func(func(...string)) error{
		c.removeProcesses, c.removeMounts, c.removeNetwork, c.removeCgroups, c.removeFiles, c.removeTunables,
	}
	for _, step := range steps {
		if err := step(add); err != nil {
			return err
		}
	}
	for _, item := range removed {
		c.say("removed %s", item)
	}
	records, err := c.processes.Records()
	if err != nil {
		return err
	}
	for name := range records {
		if err := c.processes.Forget(name); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(c.dir.RunDir()); err != nil {
		return fmt.Errorf("remove the process records: %w", err)
	}
	return c.release()
}

func (c *Cluster) removeProcesses(removed func(...string)) error {
	ended, err := c.endProcesses("")
	if err != nil {
		return err
	}
	if len(ended) > 0 {
		slices.Sort(ended)
		removed(fmt.Sprintf("%d processes: %s", len(ended), strings.Join(slices.Compact(ended), ", ")))
	}
	return nil
}

// endTimeout bounds how long processes may take to die once they are killed.
const endTimeout = 30 * time.Second

// endProcesses kills every process in a cgroup, again until none is left, and returns their names. There
// is nothing that they would have to save.
func (c *Cluster) endProcesses(path string) ([]string, error) {
	names := map[int]string{}
	ctx := context.Background()
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

// removeStrays removes what programs put at places of their own choice: the sockets of containerd's
// shims, CNI's notes, and the kubelet's links to logs. It counts them.
func removeStrays(nodes []layout.Node) (int, error) {
	var strays []string
	for _, files := range nodes {
		bundles, err := filepath.Glob(filepath.Join(files.State(), "io.containerd.runtime.v2.task", "k8s.io", "*"))
		if err != nil {
			return 0, fmt.Errorf("list containers: %w", err)
		}
		for _, bundle := range bundles {
			strays = append(strays, shimSockets(bundle)...)
			notes, err := filepath.Glob(filepath.Join("/var/lib/cni/results", "*-"+filepath.Base(bundle)+"-*"))
			if err != nil {
				return 0, fmt.Errorf("list the notes of CNI: %w", err)
			}
			strays = append(strays, notes...)
		}
		links, err := linksInto("/var/log/containers", files.PodLogs())
		if err != nil {
			return 0, err
		}
		strays = append(strays, links...)
	}
	for _, stray := range strays {
		if err := os.Remove(stray); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("remove a stray file: %w", err)
		}
	}
	return len(strays), nil
}

// shimSockets are the sockets that the shim of a bundle listens on. containerd 2 notes them as JSON,
// containerd 1 as plain text.
func shimSockets(bundle string) []string {
	var address string
	if text, err := os.ReadFile(filepath.Join(bundle, "bootstrap.json")); err == nil {
		var noted struct {
			Address string `json:"address"`
		}
		if json.Unmarshal(text, &noted) == nil {
			address = noted.Address
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
