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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"

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
