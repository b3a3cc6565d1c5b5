// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster starts, repairs and removes a cluster.
//
// `Up` compares the desired daemons with the running ones and repairs the difference; a cluster that it cannot
// repair is removed and started again. `Down` gets what it removes from the kernel, not from its own records.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/build"
	"github.com/seamark-dev/seamark/hack/cluster/internal/cgroup"
	"github.com/seamark-dev/seamark/hack/cluster/internal/deb"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
	"github.com/seamark-dev/seamark/hack/cluster/internal/node"
	"github.com/seamark-dev/seamark/hack/cluster/internal/process"
)

// CgroupBase is the cgroup of all processes of a cluster.
const CgroupBase = "/seamark"

// Cluster is the cluster of one folder.
type Cluster struct {
	dir       layout.Dir
	source    string
	out       io.Writer
	processes *process.Manager
	cgroups   cgroup.Tree
}

// New returns the cluster in dir. source is the folder of this program's module, and launcher the command that
// process.NewManager requires. Progress is written to out.
func New(dir layout.Dir, source string, launcher []string, out io.Writer) (*Cluster, error) {
	cgroups, err := Cgroups()
	if err != nil {
		return nil, err
	}
	processes, err := process.NewManager(dir.RunDir(), dir.LogDir(), launcher)
	if err != nil {
		return nil, err
	}
	return &Cluster{dir: dir, source: source, out: out, processes: processes, cgroups: cgroups}, nil
}

// Cgroups returns the tree of the cgroups of a cluster.
func Cgroups() (cgroup.Tree, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return cgroup.Tree{}, fmt.Errorf("list mounts: %w", err)
	}
	return cgroup.NewTree(string(info), CgroupBase)
}

// Options describe a cluster.
type Options struct {
	// Nodes is the number of nodes, from 1 to address.MaxNodes. 0 means those that exist, or one.
	Nodes int
	// Runtimes are the container runtimes of its nodes. None means those that the nodes have.
	Runtimes node.Runtimes
}

// Up starts or repairs the cluster and returns when every node is Ready. It changes only what differs. After
// an error, nothing is left running.
func (c *Cluster) Up(ctx context.Context, options Options) error {
	start := time.Now()
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	options, plan, err := c.complete(options)
	if err != nil {
		return err
	}
	if err := c.claim(); err != nil {
		return err
	}
	if err := c.prepare(ctx, options); err != nil {
		return errors.Join(err, c.releaseIfIdle())
	}
	changed, err := c.repairOrRestart(ctx, plan, options.Runtimes)
	if err != nil {
		return err
	}
	if changed {
		c.say("the cluster is up after %.1f s", time.Since(start).Seconds())
	} else {
		c.say("the cluster is already up: nothing to do")
	}
	c.summary(plan)
	return nil
}

// repairOrRestart repairs a running cluster. If that fails, or none is running, it starts a new one. It reports
// whether it changed anything.
func (c *Cluster) repairOrRestart(ctx context.Context, plan []address.Node, runtimes node.Runtimes) (bool, error) {
	existing, err := c.existing()
	if err != nil {
		return false, err
	}
	if existing {
		changed, err := c.reconcile(ctx, plan, runtimes)
		if err == nil {
			return changed, nil
		}
		if ctx.Err() != nil {
			return false, err
		}
		c.say("the running cluster cannot be repaired: %v", err)
		c.say("removing it and starting a new one")
	}
	// Parts of a cluster can exist without valid records, for example after the machine was restarted.
	if _, err := c.remove(ctx); err != nil {
		return false, err
	}
	if err := c.claim(); err != nil {
		return false, err
	}
	_, err = c.reconcile(ctx, plan, runtimes)
	if err != nil {
		c.say("removing the incomplete cluster; the logs are in %s", c.dir.LogDir())
		// An interrupted start leaves nothing behind either.
		_, removeErr := c.remove(context.WithoutCancel(ctx))
		return false, errors.Join(err, removeErr)
	}
	return true, nil
}

// existing reports whether there are records of daemons that were started since the machine booted.
func (c *Cluster) existing() (bool, error) {
	records, err := c.processes.Records()
	if err != nil {
		return false, err
	}
	boot, err := process.BootID()
	if err != nil {
		return false, err
	}
	for _, record := range records {
		if record.Boot == boot {
			return true, nil
		}
	}
	return false, nil
}

// prepare provides what outlives a cluster: packages, programs, image archives.
func (c *Cluster) prepare(ctx context.Context, options Options) error {
	if os.Geteuid() != 0 {
		return errors.New("a cluster needs root: it creates network namespaces, mounts and cgroups")
	}
	if err := deb.Ensure(ctx, c.out, deb.Required()); err != nil {
		return err
	}
	if err := c.Builder().Ensure(ctx, c.Programs()); err != nil {
		return err
	}
	if options.Runtimes.Among(options.Nodes, node.RuntimeContainerd17) {
		builder := c.Builder()
		builder.Out = c.dir.Bin(string(node.RuntimeContainerd17))
		if err := builder.Ensure(ctx, build.Containerd17()); err != nil {
			return err
		}
	}
	if options.Runtimes.Among(options.Nodes, node.RuntimeDebian) {
		if err := c.debianRuntime(ctx); err != nil {
			return err
		}
	}
	return c.makeImages(ctx)
}

