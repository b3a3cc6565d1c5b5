// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"path/filepath"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Build returns the manifests that a kustomization in a folder builds, in the order in which kubectl
// applies them. Unless remote parts are allowed, it returns an error for a kustomization that refers to
// another machine, before anything is downloaded.
func Build(folder string, allowRemote bool) ([]byte, error) {
	if allowRemote {
		return build(folder, filesys.MakeFsOnDisk())
	}
	if isRemote(folder) {
		return nil, remoteError(folder)
	}
	files := &localFiles{FileSystem: filesys.MakeFsOnDisk(), roots: map[string]string{}, configs: map[string]bool{}}
	content, err := build(folder, files)
	if files.refused != nil {
		// kustomize does not report why a file cannot be read.
		return nil, files.refused
	}
	return content, err
}

func build(folder string, files filesys.FileSystem) (content []byte, err error) {
	defer func() {
		// For example, kustomize panics for a patch without the target that it requires.
		if panicked := recover(); panicked != nil {
			content, err = nil, fmt.Errorf("build kustomization %s: it is invalid in a way that kustomize cannot handle: %v", folder, panicked)
		}
	}()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	built, err := krusty.MakeKustomizer(options).Run(files, folder)
	if err != nil {
		return nil, fmt.Errorf("build kustomization %s: %w", folder, err)
	}
	if content, err = built.AsYaml(); err != nil {
		return nil, fmt.Errorf("build kustomization %s: %w", folder, err)
	}
	return content, nil
}

// localFiles is a file system whose kustomizations must not refer to other machines. kustomize
// downloads only what a kustomization names, or the configuration of a generator, a transformer or a
// validator. It reads both with ReadFile, or has them inline in a kustomization, so that each of them is
// checked here before kustomize sees it.
type localFiles struct {
	filesys.FileSystem
	// roots are the folders of kustomizations, by their files: a link leads to a file of any name.
	roots map[string]string
	// configs are the files with configurations of plugins, and the folders that kustomizations with
	// only such files are in.
	configs map[string]bool
	refused error
}

// CleanedAbs returns the folder and the name of a file, without links. kustomize calls it before it
// reads a file.
func (f *localFiles) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	folder, name, err := f.FileSystem.CleanedAbs(path)
	if err == nil && slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path)) {
		f.roots[folder.Join(name)] = filepath.Dir(path)
	}
	return folder, name, err //nolint:wrapcheck // kustomize adds the path
}

// ReadFile returns the content of a file. It returns an error if the file makes kustomize download
// something.
func (f *localFiles) ReadFile(path string) ([]byte, error) {
	content, err := f.FileSystem.ReadFile(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // kustomize adds the path
	}
	if root, is := f.roots[path]; is {
		err = f.checkKustomization(root, content)
	}
	if err == nil && f.configs[path] {
		err = checkConfigs(configsIn(content))
	}
	if err != nil {
		f.refused = fmt.Errorf("%s: %w", path, err)
		return nil, f.refused
	}
	return content, nil
}
