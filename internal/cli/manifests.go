// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/seamark-dev/seamark/internal/cli/lint"
	"github.com/seamark-dev/seamark/internal/manifest/files"
)

const (
	// maxLintFiles and maxLintBytes bound the files of one run of lint.
	maxLintFiles = 10_000
	maxLintBytes = 64 << 20
)

// lintFiles collects the manifests to lint.
type lintFiles struct {
	in io.Reader
	// plain are the files and the standard input, which are compared with each other.
	plain []lint.File
	// built are the results of kustomizations. Each stands for itself.
	built []lint.File
	bytes int
}

// add adds a file, the manifests in a folder and its subfolders, or the standard input.
func (l *lintFiles) add(name string) error {
	if name == files.Stdin {
		return l.read("standard input", l.in, false)
	}
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("read manifests: %w", err)
	}
	if !info.IsDir() {
		return l.open(name, false)
	}
	before := len(l.plain) + len(l.built)
	// With a trailing separator, a symbolic link to a folder is followed.
	err = filepath.WalkDir(filepath.Clean(name)+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read manifests: %w", err)
		}
		return l.visit(filepath.Clean(path), entry, path == name)
	})
	if err == nil && len(l.plain)+len(l.built) == before {
		return fmt.Errorf("read manifests: %s: no .yaml, .yml or .json file in the folder", name)
	}
	return err
}

// visit handles a file or folder in a folder.
func (l *lintFiles) visit(path string, entry fs.DirEntry, root bool) error {
	if !entry.IsDir() {
		if !entry.Type().IsRegular() || !slices.Contains(resource.FileExtensions, filepath.Ext(path)) {
			return nil
		}
		return l.open(path, true)
	}
	hidden := strings.HasPrefix(filepath.Base(path), ".") && len(filepath.Base(path)) > 1 && filepath.Base(path) != ".."
	if !root && (hidden || isChartTemplates(path)) {
		return filepath.SkipDir
	}
	file, err := kustomizationIn(path)
	if err != nil || file == "" {
		return err
	}
	content, err := kustomize(path, filesys.MakeFsOnDisk())
	if err != nil {
		return err
	}
	l.built = append(l.built, lint.File{Name: file, Content: content, Generated: true})
	if err := l.count(file, len(content)); err != nil {
		return err
	}
	return filepath.SkipDir
}

// isChartTemplates reports whether the folder has the templates of a Helm chart, which are not YAML.
func isChartTemplates(path string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(path), "Chart.yaml"))
	return err == nil && filepath.Base(path) == "templates"
}

// kustomizationIn returns the file of the kustomization in a folder, or nothing if it has none. A
// Component is none: it cannot be built alone.
func kustomizationIn(folder string) (string, error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		path := filepath.Join(folder, name)
		content, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", fmt.Errorf("read kustomization: %w", err)
		case !bytes.Contains(content, []byte("kind: Component")):
			return path, nil
		}
	}
	return "", nil
}

// open reads a file. found is whether it was found in a folder, and not named by the user.
func (l *lintFiles) open(path string, found bool) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	defer file.Close()
	return l.read(path, file, found)
}

func (l *lintFiles) read(name string, from io.Reader, found bool) error {
	content, err := io.ReadAll(io.LimitReader(from, maxManifestBytes+1))
	if err != nil {
		return fmt.Errorf("read manifest %s: %w", name, err)
	}
	if len(content) > maxManifestBytes {
		return fmt.Errorf("read manifest %s: larger than %d bytes", name, maxManifestBytes)
	}
	l.plain = append(l.plain, lint.File{Name: name, Content: content, Mixed: found})
	return l.count(name, len(content))
}

// count returns an error if the files are too many or too large together.
func (l *lintFiles) count(name string, size int) error {
	l.bytes += size
	if len(l.plain)+len(l.built) > maxLintFiles || l.bytes > maxLintBytes {
		return fmt.Errorf("read manifest %s: more than %d files or %d bytes: lint fewer files at once", name, maxLintFiles, maxLintBytes)
	}
	return nil
}
