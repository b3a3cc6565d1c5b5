// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Build returns the manifests that a kustomization in a folder builds, in the order in which kubectl
// applies them.
func Build(folder string) ([]byte, error) { return build(folder, filesys.MakeFsOnDisk()) }

func build(folder string, files filesys.FileSystem) ([]byte, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	built, err := krusty.MakeKustomizer(options).Run(files, folder)
	if err != nil {
		return nil, fmt.Errorf("build kustomization %s: %w", folder, err)
	}
	content, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("build kustomization %s: %w", folder, err)
	}
	return content, nil
}

// BuildLocal is like Build, but returns an error if an object comes from another machine.
func BuildLocal(folder string) ([]byte, error) {
	files := &localFiles{FileSystem: filesys.MakeFsOnDisk()}
	content, err := build(folder, files)
	if files.refused != nil {
		// kustomize does not report why a file cannot be read.
		return nil, files.refused
	}
	return content, err
}

// localFiles is a file system whose kustomizations must not refer to other machines. It sees each one
// before kustomize downloads anything for it.
type localFiles struct {
	filesys.FileSystem
	refused error
}

// ReadFile returns the content of a file. It returns an error for a kustomization with a remote entry.
func (f *localFiles) ReadFile(path string) ([]byte, error) {
	content, err := f.FileSystem.ReadFile(path)
	if err != nil || !slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path)) {
		return content, err
	}
	for _, entry := range entriesOf(content) {
		if IsRemote(entry) {
			f.refused = fmt.Errorf("%s: %q is on another machine: %s", path, entry, RemoteRefused)
			return nil, f.refused
		}
	}
	return content, nil
}

// entriesOf returns the files, folders and addresses that a kustomization reads objects, their changes
// and the contents of ConfigMaps and Secrets from, which may be scripts. It is empty if the
// kustomization is invalid, which kustomize reports.
func entriesOf(content []byte) []string {
	var k types.Kustomization
	if err := k.Unmarshal(content); err != nil {
		return nil
	}
	// kustomize still reads the deprecated fields.
	entries := slices.Concat(k.Resources, k.Components, k.Crds, k.Configurations, k.Generators, k.Transformers, k.Validators,
		[]string{k.OpenAPI["path"]}, k.Bases) //nolint:staticcheck // see above
	for _, patch := range k.PatchesStrategicMerge { //nolint:staticcheck // see above
		entries = append(entries, string(patch))
	}
	for _, patch := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // see above
		entries = append(entries, patch.Path)
	}
	for _, replacement := range k.Replacements {
		entries = append(entries, replacement.Path)
	}
	var sources []types.KvPairSources
	for _, generator := range k.ConfigMapGenerator {
		sources = append(sources, generator.KvPairSources)
	}
	for _, generator := range k.SecretGenerator {
		sources = append(sources, generator.KvPairSources)
	}
	for _, source := range sources {
		entries = append(append(entries, source.EnvSource), source.EnvSources...)
		for _, file := range source.FileSources {
			// KEY=FILE or FILE.
			entries = append(entries, file[strings.Index(file, "=")+1:])
		}
	}
	return entries
}

// RemoteRefused is why manifests of other machines are refused.
const RemoteRefused = "its commands would run on this machine; download and read it first, or set --allow-remote"

// IsRemote reports whether kustomize would download an entry or a folder. Some names of local files
// match, too.
func IsRemote(entry string) bool {
	return regexp.MustCompile(`^(?i:git::|https?:|ssh:|file:|github\.com[:/]|[a-z][a-z0-9-]*@)`).MatchString(entry)
}