// Programs returns the programs that the cluster needs, in the version of Kubernetes that was set for its folder.
func (c *Cluster) Programs() []build.Program {
	if _, err := os.Stat(filepath.Join(c.dir.Kubernetes(), "go.mod")); err == nil {
		return build.Programs(c.dir.Kubernetes())
	}
	return build.Programs(build.Own)
}

// SetKubernetes sets the newest patch of a minor version of Kubernetes, such as 1.32, for the cluster's folder.
// Replacements are versions or folders of modules that have no version of their own for this patch.
func (c *Cluster) SetKubernetes(ctx context.Context, minor string, replacements map[string]string) error {
	version, err := build.WriteKubernetes(ctx, c.dir.Kubernetes(), minor, replacements)
	if err != nil {
		return err
	}
	c.say("the cluster in %s uses Kubernetes %s", c.dir, version)
	return nil
}

// Builder returns the builder of this cluster's programs.
func (c *Cluster) Builder() *build.Builder {
	return &build.Builder{Source: c.source, Out: c.dir.BinDir(), Log: c.dir.Log("build"), Progress: c.out}
}

// debianRuntime unpacks the programs of Debian's package. Installing the package would start a service.
func (c *Cluster) debianRuntime(ctx context.Context) error {
	folder := c.dir.Bin(string(node.RuntimeDebian))
	if _, err := os.Stat(filepath.Join(folder, node.ContainerdName)); err == nil {
		return nil
	}
	c.say("unpacking Debian's containerd")
	scratch, err := os.MkdirTemp(c.dir.BinDir(), ".debian-")
	if err != nil {
		return fmt.Errorf("unpack Debian's containerd: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if err := deb.Extract(ctx, "containerd", scratch); err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("unpack Debian's containerd: %w", err)
	}
	if err := os.Rename(filepath.Join(scratch, "usr", "bin"), folder); err != nil {
		return fmt.Errorf("unpack Debian's containerd: %w", err)
	}
	return nil
}

// lock excludes other commands on this folder until the returned function is called.
func (c *Cluster) lock() (func(), error) {
	file, err := os.OpenFile(c.dir.Lock(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		c.say("waiting for another command on this cluster")
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("lock the cluster: %w", err), file.Close())
		}
	}
	return func() { _ = file.Close() }, nil
}

// claim makes this cluster the only one on the machine.
func (c *Cluster) claim() error {
	err := os.Symlink(string(c.dir), layout.Claim)
	if errors.Is(err, fs.ErrExist) {
		return c.checkOwner()
	}
	if err != nil {
		return fmt.Errorf("claim the machine's network: %w", err)
	}
	return nil
}

// checkOwner returns an error if the cluster of another folder uses the addresses and links of the machine, or
// fs.ErrNotExist if there is none.
func (c *Cluster) checkOwner() error {
	owner, err := os.Readlink(layout.Claim)
	if err != nil {
		return fmt.Errorf("find the cluster that runs on this machine: %w", err)
	}
	if owner != string(c.dir) {
		return fmt.Errorf("the cluster of %s is running on this machine; remove it first: `down --dir %s`", owner, owner)
	}
	return nil
}

// releaseIfIdle releases the claim if no process of a cluster is running.
func (c *Cluster) releaseIfIdle() error {
	pids, err := c.cgroups.Processes("")
	if err != nil || len(pids) > 0 {
		return err
	}
	return c.release()
}

func (c *Cluster) release() error {
	if err := os.Remove(layout.Claim); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("release the machine's network: %w", err)
	}
	return nil
}

func (c *Cluster) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, format+"\n", args...)
}

func (c *Cluster) summary(plan []address.Node) {
	var names []string
	for _, planned := range plan {
		names = append(names, planned.Name)
	}
	c.say("kubeconfig: %s", c.dir.Kubeconfig())
	c.say("nodes:      %s", strings.Join(names, " "))
	for _, planned := range plan {
		c.say("runtime:    %s unix://%s", planned.Name, c.dir.Short(c.dir.Node(planned.Name).Socket()))
	}
}

// changes records the names of the daemons and nodes that a run of Up has changed. Nodes are changed concurrently.
type changes struct{ names sync.Map }

func (c *changes) add(name string) { c.names.Store(name, true) }

func (c *changes) has(name string) bool {
	_, found := c.names.Load(name)
	return found
}

func (c *changes) any() bool {
	found := false
	c.names.Range(func(any, any) bool {
		found = true
		return false
	})
	return found
}
