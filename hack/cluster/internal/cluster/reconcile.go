// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/controlplane"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
	"github.com/seamark-dev/seamark/hack/cluster/internal/mount"
	"github.com/seamark-dev/seamark/hack/cluster/internal/network"
	"github.com/seamark-dev/seamark/hack/cluster/internal/node"
	"github.com/seamark-dev/seamark/hack/cluster/internal/pki"
	"github.com/seamark-dev/seamark/hack/cluster/internal/process"
	"github.com/seamark-dev/seamark/hack/cluster/internal/tunable"
)

// controlPlaneTimeout and nodeTimeout are long because a loaded machine is slow.
const (
	controlPlaneTimeout = 90 * time.Second
	nodeTimeout         = 120 * time.Second
)

// nodesCgroup contains one cgroup per node, in which its kubelet creates the cgroups of pods.
const nodesCgroup = "nodes"

// reconcile starts missing daemons, stops surplus ones, and waits until the cluster is healthy. It reports
// whether it changed anything.
func (c *Cluster) reconcile(ctx context.Context, plan []address.Node, runtimes node.Runtimes) (bool, error) {
	started := time.Now()
	changed := &changes{}
	nodes, err := c.foundations(plan, runtimes)
	if err != nil {
		return false, err
	}
	surplus, err := c.surplus(plan, runtimes)
	if err != nil {
		return false, err
	}
	if err := c.startControlPlane(ctx, changed); err != nil {
		return false, err
	}
	api, err := newAPI(c.dir.Kubeconfig())
	if err != nil {
		return false, err
	}
	if err := c.await(ctx, controlPlaneTimeout, "the API server to be ready", api.ready); err != nil {
		return false, err
	}
	for _, old := range surplus {
		changed.add(old.Name)
		if err := c.removeNode(ctx, old, api, !slices.Contains(plan, old)); err != nil {
			return false, err
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, wanted := range nodes {
		group.Go(func() error { return c.startNode(groupCtx, wanted, plan, changed) })
	}
	if err := group.Wait(); err != nil {
		return false, err
	}
	if changed.any() {
		c.say("waiting for %d node(s) to be Ready", len(nodes))
	}
	// A Node object stays Ready for some time after its kubelet has ended: wait for a heartbeat of the new one.
	since := map[string]time.Time{}
	for _, planned := range plan {
		if changed.has(node.DaemonName(node.KubeletName, planned.Name)) {
			since[planned.Name] = started.Truncate(time.Second)
		}
	}
	err = c.await(ctx, nodeTimeout, "the nodes to be Ready", func(ctx context.Context) error {
		return api.nodesReady(ctx, plan, since)
	})
	return changed.any(), err
}

// foundations creates what daemons need to start: folders, the bridge, identities.
func (c *Cluster) foundations(plan []address.Node, runtimes node.Runtimes) ([]node.Node, error) {
	for _, dir := range []string{c.dir.RunDir(), c.dir.LogDir(), c.dir.NodesDir(), c.dir.ConfigDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("create folder: %w", err)
		}
	}
	if err := tunable.Save("/proc/sys", c.dir.Tunables()); err != nil {
		return nil, err
	}
	if err := network.Check(); err != nil {
		return nil, err
	}
	if err := network.EnsureBridge(); err != nil {
		return nil, err
	}
	store, err := pki.NewStore(c.dir.PKIDir())
	if err != nil {
		return nil, err
	}
	if err := controlplane.Identities(c.dir, store); err != nil {
		return nil, err
	}
	overlay, err := mount.CanOverlay(c.dir.NodesDir())
	if err != nil {
		return nil, err
	}
	snapshotter := "native"
	if overlay {
		snapshotter = "overlayfs"
	}
	var nodes []node.Node
	for i, planned := range plan {
		wanted := node.Node{
			Dir: c.dir, Plan: planned, Runtime: runtimes.Of(i), Snapshotter: snapshotter,
			CgroupRoot:    c.cgroups.Path(nodeCgroup(planned.Name)),
			AuthorityCert: controlplane.AuthorityCert(c.dir),
		}
		nodes = append(nodes, wanted)
	}
	return nodes, nil
}

func nodeCgroup(name string) string { return filepath.Join(nodesCgroup, name) }

func (c *Cluster) startControlPlane(ctx context.Context, changed *changes) error {
	if err := c.ensure(ctx, controlplane.Etcd(c.dir), changed); err != nil {
		return err
	}
	etcd := netip.AddrPortFrom(address.Host(), address.EtcdPort).String()
	if err := c.await(ctx, controlPlaneTimeout, "etcd to listen", listening("tcp", etcd)); err != nil {
		return err
	}
	for _, spec := range []process.Spec{
		controlplane.APIServer(c.dir), controlplane.ControllerManager(c.dir), controlplane.Scheduler(c.dir),
	} {
		if err := c.ensure(ctx, spec, changed); err != nil {
			return err
		}
	}
	return nil
}

// ensure starts a daemon in its cgroup, unless it is running.
func (c *Cluster) ensure(ctx context.Context, spec process.Spec, changed *changes) error {
	if err := c.cgroups.Create(process.CgroupOf(spec.Name)); err != nil {
		return err
	}
	started, err := c.processes.Ensure(ctx, spec)
	if err != nil {
		return err
	}
	if started {
		changed.add(spec.Name)
		c.say("started %s", spec.Name)
	}
	return nil
}

// startNode starts the daemons of a node that are not running, and loads the standard images.
func (c *Cluster) startNode(ctx context.Context, wanted node.Node, plan []address.Node, changed *changes) error {
	if err := c.layNode(wanted, plan); err != nil {
		return err
	}
	if err := c.ensure(ctx, wanted.Containerd(), changed); err != nil {
		return err
	}
	// A kubelet exits if it finds no runtime at its start.
	socket := c.dir.Short(c.dir.Node(wanted.Plan.Name).Socket())
	if err := c.await(ctx, controlPlaneTimeout, socket+" to answer", listening("unix", socket)); err != nil {
		return err
	}
	if err := c.importStandard(ctx, wanted); err != nil {
		return err
	}
	for _, spec := range []process.Spec{wanted.Kubelet(), wanted.Proxy()} {
		if err := c.ensure(ctx, spec, changed); err != nil {
			return err
		}
	}
	return nil
}

// layNode creates what the daemons of a node need to start.
func (c *Cluster) layNode(wanted node.Node, plan []address.Node) error {
	if err := network.EnsureNode(wanted.Plan, plan); err != nil {
		return err
	}
	if err := c.cgroups.Create(nodeCgroup(wanted.Plan.Name)); err != nil {
		return err
	}
	store, err := pki.NewStore(c.dir.PKIDir())
	if err != nil {
		return err
	}
	if err := wanted.Identities(store); err != nil {
		return err
	}
	files, err := wanted.Files()
	if err != nil {
		return err
	}
	for path, content := range files {
		if err := writeIfNew(path, content); err != nil {
			return err
		}
	}
	return writeIfNew(c.dir.Node(wanted.Plan.Name).Config("runtime"), []byte(wanted.Runtime))
}

func writeIfNew(path string, content []byte) error {
	if found, err := os.ReadFile(path); err == nil && bytes.Equal(found, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// surplus lists the nodes that exist and are not in the plan, or that have another runtime: a version of
// containerd cannot read the files of another one.
func (c *Cluster) surplus(plan []address.Node, runtimes node.Runtimes) ([]address.Node, error) {
	present, err := c.presentNodes()
	if err != nil {
		return nil, err
	}
	var surplus []address.Node
	for _, found := range present {
		runtime, err := c.runtimeOf(found)
		if err != nil {
			return nil, err
		}
		if i := slices.Index(plan, found); i < 0 || runtime != runtimes.Of(i) {
			surplus = append(surplus, found)
		}
	}
	return surplus, nil
}

// runtimeOf returns the runtime that a node was started with, or nothing if there is no such node.
func (c *Cluster) runtimeOf(found address.Node) (node.Runtime, error) {
	runtime, err := os.ReadFile(c.dir.Node(found.Name).Config("runtime"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the runtime of %s: %w", found.Name, err)
	}
	return node.Runtime(runtime), nil
}

// complete sets the options that are not set to what exists, and returns the nodes.
func (c *Cluster) complete(options Options) (Options, []address.Node, error) {
	if options.Nodes == 0 {
		present, err := c.presentNodes()
		if err != nil {
			return options, nil, err
		}
		options.Nodes = max(1, len(present))
	}
	plan, err := address.Nodes(options.Nodes)
	if err != nil || len(options.Runtimes) > 0 {
		return options, plan, err
	}
	for _, planned := range plan {
		runtime, err := c.runtimeOf(planned)
		if err != nil {
			return options, nil, err
		}
		options.Runtimes = append(options.Runtimes, cmp.Or(runtime, node.RuntimeContainerd))
	}
	return options, plan, nil
}

// presentNodes lists the nodes that have a folder.
func (c *Cluster) presentNodes() ([]address.Node, error) {
	entries, err := os.ReadDir(c.dir.NodesDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var present []address.Node
	for _, entry := range entries {
		if found, err := address.ParseNode(entry.Name()); err == nil {
			present = append(present, found)
		}
	}
	return present, nil
}

// removeNode removes the daemons, pods and links of a node. If the node does not come back, it also deletes
// its Node object and pods in the API.
func (c *Cluster) removeNode(ctx context.Context, old address.Node, api *api, forever bool) error {
	c.say("removing %s", old.Name)
	var daemons []string
	for _, program := range []string{node.KubeletName, node.ProxyName, node.ContainerdName} {
		name := node.DaemonName(program, old.Name)
		daemons = append(daemons, process.CgroupOf(name))
		if err := c.processes.Forget(name); err != nil {
			return err
		}
	}
	for _, path := range append(daemons, nodeCgroup(old.Name)) {
		if _, err := c.endProcesses(ctx, path); err != nil {
			return err
		}
		if _, err := c.cgroups.Remove(path); err != nil {
			return err
		}
	}
	files := c.dir.Node(old.Name)
	if _, err := mount.Clear(files.Dir()); err != nil {
		return err
	}
	if _, err := removeStrays([]layout.Node{files}); err != nil {
		return err
	}
	if _, err := network.RemoveNode(old); err != nil {
		return err
	}
	if err := os.RemoveAll(files.Dir()); err != nil {
		return fmt.Errorf("remove the files of %s: %w", old.Name, err)
	}
	if !forever {
		return nil
	}
	return api.deleteNode(ctx, old.Name)
}
