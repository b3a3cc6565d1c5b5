// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster brings a whole cluster up and takes it down.
//
// `Up` compares what should run with what does and mends the difference; a cluster that cannot be mended is
// taken down and started anew. `Down` asks the kernel, not its own records, what there is to remove.
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

// CgroupBase is the cgroup of everything that belongs to a cluster.
const CgroupBase = "/seamark"

// Cluster is the cluster of one directory.
type Cluster struct {
	dir       layout.Dir
	source    string
	out       io.Writer
	processes *process.Manager
	cgroups   cgroup.Tree
}

// New prepares to work on the cluster in dir. Source is the folder of this program's module, launcher
// the command that process.NewManager asks for; progress goes to out.
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

// Cgroups is the tree that holds all processes of a cluster.
func Cgroups() (cgroup.Tree, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return cgroup.Tree{}, fmt.Errorf("list mounts: %w", err)
	}
	return cgroup.NewTree(string(info), CgroupBase)
}

// Options say what cluster is wanted.
type Options struct {
	// Nodes is how many nodes it has, from 1 to address.MaxNodes.
	Nodes int
	// Runtime is the container runtime of all its nodes.
	Runtime node.Runtime
}

// Up leaves the wanted cluster running, with every node Ready. It changes what differs and no more; on an
// error nothing is left running.
func (c *Cluster) Up(ctx context.Context, options Options) error {
	start := time.Now()
	plan, err := address.Nodes(options.Nodes)
	if err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.claim(); err != nil {
		return err
	}
	if err := c.prepare(ctx, options.Runtime); err != nil {
		return errors.Join(err, c.releaseIfIdle())
	}
	changed, err := c.upOrAnew(ctx, plan, options.Runtime)
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

// upOrAnew mends the cluster if there is one; where that fails, or there is none, it starts from nothing.
func (c *Cluster) upOrAnew(ctx context.Context, plan []address.Node, kind node.Runtime) (bool, error) {
	existing, err := c.existing()
	if err != nil {
		return false, err
	}
	if existing {
		changed, err := c.reconcile(ctx, plan, kind)
		if err == nil {
			return changed, nil
		}
		if ctx.Err() != nil {
			return false, err
		}
		c.say("the running cluster cannot be mended: %v", err)
		c.say("taking it down and starting anew")
	}
	// Also without records there may be a wreck, of a machine that was restarted for one.
	if _, err := c.remove(ctx); err != nil {
		return false, err
	}
	if err := c.claim(); err != nil {
		return false, err
	}
	_, err = c.reconcile(ctx, plan, kind)
	if err != nil {
		c.say("taking down what came up; the logs stay in %s", c.dir.LogDir())
		// Also an interrupted start leaves nothing behind.
		_, removeErr := c.remove(context.WithoutCancel(ctx))
		return false, errors.Join(err, removeErr)
	}
	return true, nil
}

// existing tells whether daemons of this boot are on record.
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

// prepare makes all that outlives a cluster: packages, programs, image archives.
func (c *Cluster) prepare(ctx context.Context, kind node.Runtime) error {
	if os.Geteuid() != 0 {
		return errors.New("a cluster needs root: it makes network namespaces, mounts and cgroups")
	}
	if err := deb.Ensure(ctx, c.out, deb.Required()); err != nil {
		return err
	}
	if err := c.Builder().Ensure(ctx, build.Programs()); err != nil {
		return err
	}
	if kind == node.RuntimeDebian {
		if err := c.debianRuntime(ctx); err != nil {
			return err
		}
	}
	return c.makeImages(ctx)
}

// Builder builds this cluster's programs.
func (c *Cluster) Builder() *build.Builder {
	return &build.Builder{Source: c.source, Out: c.dir.BinDir(), Log: c.dir.Log("build"), Progress: c.out}
}

// debianRuntime takes the programs out of Debian's package; installing it would start its service.
func (c *Cluster) debianRuntime(ctx context.Context) error {
	folder := c.dir.Bin("debian")
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

// lock keeps other commands off this directory until the returned function is called.
func (c *Cluster) lock() (func(), error) {
	file, err := os.OpenFile(c.dir.Lock(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		c.say("waiting for another command on this cluster to end")
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("lock the cluster: %w", err), file.Close())
		}
	}
	return func() { _ = file.Close() }, nil
}

// claim makes this cluster the one of the machine.
func (c *Cluster) claim() error {
	err := os.Symlink(string(c.dir), layout.Claim)
	if !errors.Is(err, fs.ErrExist) {
		if err != nil {
			return fmt.Errorf("claim this machine's network for the cluster: %w", err)
		}
		return nil
	}
	owner, err := os.Readlink(layout.Claim)
	if err != nil {
		return fmt.Errorf("find the cluster that runs on this machine: %w", err)
	}
	if owner != string(c.dir) {
		return &OwnedError{Owner: owner}
	}
	return nil
}

// OwnedError says that the cluster of another directory holds the machine's addresses and links.
type OwnedError struct {
	// Owner is that directory.
	Owner string
}

// Error tells what to do about it.
func (e *OwnedError) Error() string {
	return fmt.Sprintf("the cluster of %s runs on this machine and holds the addresses and links; "+
		"take it down first: `down --dir %s`", e.Owner, e.Owner)
}

// releaseIfIdle gives the claim back when nothing runs.
func (c *Cluster) releaseIfIdle() error {
	pids, err := c.cgroups.Processes("")
	if err != nil || len(pids) > 0 {
		return err
	}
	return c.release()
}

func (c *Cluster) release() error {
	if err := os.Remove(layout.Claim); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("give up the claim on this machine's network: %w", err)
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
