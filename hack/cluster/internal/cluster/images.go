// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/controlplane"
	"github.com/seamark-dev/seamark/hack/cluster/internal/node"
	"github.com/seamark-dev/seamark/hack/image"
)

// BusyboxImage is loaded into every node, so that ordinary manifests run.
const BusyboxImage = "docker.io/library/busybox:1.35"

const busyboxProgram = "/bin/busybox"

// standard returns the names of the archives that are loaded into every node.
func standard() []string { return []string{"pause", "busybox"} }

// makeImages writes the standard archives that are missing or older than their programs.
func (c *Cluster) makeImages(ctx context.Context) error {
	if err := os.MkdirAll(c.dir.ImageDir(), 0o755); err != nil {
		return fmt.Errorf("create the image folder: %w", err)
	}
	sources := map[string]struct {
		program string
		make    func() (image.Image, error)
	}{
		"busybox": {busyboxProgram, func() (image.Image, error) {
			return image.Busybox(ctx, BusyboxImage, busyboxProgram)
		}},
		"pause": {c.dir.Bin("pause"), func() (image.Image, error) {
			pause := image.Image{Name: node.SandboxImage, Entrypoint: []string{"/pause"}}
			return pause, pause.AddFile(c.dir.Bin("pause"), "/pause")
		}},
	}
	for _, name := range standard() {
		source := sources[name]
		if newer(c.dir.Image(name), source.program) {
			continue
		}
		made, err := source.make()
		if err != nil {
			return err
		}
		if _, err := made.Write(c.dir.Image(name)); err != nil {
			return err
		}
	}
	return nil
}

// newer reports whether file exists and was written after source.
func newer(file, source string) bool {
	made, err := os.Stat(file)
	if err != nil {
		return false
	}
	from, err := os.Stat(source)
	return err == nil && made.ModTime().After(from.ModTime())
}

// importStandard loads the standard archives into a node, unless it has the same ones.
func (c *Cluster) importStandard(ctx context.Context, wanted node.Node) error {
	var stamp strings.Builder
	var archives []string
	for _, name := range standard() {
		info, err := os.Stat(c.dir.Image(name))
		if err != nil {
			return fmt.Errorf("find image %s: %w", name, err)
		}
		archives = append(archives, c.dir.Image(name))
		fmt.Fprintln(&stamp, name, info.Size(), info.ModTime().UnixNano())
	}
	path := c.dir.Node(wanted.Plan.Name).Imported()
	if found, err := os.ReadFile(path); err == nil && string(found) == stamp.String() {
		return nil
	}
	for _, archive := range archives {
		if err := c.importOne(ctx, wanted, archive); err != nil {
			return err
		}
	}
	return writeIfNew(path, []byte(stamp.String()))
}

func (c *Cluster) importOne(ctx context.Context, on node.Node, archive string) error {
	return c.ctr(ctx, on, "images", "import", "--snapshotter="+on.Snapshotter, archive)
}

// ctrTimeout is the time limit of one call: a loaded machine is slow to import a large image.
const ctrTimeout = 2 * time.Minute

func (c *Cluster) ctr(ctx context.Context, on node.Node, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, ctrTimeout)
	defer cancel()
	socket := c.dir.Short(c.dir.Node(on.Plan.Name).Socket())
	cmd := exec.CommandContext(ctx, on.Client(), append([]string{"--address=" + socket, "--namespace=k8s.io"}, args...)...)
	cmd.Env = controlplane.Environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("on %s: ctr %s: %w: %s", on.Plan.Name, strings.Join(args, " "), err, out)
	}
	return nil
}

// Load imports image archives into every node.
func (c *Cluster) Load(ctx context.Context, archives []string) error {
	if err := c.checkOwner(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	present, err := c.presentNodes()
	if err != nil {
		return err
	}
	if len(present) == 0 {
		return errors.New("no cluster is running: start one with `up` to load images")
	}
	for _, archive := range archives {
		path, err := filepath.Abs(archive)
		if err != nil {
			return fmt.Errorf("find %s: %w", archive, err)
		}
		for _, found := range present {
			on, err := c.asItIs(found)
			if err != nil {
				return err
			}
			if err := c.importOne(ctx, on, path); err != nil {
				return err
			}
		}
		c.say("loaded %s into %d node(s)", archive, len(present))
	}
	return nil
}

// asItIs returns the configuration that a running node was started with.
func (c *Cluster) asItIs(found address.Node) (node.Node, error) {
	files := c.dir.Node(found.Name)
	runtime, err := c.runtimeOf(found)
	if err != nil {
		return node.Node{}, err
	}
	config, err := os.ReadFile(files.Config("containerd.toml"))
	if err != nil {
		return node.Node{}, fmt.Errorf("read the configuration of %s: %w", found.Name, err)
	}
	snapshotter := "overlayfs"
	if strings.Contains(string(config), `snapshotter = "native"`) {
		snapshotter = "native"
	}
	return node.Node{Dir: c.dir, Plan: found, Runtime: runtime, Snapshotter: snapshotter}, nil
}
