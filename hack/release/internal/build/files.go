// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing/fstest"

	"golang.org/x/sync/errgroup"

	"github.com/seamark-dev/seamark/hack/image"
)

// plugin is the name with which kubectl finds the command line.
const plugin = "kubectl-seamark"

// archives writes the archives of the command line under both of its names, and the manifest for krew.
func (r *run) archives(context.Context) error {
	license, err := os.ReadFile(filepath.Join(r.Source, "LICENSE"))
	if err != nil {
		return fmt.Errorf("read the license: %w", err)
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
			if _, err := r.archive(commandLine, p, program, license); err != nil {
				return err
			}
			plugins[i], err = r.archive(plugin, p, program, license)
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

// archive writes an archive with the command line under a name.
func (r *run) archive(name string, p platform, program, license []byte) (pluginArchive, error) {
	files := fstest.MapFS{"LICENSE": {Mode: 0o644, Data: license}, p.file(name): {Mode: 0o755, Data: program}}
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
