// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/imagename"
)

// keep reports whether the pod's containers with the names of the set's are those of the revision that the pod names. Then
// this is the revision of the injection, so that what the containers share is that of it, too. Everybody who creates a pod can
// write its annotations and mark containers as injected, so containers of another program would run in their place. The error is
// a RefusedError. Without the revision that the pod names, they must be those of the revision to inject, or they are replaced.
func (i *injection) keep(known Known) (bool, error) {
	revision := i.revision
	named := i.stamps.hashes[i.revision.Set].SidecarSetControllerRevision
	if named != revision.Name {
		revision = known(i.revision.Set, named)
	}
	exists := revision != nil
	if !exists {
		revision = i.revision
	}
	for _, list := range []struct {
		of  []v1alpha1.SidecarContainer
		pod []corev1.Container
	}{{revision.InitContainers, i.pod.Spec.InitContainers}, {revision.Containers, i.pod.Spec.Containers}} {
		for j := range list.of {
			want := &list.of[j].Container
			at := slices.IndexFunc(list.pod, func(c corev1.Container) bool {
				return c.Name == want.Name && ptr.Equal(c.RestartPolicy, want.RestartPolicy)
			})
			if at < 0 {
				return false, nil
			}
			why := difference(&list.pod[at], want)
			switch {
			case why != "" && exists:
				return false, &RefusedError{i.revision.Set, fmt.Sprintf("the pod says that its container %q is that of revision %s, but %s: "+
					"remove the annotation %s and the container", want.Name, revision.Name, why, v1alpha1.SidecarSetListKey)}
			case why != "":
				return false, nil
			}
		}
	}
	i.revision = revision
	return true, nil
}

// maxShown is the maximum length of a value in a message: that of the pod can be large.
const maxShown = 256

// difference returns in what the container of a pod runs another program than that of a revision, or nothing. Other
// webhooks add variables and mounts, and change the names of images: see sameImage.
func difference(got, want *corev1.Container) string {
	for _, field := range []struct {
		name      string
		got, want []string
	}{
		{"image", []string{got.Image}, []string{want.Image}},
		{"command", got.Command, want.Command},
		{"args", got.Args, want.Args},
	} {
		if slices.Equal(field.got, field.want) || field.name == "image" && sameImage(got.Image, want.Image) {
			continue
		}
		show := func(value []string) string { return text.Truncate(fmt.Sprintf("%q", value), maxShown) }
		return fmt.Sprintf("it has the %s %s instead of %s", field.name, show(field.got), show(field.want))
	}
	return ""
}

// sameImage reports whether the image of a pod can be that of a revision in a mirror, with a digest that another webhook
// has added. A mirror has another registry, and may have a path in front of that of the image: in the registry of the image, a
// path is the project of somebody else. Which registries are mirrors, and which digests a tag has had, is not known here.
func sameImage(got, want string) bool {
	pod, revision := imagename.Split(got), imagename.Split(want)
	isMirror := pod.Repository == revision.Repository ||
		pod.Registry != revision.Registry && strings.HasSuffix(pod.Repository, "/"+revision.Repository)
	isSame := pod.Digest == revision.Digest || revision.Digest == ""
	return isMirror && isSame && (pod.Tag == revision.Tag || pod.Digest != "" && pod.Tag == "")
}
