// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build builds all artifacts of a release from a commit.
//
// Every file depends only on the commit, the options and the version of Go that go.mod names: times are that of the
// commit, lists are sorted, and programs contain no paths.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/hack/image"
	"github.com/seamark-dev/seamark/hack/release/internal/changelog"
	"github.com/seamark-dev/seamark/hack/release/internal/version"
)

// repository is the URL of the source code.
const repository = "https://github.com/seamark-dev/seamark"

// Options are the options of Run. All are required.
type Options struct {
	// Version is the version of the release, such as v0.2.0.
	Version string
	// Source is the root of the repository.
	Source string
	// Out is the folder for the artifacts. It is replaced when all of them are complete.
	Out string
	// Registry is the registry and path of the images and the chart, for example docker.io/seamark.
	Registry string
	// URL is the URL of the folder that users download the files from.
	URL string
	// Helm is the path of helm.
	Helm string
	// Progress receives one line per step.
	Progress io.Writer
}

// run is a build. Each step reads what the earlier steps have set.
type run struct {
	Options
	version version.Version
	commit  version.Commit
	// toolchain is the version of Go, such as go1.26.8.
	toolchain string
	// out is the folder that becomes Out, and work one for other files.
	out, work string
	// digests are the digests of the images by component, and of the chart.
	digests map[string]string
}

// Run builds all artifacts.
func Run(ctx context.Context, o Options) (err error) {
	r, err := o.prepare(ctx)
	if err != nil {
		return err
	}
	r.work, err = os.MkdirTemp("", "seamark-release-")
	if err != nil {
		return fmt.Errorf("create a folder for the build: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	// A build that fails leaves the artifacts of the last one.
	r.out = r.Out + ".new"
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return fmt.Errorf("create the folder of the artifacts: %w", err)
	}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"changelog.md", r.changelog},
		{"programs", r.programs},
		{"images", r.images},
		{"chart", r.chart},
		{"install.yaml", r.manifests},
		{"archives", r.archives},
		{"SBOMs", r.bills},
		{"provenance and checksums", r.seal},
	} {
		_, _ = fmt.Fprintf(o.Progress, "release %s: %s\n", r.version, step.name)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("release %s: %w", r.version, err)
		}
	}
	if err := errors.Join(os.RemoveAll(r.Out), os.Rename(r.out, r.Out)); err != nil {
		return fmt.Errorf("replace the folder of the artifacts: %w", err)
	}
	return nil
}

func (o Options) prepare(ctx context.Context) (*run, error) {
	parsed, err := version.Parse(o.Version)
	if err != nil {
		return nil, err
	}
	if _, err := name.NewRepository(o.Registry + "/seamark"); err != nil || strings.HasSuffix(o.Registry, "/") {
		return nil, fmt.Errorf("registry: %q is invalid: must be a registry and a path, such as docker.io/seamark", o.Registry)
	}
	if parsed, err := url.Parse(o.URL); err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return nil, fmt.Errorf("url: %q is invalid: must be an HTTP or HTTPS URL", o.URL)
	}
	commit, err := version.Head(ctx, o.Source, parsed)
	if err != nil {
		return nil, err
	}
	toolchain, err := toolchainOf(filepath.Join(o.Source, "go.mod"))
	if err != nil {
		return nil, err
	}
	return &run{Options: o, version: parsed, commit: commit, toolchain: toolchain, digests: map[string]string{}}, nil
}

func (r *run) changelog(context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.Source, "CHANGELOG.md"))
	if err != nil {
		return fmt.Errorf("read the changelog: %w", err)
	}
	section, err := changelog.Section(string(text), r.version, repository)
	if err != nil {
		return err
	}
	return r.write("changelog.md", []byte(section+"\n"))
}

func (r *run) write(name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(r.out, name), content, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// pluginArchive is an archive with kubectl-seamark for one platform.
type pluginArchive struct {
	platform
	// file is the name of the archive, and sum its SHA-256 sum in hexadecimal digits.
	file, sum string
}

const pluginDescription = `Seamark runs custom probes in pods and marks the pods with the results.
The plugin shows the probes and marks of pods, and runs probes of manifests
as local processes without a cluster.
`

// pluginManifest returns the manifest with which krew installs kubectl-seamark.
func (r *run) pluginManifest(archives []pluginArchive) ([]byte, error) {
	var platforms []map[string]any
	for _, a := range archives {
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": a.os, "arch": a.arch}},
			"uri":      strings.TrimSuffix(r.URL, "/") + "/" + a.file,
			"sha256":   a.sum,
			"bin":      a.platform.file(plugin),
		})
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]string{"name": "seamark"},
		"spec": map[string]any{
			"version": r.version, "homepage": repository, "platforms": platforms,
			"shortDescription": "Show and test custom probes of pods", "description": pluginDescription,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the manifest of the plugin: %w", err)
	}
	return text, nil
}

// subject is a file or an image, with its SHA-256 sum in hexadecimal digits.
type subject struct{ name, sum string }

