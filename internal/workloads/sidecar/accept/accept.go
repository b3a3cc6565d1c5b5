// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accept decides whether a generation of a SidecarSet may be injected, beyond what its schema
// checks: it must not conflict with accepted sets, and may set only annotations that the administrator of
// the cluster allows. It is pure.
package accept

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/overlap"
	"github.com/seamark-dev/seamark/internal/workloads/template"
)

const (
	// launchVariable and launchAnnotation order the start of containers in OpenKruise.
	launchVariable   = "KRUISE_CONTAINER_PRIORITY"
	launchAnnotation = "apps.kruise.io/container-launch-priority"
	useNative        = "use an init container with restartPolicy Always and a startupProbe: the kubelet starts the containers of the pod after it"
)

// Problem is why a generation is not accepted.
type Problem struct {
	Reason Reason
	// Field is the path of the field, and Message describes the problem and what is allowed.
	Field, Message string
}

// String describes the problem with its field.
func (p Problem) String() string { return p.Field + ": " + p.Message }

// Check returns the problems of the set, with the accepted sets and the white list.
func Check(set *v1alpha1.SidecarSet, accepted []*v1alpha1.SidecarSet, list WhiteList) []Problem {
	problems := append(containers(set), metadata(set, list)...)
	for _, other := range accepted {
		if other.UID != set.UID && overlap.Possible(&set.Spec, &other.Spec) {
			problems = append(problems, conflicts(set, other)...)
		}
	}
	return problems
}

// forEachContainer calls do with the containers of the set, and the paths of their fields.
func forEachContainer(set *v1alpha1.SidecarSet, do func(path string, c *v1alpha1.SidecarContainer)) {
	for i := range set.Spec.InitContainers {
		do(fmt.Sprintf("spec.initContainers[%d]", i), &set.Spec.InitContainers[i])
	}
	for i := range set.Spec.Containers {
		do(fmt.Sprintf("spec.containers[%d]", i), &set.Spec.Containers[i])
	}
}

func containers(set *v1alpha1.SidecarSet) []Problem {
	var problems []Problem
	forEachContainer(set, func(path string, c *v1alpha1.SidecarContainer) {
		at := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == launchVariable })
		if at >= 0 {
			problems = append(problems, Problem{InvalidContainer, fmt.Sprintf("%s.env[%d]", path, at), launchVariable + " has no effect: " + useNative})
		}
	})
	return problems
}

// conflicts compares the set with an accepted one that can select the same pods.
func conflicts(set, other *v1alpha1.SidecarSet) []Problem {
	var problems []Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{NameConflict, field, fmt.Sprintf(format, args...) + ", which can select the same pods"})
	}
	taken := make(map[string]bool)
	forEachContainer(other, func(_ string, c *v1alpha1.SidecarContainer) { taken[c.Name] = true })
	forEachContainer(set, func(path string, c *v1alpha1.SidecarContainer) {
		if taken[c.Name] {
			add(path+".name", "%s is the name of a container of SidecarSet %s", c.Name, other.Name)
		}
	})
	for i, volume := range set.Spec.Volumes {
		at := slices.IndexFunc(other.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name })
		if at >= 0 && !template.EqualVolumes(&volume, &other.Spec.Volumes[at]) {
			add(fmt.Sprintf("spec.volumes[%d]", i), "%s is the name of another volume of SidecarSet %s", volume.Name, other.Name)
		}
	}
	policies := make(map[string]v1alpha1.SidecarSetPatchPolicyType)
	for _, patch := range other.Spec.PatchPodMetadata {
		for key := range patch.Annotations {
			policies[key] = policy(patch)
		}
	}
	for i, patch := range set.Spec.PatchPodMetadata {
		for _, key := range slices.Sorted(maps.Keys(patch.Annotations)) {
			existing, found := policies[key]
			if found && (existing != policy(patch) || existing == v1alpha1.SidecarSetOverwritePatchPolicy) {
				add(
					annotationPath(i, key),
					"SidecarSet %s sets it with the policy %s, and only the same policy, Retain or MergePatchJson, is possible", other.Name, existing,
				)
			}
		}
	}
	return problems
}

func policy(patch v1alpha1.SidecarSetPatchPodMetadata) v1alpha1.SidecarSetPatchPolicyType {
	if patch.PatchPolicy == "" {
		return v1alpha1.SidecarSetRetainPatchPolicy
	}
	return patch.PatchPolicy
}

func annotationPath(i int, key string) string {
	return fmt.Sprintf("spec.patchPodMetadata[%d].annotations[%s]", i, key)
}

// metadata checks the annotations of the set.
func metadata(set *v1alpha1.SidecarSet, list WhiteList) []Problem {
	var problems []Problem
	known := make(map[string]bool)
	for i, patch := range set.Spec.PatchPodMetadata {
		for _, key := range slices.Sorted(maps.Keys(patch.Annotations)) {
			add := func(reason Reason, message string) {
				problems = append(problems, Problem{reason, annotationPath(i, key), message})
			}
			switch refusal := list.refusal(set, key); {
			case known[key]:
				add(NameConflict, "the set has the key twice: keep one")
			case key == launchAnnotation:
				add(MetadataNotAllowed, "it has no effect: "+useNative)
			case isReserved(key):
				add(MetadataNotAllowed, "Kubernetes and Seamark set it themselves")
			case refusal != "":
				add(MetadataNotAllowed, refusal)
			case policy(patch) == v1alpha1.SidecarSetMergePatchJSONPatchPolicy && !isObject(patch.Annotations[key]):
				add(InvalidJSON, "must be a JSON object for the policy MergePatchJson")
			}
			known[key] = true
		}
	}
	return problems
}

// isReserved reports whether the annotation belongs to the kubelet or says what was injected.
func isReserved(key string) bool {
	return strings.HasPrefix(key, "kruise.io/sidecarset-") || strings.HasPrefix(key, "kubernetes.io/config.")
}

func isObject(text string) bool {
	var object map[string]any
	return json.Unmarshal([]byte(text), &object) == nil && object != nil
}
