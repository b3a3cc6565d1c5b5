// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/seamark-dev/seamark/internal/manifest/document"
)

const (
	// MaxBytes is the maximum size of one file.
	MaxBytes = 16 << 20
	// maxFiles and maxTotal bound what one command reads.
	maxFiles = 10_000
	maxTotal = 64 << 20
	// downloadTimeout limits the download of one manifest.
	downloadTimeout = 30 * time.Second
)

// Loader reads manifests. All commands read the same files of a folder: those that end in .yaml, .yml or .json, also
// in its subfolders, except for hidden ones and the templates of Helm charts. A folder with a kustomization is built instead. It is
// left out if a folder above it that is read has manifests itself: it is a variant of these, or a copy.
type Loader struct {
	// Stdin is what the name Stdin means.
	Stdin io.Reader
	// AllowRemote permits to download manifests, and the remote parts of kustomizations.
	AllowRemote bool

	files []document.File
	bytes int
}

// Load returns the contents of the files, of the manifests in the folders, sorted by name, and of the
// standard input, as far as they are readable. The error joins those of the others.
func (l *Loader) Load(ctx context.Context, names []string) ([]document.File, error) {
	var errs []error
	for _, name := range names {
		errs = append(errs, l.add(ctx, name))
	}
	return l.files, errors.Join(errs...)
}

func (l *Loader) add(ctx context.Context, name string) error {
	switch {
	case name == Stdin:
		return l.read(document.File{Name: "standard input"}, l.Stdin)
	case isURL(name) && l.AllowRemote:
		return l.download(ctx, name)
	case isURL(name):
		return remoteError(name)
	}
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("read manifests: %w", err)
	}
	if !info.IsDir() {
		return l.open(document.File{Name: name})
	}
	before := len(l.files)
	// With a trailing separator, a symbolic link to a folder is followed.
	root := filepath.Clean(name) + string(filepath.Separator)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read manifests: %w", err)
		}
		return l.visit(filepath.Clean(path), entry, filepath.Clean(name))
	})
	if err == nil && len(l.files) == before {
		return fmt.Errorf("read manifests: %s: no .yaml, .yml or .json file in the folder or below it", name)
	}
	return err
}

// visit handles a file or folder in a folder.
func (l *Loader) visit(path string, entry fs.DirEntry, root string) error {
	base := filepath.Base(path)
	switch {
	case entry.IsDir() && path != root && (strings.HasPrefix(base, ".") || isChartTemplates(path)):
		return filepath.SkipDir
	case entry.IsDir():
		return l.build(path, root)
	case !isManifest(path):
		return nil
	}
	return l.open(document.File{Name: path, Mixed: true})
}

// isManifest reports whether a path in a folder is that of a file that is read.
func isManifest(path string) bool {
	return !strings.HasPrefix(filepath.Base(path), ".") && slices.Contains(resource.FileExtensions, filepath.Ext(path)) && isRegular(path)
}

// isRegular reports whether a path is that of a file, or of a link to one, as in a folder that Kubernetes mounts from a
// ConfigMap. To open another one, such as a named pipe, could wait for ever.
func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// build builds the kustomization of a folder in the root, if there is one, and then skips what is in the folder.
func (l *Loader) build(folder, root string) error {
	file, err := kustomizationIn(folder)
	if err != nil || file == "" {
		return err
	}
	for above := folder; above != root; {
		above = filepath.Dir(above)
		if hasObjects(above) {
			return filepath.SkipDir
		}
	}
	// Otherwise a folder with the name of a host, such as github.com/org/repo, is an address.
	path, err := filepath.Abs(folder)
	if err != nil {
		return fmt.Errorf("find kustomization %s: %w", folder, err)
	}
	content, err := Build(path, l.AllowRemote)
	if err != nil {
		return err
	}
	if err := l.read(document.File{Name: file, Generated: true}, bytes.NewReader(content)); err != nil {
		return err
	}
	return filepath.SkipDir
}

// hasObjects reports whether a file in the folder, not in a subfolder, has Kubernetes objects. Files that cannot be read have none:
// their errors are reported when they are loaded.
func hasObjects(folder string) bool {
	entries, err := os.ReadDir(folder)
	return err == nil && slices.ContainsFunc(entries, func(entry fs.DirEntry) bool {
		path := filepath.Join(folder, entry.Name())
		alone := &Loader{}
		if !isManifest(path) || alone.open(document.File{Name: path, Mixed: true}) != nil {
			return false
		}
		objects, err := alone.files[0].Objects()
		return err == nil && len(objects) > 0
	})
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

func (l *Loader) open(file document.File) error {
	content, err := os.Open(file.Name)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	defer content.Close()
	return l.read(file, content)
}

// isURL reports whether a file name is a URL, as kubectl decides it.
func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

func (l *Loader) download(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("read manifest %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("read manifest %s: server answered %s", url, response.Status)
	}
	return l.read(document.File{Name: url}, response.Body)
}

// read adds a file with the content.
func (l *Loader) read(file document.File, from io.Reader) error {
	var err error
	if file.Content, err = io.ReadAll(io.LimitReader(from, MaxBytes+1)); err != nil {
		return fmt.Errorf("read manifest %s: %w", file.Name, err)
	}
	if len(file.Content) > MaxBytes {
		return fmt.Errorf("read manifest %s: larger than %d bytes", file.Name, MaxBytes)
	}
	if l.bytes += len(file.Content); len(l.files) == maxFiles || l.bytes > maxTotal {
		return fmt.Errorf("read manifest %s: more than %d files or %d bytes: read fewer files at once", file.Name, maxFiles, maxTotal)
	}
	l.files = append(l.files, file)
	return nil
}
