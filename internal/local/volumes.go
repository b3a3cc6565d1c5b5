// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// defaultFileMode is the mode of a file from a config map or secret where the volume asks
// for no other.
const defaultFileMode = 0o644

// makeVolumes makes the pod's folders: its own, and one for each volume. All are made
// before any process is started, as a script that is just being written can't be run.
func (l *loop) makeVolumes(p *pod) error {
	p.folder = filepath.Join(l.keeper.Folder(), p.object.Namespace+"_"+p.object.Name)
	for i := range p.object.Spec.Volumes {
		volume := &p.object.Spec.Volumes[i]
		files, items, mode, ok := l.contents(p, volume)
		if !ok {
			continue
		}
		folder := filepath.Join(p.folder, "volumes", volume.Name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("make volume %s of pod %s: %w", volume.Name, p.object.Name, err)
		}
		if err := writeFiles(folder, files, items, mode); err != nil {
			return fmt.Errorf("fill volume %s of pod %s: %w", volume.Name, p.object.Name, err)
		}
		p.volumes[volume.Name] = folder
	}
	return nil
}

// contents returns what a volume begins with. It reports false for a kind of volume that a
// local run has not.
func (l *loop) contents(p *pod, volume *corev1.Volume) (files map[string][]byte, items []corev1.KeyToPath, mode *int32, ok bool) {
	named := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: p.object.Namespace, Name: name}
	}
	files = map[string][]byte{}
	switch {
	case volume.EmptyDir != nil:
		return files, nil, nil, true
	case volume.ConfigMap != nil:
		if object := l.options.Objects.ConfigMaps[named(volume.ConfigMap.Name)]; object != nil {
			for key, value := range object.BinaryData {
				files[key] = value
			}
			for key, value := range object.Data {
				files[key] = []byte(value)
			}
		}
		return files, volume.ConfigMap.Items, volume.ConfigMap.DefaultMode, true
	case volume.Secret != nil:
		if object := l.options.Objects.Secrets[named(volume.Secret.SecretName)]; object != nil {
			files = object.Data
		}
		return files, volume.Secret.Items, volume.Secret.DefaultMode, true
	}
	return nil, nil, nil, false
}

// writeFiles writes the files under their keys, or those of the items under their paths.
func writeFiles(folder string, files map[string][]byte, items []corev1.KeyToPath, defaultMode *int32) error {
	if items == nil {
		for key := range files {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		contents, found := files[item.Key]
		if !found {
			// The key of an optional source.
			continue
		}
		mode := os.FileMode(defaultFileMode)
		if defaultMode != nil {
			mode = os.FileMode(*defaultMode)
		}
		if item.Mode != nil {
			mode = os.FileMode(*item.Mode)
		}
		path := filepath.Join(folder, item.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make the folder of %s: %w", item.Path, err)
		}
		if err := os.WriteFile(path, contents, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", item.Path, err)
		}
		// Past the umask, as the manifest says.
		if err := os.Chmod(path, mode); err != nil {
			return fmt.Errorf("set the mode of %s: %w", item.Path, err)
		}
	}
	return nil
}