// provenance returns the statement of in-toto, with the predicate SLSA provenance, about the subjects. It is not signed,
// and contains no times and no identifiers of a run, so that the same build gives the same statement. JSON objects have
// sorted keys.
func (r *run) provenance(subjects []subject) ([]byte, error) {
	type object = map[string]any
	var named []object
	for _, s := range subjects {
		named = append(named, object{"name": s.name, "digest": object{"sha256": s.sum}})
	}
	const pages = repository + "/blob/main/"
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       named,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":            pages + "docs/security.md#provenance",
				"externalParameters":   object{"version": r.version, "registry": r.Registry, "url": r.URL},
				"internalParameters":   object{"go": r.toolchain},
				"resolvedDependencies": []object{{"uri": "git+" + repository, "digest": object{"gitCommit": r.commit.Hash}}},
			},
			// Without a signature, nothing more can be proven about who ran the build.
			"runDetails": object{"builder": object{"id": pages + "docs/development/releasing.md"}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the provenance: %w", err)
	}
	return out.Bytes(), nil
}

// plugin is the name with which kubectl finds the command line, and completion that of the program that completes its
// arguments.
const (
	plugin     = "kubectl-seamark"
	completion = "kubectl_complete-seamark"
)

// archives writes the archives of the command line under both of its names, and the manifest for krew. Windows runs no scripts
// without an extension.
func (r *run) archives(context.Context) error {
	license, err := os.ReadFile(filepath.Join(r.Source, "LICENSE"))
	if err != nil {
		return fmt.Errorf("read the license: %w", err)
	}
	script, err := os.ReadFile(filepath.Join(r.Source, "cmd", commandLine, completion))
	if err != nil {
		return fmt.Errorf("read the completion: %w", err)
	}
	platforms := commandLinePlatforms()
	plugins := make([]pluginArchive, len(platforms))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range platforms {
		group.Go(func() error {
			program, err := os.ReadFile(filepath.Join(r.programFolder(p), p.file(commandLine)))
			if err != nil {
				return fmt.Errorf("read the program: %w", err)
			}
			files := fstest.MapFS{"LICENSE": {Mode: 0o644, Data: license}, p.file(commandLine): {Mode: 0o755, Data: program}}
			if _, err := r.archive(commandLine, p, files); err != nil {
				return err
			}
			files = fstest.MapFS{"LICENSE": {Mode: 0o644, Data: license}, p.file(plugin): {Mode: 0o755, Data: program}}
			if p.os != "windows" {
				files[completion] = &fstest.MapFile{Mode: 0o755, Data: script}
			}
			plugins[i], err = r.archive(plugin, p, files)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	manifest, err := r.pluginManifest(plugins)
	if err != nil {
		return err
	}
	return r.write("seamark.yaml", manifest)
}

// archive writes an archive with the files of the command line under a name.
func (r *run) archive(name string, p platform, files fstest.MapFS) (pluginArchive, error) {
	file, pack := fmt.Sprintf("%s_%s_%s.tar.gz", name, r.version, p), image.TarGzip
	if p.os == "windows" {
		file, pack = strings.TrimSuffix(file, ".tar.gz")+".zip", image.Zip
	}
	content, err := pack(files, r.commit.Time)
	if err != nil {
		return pluginArchive{}, fmt.Errorf("write %s: %w", file, err)
	}
	return pluginArchive{platform: p, file: file, sum: sumOf(content)}, r.write(file, content)
}

// bills writes the SBOM of each program.
func (r *run) bills(ctx context.Context) error {
	tool := filepath.Join(r.work, "sbom")
	host := platform{runtime.GOOS, runtime.GOARCH}
	if err := r.command(ctx, r.environment(host), "go", "-C", "hack/sbom", "build", "-trimpath", "-buildvcs=false", "-o", tool, "."); err != nil {
		return err
	}
	for _, p := range commandLinePlatforms() {
		programs, err := os.ReadDir(r.programFolder(p))
		if err != nil {
			return fmt.Errorf("list the programs of %s: %w", p, err)
		}
		for _, program := range programs {
			bill := fmt.Sprintf("%s_%s_%s.cdx.json", strings.TrimSuffix(program.Name(), ".exe"), r.version, p)
			err := r.command(ctx, os.Environ(), tool, "--version", string(r.version), "--out", filepath.Join(r.out, bill),
				filepath.Join(r.programFolder(p), program.Name()))
			if err != nil {
				return fmt.Errorf("write %s: %w", bill, err)
			}
		}
	}
	return nil
}

// seal writes the provenance of all files and images, and the sums of all files. It is the last step.
func (r *run) seal(context.Context) error {
	subjects, err := r.sums()
	if err != nil {
		return err
	}
	for _, c := range components() {
		subjects = append(subjects, r.published(c.program(), c.name))
	}
	subjects = append(subjects, r.published(chartName, chartName))
	statement, err := r.provenance(subjects)
	if err != nil {
		return err
	}
	if err := r.write("provenance.intoto.json", statement); err != nil {
		return err
	}
	files, err := r.sums()
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, file := range files {
		fmt.Fprintf(&lines, "%s  %s\n", file.sum, file.name)
	}
	return r.write("checksums.txt", []byte(lines.String()))
}

// published returns the subject for an image or a chart in the registry.
func (r *run) published(name, part string) subject {
	return subject{name: r.Registry + "/" + name, sum: strings.TrimPrefix(r.digests[part], "sha256:")}
}

// sums returns the names and sums of the files that are written so far, in the order of their names. The layouts are
// folders, and the provenance has their digests.
func (r *run) sums() ([]subject, error) {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return nil, fmt.Errorf("list the artifacts: %w", err)
	}
	entries = slices.DeleteFunc(entries, os.DirEntry.IsDir)
	var sums []subject
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("sum of %s: %w", entry.Name(), err)
		}
		sums = append(sums, subject{name: entry.Name(), sum: sumOf(content)})
	}
	return sums, nil
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
