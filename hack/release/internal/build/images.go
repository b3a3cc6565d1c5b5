// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/seamark-dev/seamark/hack/image"
	"github.com/seamark-dev/seamark/hack/release/internal/chart"
	"github.com/seamark-dev/seamark/hack/release/internal/oci"
)

// component is a program that runs in the cluster. Its name is that of its part of the chart's values.
type component struct {
	name string
	// user is the user and the group of the process.
	user string
	// description is the label of the image.
	description string
}

// components returns the programs of the images, which are the same as in `make images` and Dockerfile.
func components() []component {
	return []component{
		{"manager", "65532:65532", "Compiles the plans of nodes and marks pods with the results of their probes"},
		// Root owns the socket of the container runtime. The DaemonSet drops all capabilities.
		{"agent", "0:0", "Runs the probes of the pods of a node"},
		{"workloads", "65532:65532", "Runs the controllers of sets and jobs"},
	}
}

// program returns the name of the program, which is also the name of its image.
func (c component) program() string { return "seamark-" + c.name }

const chartName = "seamark"

// layouts is the folder of the OCI layouts in the output.
const layouts = "oci"

// images writes the layout and the archive of each image.
func (r *run) images(context.Context) error {
	if err := os.Mkdir(filepath.Join(r.out, layouts), 0o755); err != nil {
		return fmt.Errorf("create the folder of the layouts: %w", err)
	}
	for _, c := range components() {
		var all []image.Image
		for _, p := range imagePlatforms() {
			made, err := r.image(c, p)
			if err != nil {
				return err
			}
			all = append(all, made)
		}
		index, err := oci.Index(all)
		if err != nil {
			return fmt.Errorf("image %s: %w", c.program(), err)
		}
		folder := filepath.Join(r.out, layouts, c.program())
		digest, err := oci.WriteIndex(folder, string(r.version), index)
		if err != nil {
			return fmt.Errorf("image %s: %w", c.program(), err)
		}
		r.digests[c.name] = digest.String()
		files, err := oci.Archive(folder, r.Registry+"/"+c.program(), string(r.version))
		if err != nil {
			return fmt.Errorf("image %s: %w", c.program(), err)
		}
		content, err := image.Tar(files, r.commit.Time)
		if err != nil {
			return fmt.Errorf("image %s: %w", c.program(), err)
		}
		if err := r.write(c.program()+"_"+string(r.version)+"_image.tar", content); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) image(c component, p platform) (image.Image, error) {
	entrypoint := "/" + c.program()
	made := image.Image{
		Name: r.Registry + "/" + c.program() + ":" + string(r.version), User: c.user, Entrypoint: []string{entrypoint},
		Architecture: p.arch, Created: r.commit.Time, Labels: r.labels(c.program(), c.description),
	}
	if err := made.AddFile(filepath.Join(r.programFolder(p), c.program()), entrypoint); err != nil {
		return image.Image{}, err
	}
	return made, nil
}

// labels returns the labels or annotations of an image or a chart.
func (r *run) labels(title, description string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       title,
		"org.opencontainers.image.description": description,
		"org.opencontainers.image.version":     string(r.version),
		"org.opencontainers.image.revision":    r.commit.Hash,
		"org.opencontainers.image.created":     r.commit.Time.Format(time.RFC3339),
		"org.opencontainers.image.source":      repository,
		"org.opencontainers.image.url":         repository,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

// chartFile returns the name of the packaged chart.
func (r *run) chartFile() string { return chartName + "-" + r.version.Number() + ".tgz" }

// chart writes the package and the layout of the chart.
func (r *run) chart(context.Context) error {
	digests := map[string]string{}
	for _, c := range components() {
		digests[c.name] = r.digests[c.name]
	}
	made, err := chart.Build(filepath.Join(r.Source, "charts", chartName),
		chart.Options{Version: r.version, Registry: r.Registry, Digests: digests}, r.commit.Time)
	if err != nil {
		return err
	}
	if err := r.write(r.chartFile(), made.Package); err != nil {
		return err
	}
	artifact := oci.Chart{
		Package: made.Package, Metadata: made.Metadata, Tag: r.version.Number(),
		Annotations: r.labels(chartName, "Installs Seamark"),
	}
	digest, err := artifact.Write(filepath.Join(r.out, layouts, chartName))
	if err != nil {
		return err
	}
	r.digests[chartName] = digest.String()
	return nil
}

// manifests writes install.yaml: the namespace and what the chart renders with its defaults. Without hooks, because
// kubectl would create the job that removes the marks.
func (r *run) manifests(ctx context.Context) error {
	namespace, err := namespaceOf(filepath.Join(r.Source, "config", "default", "namespace.yaml"))
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, r.Helm, "template", chartName, filepath.Join(r.out, r.chartFile()),
		"--namespace", "seamark-system", "--no-hooks")
	var failure bytes.Buffer
	command.Stderr = &failure
	rendered, err := command.Output()
	if err != nil {
		return fmt.Errorf("render the chart: %w\n%s", err, bytes.TrimSpace(failure.Bytes()))
	}
	return r.write("install.yaml", append(namespace, rendered...))
}

// namespaceOf returns the first object of a file, which must be a Namespace.
func namespaceOf(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the namespace: %w", err)
	}
	first, _, _ := bytes.Cut(text, []byte("\n---\n"))
	if !bytes.Contains(first, []byte("\nkind: Namespace\n")) {
		return nil, fmt.Errorf("%s does not begin with a Namespace", file)
	}
	return append(bytes.TrimSpace(first), '\n'), nil
}
