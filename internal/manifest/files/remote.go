// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
)

// checkKustomization returns an error for an entry of the kustomization in a folder that is on another
// machine. It remembers which files have the configurations of plugins. An invalid kustomization passes:
// kustomize reports it and reads nothing for it.
func (f *localFiles) checkKustomization(root string, content []byte) error {
	var k types.Kustomization
	if err := k.Unmarshal(content); err != nil {
		return nil //nolint:nilerr // see above
	}
	k.FixKustomization()
	if err := checkEntries(entriesOf(k)); err != nil {
		return err
	}
	plugins := slices.Concat(k.Generators, k.Transformers, k.Validators)
	if f.configs[root] {
		if !hasOnlyResources(k) {
			return errors.New("it is used as a generator, a transformer or a validator, and must have only resources: " +
				"what changes them could compose the address of another machine; set --allow-remote if you trust it")
		}
		plugins = append(plugins, k.Resources...)
	}
	for _, plugin := range plugins {
		if inline := configsIn([]byte(plugin)); inline != nil {
			if err := checkConfigs(inline); err != nil {
				return err
			}
			continue
		}
		path := plugin
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		// kustomize reports a path that does not exist.
		if folder, name, err := f.FileSystem.CleanedAbs(path); err == nil {
			f.configs[folder.Join(name)] = true
		}
	}
	return nil
}

// entriesOf returns the files, folders and addresses that a kustomization reads objects, their changes
// and the contents of ConfigMaps and Secrets from, which may be scripts.
func entriesOf(k types.Kustomization) []string {
	// kustomize still reads the deprecated fields.
	entries := slices.Concat(k.Resources, k.Components, k.Crds, k.Configurations, k.Generators, k.Transformers, k.Validators,
		[]string{k.OpenAPI["path"]})
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
		entries = slices.Concat(entries, source.EnvSources, source.FileSources)
	}
	return entries
}

// hasOnlyResources reports whether a kustomization does not change its resources.
func hasOnlyResources(k types.Kustomization) bool {
	return equality.Semantic.DeepEqual(k, types.Kustomization{TypeMeta: k.TypeMeta, MetaData: k.MetaData, Resources: k.Resources})
}

// configsIn returns the configurations of plugins in a text, as kustomize reads them. It is nil if the
// text is not YAML of objects: kustomize then takes it for a path.
func configsIn(content []byte) resmap.ResMap {
	configs, err := resmap.NewFactory(provider.NewDepProvider().GetResourceFactory()).NewResMapFromBytes(content)
	if err != nil {
		return nil
	}
	return configs
}

// checkConfigs returns an error for a text in the configurations that is on another machine. Plugins
// read files from various fields.
func checkConfigs(configs resmap.ResMap) error {
	if configs == nil {
		return nil
	}
	for _, config := range configs.Resources() {
		fields, err := config.Map()
		if err != nil {
			return fmt.Errorf("read the configuration of a plugin: %w", err)
		}
		if err := checkEntries(textsOf(fields)); err != nil {
			return err
		}
	}
	return nil
}

// textsOf returns the texts in a value, except for literals and annotations, which no plugin reads from
// and which often are addresses.
func textsOf(value any) []string {
	var texts []string
	switch v := value.(type) {
	case string:
		texts = append(texts, v)
	case []any:
		for _, item := range v {
			texts = append(texts, textsOf(item)...)
		}
	case map[string]any:
		for key, field := range v {
			if !slices.Contains([]string{"literals", "annotations", "patch", "patches", "jsonOp"}, key) {
				texts = append(texts, textsOf(field)...)
			}
		}
	}
	return texts
}

// checkEntries returns an error for an entry that is on another machine. Sources of ConfigMaps may be
// KEY=FILE.
func checkEntries(entries []string) error {
	for _, entry := range entries {
		if file := entry[strings.Index(entry, "=")+1:]; isRemote(entry) || isRemote(file) {
			return remoteError(entry)
		}
	}
	return nil
}

func remoteError(name string) error {
	return fmt.Errorf("%q is on another machine: download and read it first; lint, local and migrate check also read it with --allow-remote", name)
}

// isRemote reports whether kustomize would download an entry or a folder. It compares in the way of
// kustomize: some letters have a lower case that regular expressions do not know. Some names of local
// files match, too.
func isRemote(entry string) bool {
	return regexp.MustCompile(`^(git::|https?:|ssh:|file:|github\.com[:/]|[a-z][a-z0-9-]*@)`).MatchString(strings.ToLower(entry))
}
