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
	"strings"
	"time"

	"golang.org/x/mod/modfile"

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

// platform is an operating system and an architecture, in Go's names.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

// file returns the name of a program's file.
func (p platform) file(program string) string {
	if p.os == "windows" {
		return program + ".exe"
	}
	return program
}

// commandLine is the program of users.
const commandLine = "seamark"

func commandLinePlatforms() []platform {
	return append(imagePlatforms(), platform{"darwin", "amd64"}, platform{"darwin", "arm64"}, platform{"windows", "amd64"})
}

func imagePlatforms() []platform { return []platform{{"linux", "amd64"}, {"linux", "arm64"}} }

// toolchainOf returns the version of Go that a go.mod requires, such as go1.26.8. Another version compiles other
// programs.
func toolchainOf(goMod string) (string, error) {
	text, err := os.ReadFile(goMod)
	if err != nil {
		return "", fmt.Errorf("find the version of Go: %w", err)
	}
	parsed, err := modfile.ParseLax(goMod, text, nil)
	if err != nil {
		return "", fmt.Errorf("find the version of Go: %w", err)
	}
	if parsed.Go == nil {
		return "", fmt.Errorf("find the version of Go: %s has no line with go", goMod)
	}
	return "go" + parsed.Go.Version, nil
}

// programs builds all programs in the work folder.
func (r *run) programs(ctx context.Context) error {
	for _, p := range commandLinePlatforms() {
		packages := []string{"./cmd/" + commandLine}
		if p.os == "linux" {
			for _, c := range components() {
				packages = append(packages, "./cmd/"+c.program())
			}
		}
		args := append([]string{"build", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace",
			"-ldflags=-s -w -buildid= -X main.version=" + string(r.version), "-o", r.programFolder(p) + "/"}, packages...)
		if err := r.command(ctx, r.environment(p), "go", args...); err != nil {
			return fmt.Errorf("build the programs of %s: %w", p, err)
		}
	}
	return nil
}

func (r *run) programFolder(p platform) string { return filepath.Join(r.work, p.String()) }

// environment returns the environment of the compiler. It replaces all variables that change the code.
func (r *run) environment(p platform) []string {
	return append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=",
		"GOEXPERIMENT=", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN="+r.toolchain)
}

// run runs a command in the root of the repository. Its output is part of the error if it fails.
func (r *run) command(ctx context.Context, environment []string, program string, args ...string) error {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.Env = r.Source, environment
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(append([]string{filepath.Base(program)}, args...), " "), err, bytes.TrimSpace(out))
	}
	return nil
}
