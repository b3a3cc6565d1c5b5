// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/internal/manifest/environ"
)

// podPart is a volume or a container of a pod.
type podPart struct{ kind, name string }

const (
	volumePart    = "volume"
	containerPart = "container"
)

// placesIn returns the places of the volumes and the containers of a pod whose spec is at the path, and of the claims that its workload
// makes.
func placesIn(at Place, path *field.Path, spec *corev1.PodSpec, claims []corev1.PersistentVolumeClaim) map[podPart]pathIn {
	places := map[podPart]pathIn{}
	for i := range spec.Volumes {
		places[podPart{volumePart, spec.Volumes[i].Name}] = pathIn{at, path.Child("volumes").Index(i).String()}
	}
	for i := range claims {
		places[podPart{volumePart, claims[i].Name}] = pathIn{at, field.NewPath("spec", "volumeClaimTemplates").Index(i).String()}
	}
	for i := range spec.InitContainers {
		places[podPart{containerPart, spec.InitContainers[i].Name}] = pathIn{at, path.Child("initContainers").Index(i).String()}
	}
	for i := range spec.Containers {
		places[podPart{containerPart, spec.Containers[i].Name}] = pathIn{at, path.Child("containers").Index(i).String()}
	}
	return places
}

// volumes validates the names and sources of volumes. It rejects two volumes that would share
// an environment variable.
func (v *validator) volumes(path *field.Path) {
	names, variables := sets.New[string](), map[string]string{}
	for i := range v.pod.Spec.Volumes {
		volume, at := &v.pod.Spec.Volumes[i], path.Index(i)
		v.name(at.Child("name"), volume.Name, names, validation.IsDNS1123Label(volume.Name))
		variable := environ.VolumeVariable(volume.Name)
		if before, taken := variables[variable]; taken && before != volume.Name {
			v.add(field.Invalid(at.Child("name"), volume.Name, "uses the same variable "+variable+" as volume "+before))
		}
		variables[variable] = volume.Name
		switch {
		case volume.PersistentVolumeClaim != nil:
			claim := volume.PersistentVolumeClaim.ClaimName
			v.each(at.Child("persistentVolumeClaim", "claimName"), claim, validation.IsDNS1123Subdomain(claim))
		case volume.ConfigMap != nil:
			source := at.Child("configMap")
			v.configMap(source, volume.ConfigMap.Name, "", volume.ConfigMap.Optional, true)
			v.items(source.Child("items"), volume.ConfigMap.Items, func(at *field.Path, key string) {
				v.configMap(at, volume.ConfigMap.Name, key, volume.ConfigMap.Optional, true)
			})
		case volume.Secret != nil:
			source := at.Child("secret")
			v.secret(source, volume.Secret.SecretName, "", volume.Secret.Optional)
			v.items(source.Child("items"), volume.Secret.Items, func(at *field.Path, key string) {
				v.secret(at, volume.Secret.SecretName, key, volume.Secret.Optional)
			})
		}
	}
}

func (v *validator) items(path *field.Path, items []corev1.KeyToPath, check func(*field.Path, string)) {
	for i, item := range items {
		at := path.Index(i)
		if item.Key == "" {
			v.add(field.Required(at.Child("key"), "an item needs a key"))
			continue
		}
		check(at, item.Key)
		if !filepath.IsLocal(item.Path) {
			v.add(field.Invalid(at.Child("path"), item.Path, "must be a relative path without \"..\""))
		}
	}
}

func (v *validator) mounts(path *field.Path, mounts []corev1.VolumeMount) {
	volumes := sets.New[string]()
	for i := range v.pod.Spec.Volumes {
		volumes.Insert(v.pod.Spec.Volumes[i].Name)
	}
	paths := sets.New[string]()
	for i, mount := range mounts {
		at := path.Index(i)
		if !volumes.Has(mount.Name) {
			v.add(field.NotFound(at.Child("name"), mount.Name))
		}
		switch {
		case mount.MountPath == "":
			v.add(field.Required(at.Child("mountPath"), "a mount needs a path"))
		case paths.Has(mount.MountPath):
			v.add(field.Invalid(at.Child("mountPath"), mount.MountPath, "must be unique in the container"))
		}
		paths.Insert(mount.MountPath)
	}
}
