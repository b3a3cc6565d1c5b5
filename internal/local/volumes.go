// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/manifest"
)

// defaultFileMode is the default mode of the files of a config map or secret.
const defaultFileMode = 0o644

// makeVolumes creates the pod's folder in the run's folder, and a folder for each volume.
// It runs before any process starts, because a script can't be executed while it is open
// for writing.
func makeVolumes(p *pod, folder string, objects *manifest.Objects) error {
	p.folder = filepath.Join(folder, p.object.Namespace+"_"+p.object.Name)
	for i := range p.object.Spec.Volumes {
		volume := &p.object.Spec.Volumes[i]
		files, items, mode, ok := contentsOf(p, volume, objects)
		if !ok {
			continue
		}
		path := filepath.Join(p.folder, "volumes", volume.Name)
		if claim := volume.PersistentVolumeClaim; claim != nil {
			// All pods with the claim share its folder.
			path = filepath.Join(folder, "claims", p.object.Namespace+"_"+claim.ClaimName)
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			return fmt.Errorf("create volume %s of pod %s: %w", volume.Name, p.object.Name, err)
		}
		if err := writeFiles(path, files, items, mode); err != nil {
			return fmt.Errorf("write volume %s of pod %s: %w", volume.Name, p.object.Name, err)
		}
		p.volumes[volume.Name] = path
	}
	return nil
}

// contentsOf returns the initial files of a volume. It returns false for types of volumes
// that a local run does not support.
func contentsOf(p *pod, volume *corev1.Volume, objects *manifest.Objects) (files map[string][]byte, items []corev1.KeyToPath, mode *int32, ok bool) {
	named := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: p.object.Namespace, Name: name}
	}
	files = map[string][]byte{}
	switch {
	case volume.EmptyDir != nil, volume.PersistentVolumeClaim != nil:
		return files, nil, nil, true
	case volume.ConfigMap != nil:
		if object := objects.ConfigMaps[named(volume.ConfigMap.Name)]; object != nil {
			for key, value := range object.BinaryData {
				files[key] = value
			}
			for key, value := range object.Data {
				files[key] = []byte(value)
			}
		}
		return files, volume.ConfigMap.Items, volume.ConfigMap.DefaultMode, true
	case volume.Secret != nil:
		if object := objects.Secrets[named(volume.Secret.SecretName)]; object != nil {
			files = object.Data
		}
		return files, volume.Secret.Items, volume.Secret.DefaultMode, true
	}
	return nil, nil, nil, false
}

// writeFiles writes the items to their paths, or all files to their keys if there are none.
func writeFiles(folder string, files map[string][]byte, items []corev1.KeyToPath, defaultMode *int32) error {
	if items == nil {
		for key := range files {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		contents, found := files[item.Key]
		if !found {
			// The source is optional.
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
			return fmt.Errorf("create folder of %s: %w", item.Path, err)
		}
		if err := os.WriteFile(path, contents, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", item.Path, err)
		}
		// Unlike WriteFile, this is not subject to the umask.
		if err := os.Chmod(path, mode); err != nil {
			return fmt.Errorf("set mode of %s: %w", item.Path, err)
		}
	}
	return nil
}
