// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// patchMetadata sets the annotations of the revision.
func (i *injection) patchMetadata() {
	changes, kept := Annotations(i.pod, i.revision, true)
	for key, value := range changes {
		i.annotate(key, value)
	}
	for _, key := range kept {
		i.warn("annotation %s of the pod stays as it is: it is no JSON object", key)
	}
}

// Annotations returns the annotations that the revision sets or changes, and the keys of those that cannot be
// merged, sorted. An update of a pod sets no annotations with the policy Retain: created is whether the pod is
// being created.
func Annotations(pod *corev1.Pod, r *Revision, created bool) (changes map[string]string, kept []string) {
	changes = map[string]string{}
	for _, patch := range r.PatchPodMetadata {
		for key, value := range patch.Annotations {
			current, found := pod.Annotations[key]
			switch patch.PatchPolicy {
			case v1alpha1.SidecarSetOverwritePatchPolicy:
			case v1alpha1.SidecarSetMergePatchJSONPatchPolicy:
				if current == "" {
					break
				}
				merged, err := jsonpatch.MergePatch([]byte(current), []byte(value))
				if err != nil {
					kept = append(kept, key)
					continue
				}
				value = sorted(merged)
			default:
				if found || !created {
					continue
				}
			}
			if !found || value != current {
				changes[key] = value
			}
		}
	}
	slices.Sort(kept)
	return changes, kept
}

// sorted returns the JSON with sorted keys, so that it does not depend on the order of merges.
func sorted(text []byte) string {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	// It is the result of a merge, and the types always encode.
	_ = decoder.Decode(&value)
	encoded, _ := json.Marshal(value)
	return string(encoded)
}

func (i *injection) annotate(key, value string) {
	if i.pod.Annotations == nil {
		i.pod.Annotations = make(map[string]string)
	}
	i.pod.Annotations[key] = value
}

// stamps are what the annotations of a pod say about its sets. They come from the client that creates the
// pod if it was copied from another one.
type stamps struct {
	names                 []string
	hashes, withoutImages map[string]v1alpha1.SidecarSetUpgradeSpec
}

func parseStamps(pod *corev1.Pod) stamps {
	s := stamps{
		hashes:        parseHashes(pod.Annotations[v1alpha1.SidecarSetHashKey]),
		withoutImages: parseHashes(pod.Annotations[v1alpha1.SidecarSetHashWithoutImageKey]),
	}
	s.names = Sets(pod)
	return s
}

// parseHashes returns no hashes if the text is not valid: it cannot be that of a pod that a set has injected.
func parseHashes(text string) map[string]v1alpha1.SidecarSetUpgradeSpec {
	hashes := map[string]v1alpha1.SidecarSetUpgradeSpec{}
	if json.Unmarshal([]byte(text), &hashes) != nil || hashes == nil {
		return map[string]v1alpha1.SidecarSetUpgradeSpec{}
	}
	return hashes
}

// lists reports whether the pod has the set, according to its annotations.
func (s stamps) lists(set string) bool { return slices.Contains(s.names, set) }

// stamp records the revision in the annotations.
func (i *injection) stamp(at metav1.Time) {
	for key, value := range Stamp(i.pod, i.revision, at) {
		i.annotate(key, value)
	}
}

// Stamp returns the annotations that say which revision the pod has.
func Stamp(pod *corev1.Pod, r *Revision, at metav1.Time) map[string]string {
	stamps := parseStamps(pod)
	spec := v1alpha1.SidecarSetUpgradeSpec{UpdateTimestamp: at, SidecarSetName: r.Set, SidecarList: []string{}, SidecarSetControllerRevision: r.Name}
	for j := range r.Containers {
		spec.SidecarList = append(spec.SidecarList, r.Containers[j].Name)
	}
	for j := range r.InitContainers {
		if c := &r.InitContainers[j]; IsNative(c) {
			spec.SidecarList = append(spec.SidecarList, c.Name)
		}
	}
	slices.Sort(spec.SidecarList)
	names := append(stamps.names, r.Set)
	slices.Sort(names)
	written := map[string]string{v1alpha1.SidecarSetListKey: strings.Join(slices.Compact(names), ",")}
	write := func(key, hash string, hashes map[string]v1alpha1.SidecarSetUpgradeSpec) {
		spec.SidecarSetHash = hash
		hashes[r.Set] = spec
		// The type always encodes, with sorted keys.
		encoded, _ := json.Marshal(hashes)
		written[key] = string(encoded)
	}
	write(v1alpha1.SidecarSetHashKey, r.Hash, stamps.hashes)
	write(v1alpha1.SidecarSetHashWithoutImageKey, r.HashWithoutImage, stamps.withoutImages)
	return written
}

// Sets returns the names of the sets that the pod has, sorted.
func Sets(pod *corev1.Pod) []string {
	list := pod.Annotations[v1alpha1.SidecarSetListKey]
	if list == "" || len(list) > maxListBytes {
		return nil
	}
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
	slices.Sort(names)
	return slices.Compact(names)
}
