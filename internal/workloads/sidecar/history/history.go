// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history records accepted generations of a SidecarSet in ControllerRevisions, and finds the one
// that a set names. It is pure. Names, contents, labels and annotations are those of OpenKruise.
package history

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/internal/workloads/template"
)

// SetLabel is the label of a ControllerRevision that contains the name of the set.
const SetLabel = "kruise.io/sidecarset-name"

// recorded returns the fields of the spec that a revision contains.
func recorded() []string {
	return []string{"volumes", "containers", "initContainers", "imagePullSecrets", "patchPodMetadata"}
}

// Content returns what the revision of the set records: the recorded fields, null if they are not set.
func Content(set *v1alpha1.SidecarSet) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&set.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode SidecarSet %s: %w", set.Name, err)
	}
	spec := make(map[string]any)
	for _, field := range recorded() {
		spec[field] = fields[field]
	}
	return json.Marshal(map[string]any{"spec": spec})
}

// New returns the revision of the set for the namespace, with a number.
func New(set *v1alpha1.SidecarSet, namespace string, number int64, collisions int32) (*appsv1.ControllerRevision, error) {
	content, err := Content(set)
	if err != nil {
		return nil, err
	}
	full, withoutImages, err := Hashes(set)
	if err != nil {
		return nil, err
	}
	name, sum := revision.Name(set.Name, content, collisions)
	labels := map[string]string{SetLabel: set.Name, revision.HashLabel: sum}
	if version := CustomVersion(set); version != "" {
		labels[v1alpha1.SidecarSetCustomVersionLabel] = version
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: labels,
			Annotations:     map[string]string{v1alpha1.SidecarSetHashKey: full, v1alpha1.SidecarSetHashWithoutImageKey: withoutImages},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, Kind())},
		},
		Data:     runtime.RawExtension{Raw: content},
		Revision: number,
	}, nil
}

// CustomVersion returns the version that users chose for the set: its label, or spec.customVersion.
func CustomVersion(set *v1alpha1.SidecarSet) string {
	return cmp.Or(set.Labels[v1alpha1.SidecarSetCustomVersionLabel], set.Spec.CustomVersion)
}

// Parse returns what the ControllerRevision injects.
func Parse(rev *appsv1.ControllerRevision) (*inject.Revision, error) {
	var content struct {
		Spec v1alpha1.SidecarSetSpec `json:"spec"`
	}
	if err := json.Unmarshal(rev.Data.Raw, &content); err != nil {
		return nil, fmt.Errorf("decode ControllerRevision %s/%s: %w", rev.Namespace, rev.Name, err)
	}
	spec := &content.Spec
	if len(spec.Containers)+len(spec.InitContainers) == 0 {
		return nil, fmt.Errorf("decode ControllerRevision %s/%s: it has no containers", rev.Namespace, rev.Name)
	}
	return &inject.Revision{
		Set: rev.Labels[SetLabel], Name: rev.Name,
		Hash: rev.Annotations[v1alpha1.SidecarSetHashKey], HashWithoutImage: rev.Annotations[v1alpha1.SidecarSetHashWithoutImageKey],
		Containers: spec.Containers, InitContainers: spec.InitContainers, Volumes: spec.Volumes,
		ImagePullSecrets: spec.ImagePullSecrets, PatchPodMetadata: spec.PatchPodMetadata,
	}, nil
}

// Equal reports whether both revisions inject the same.
func Equal(a, b *appsv1.ControllerRevision) bool { return bytes.Equal(a.Data.Raw, b.Data.Raw) }

// NotFoundError means that a set names a revision that it does not have.
type NotFoundError struct {
	// Field is the path of the field, Value its value.
	Field, Value string
	// Others are the revisions or custom versions that the set has, ordered by age.
	Others []string
}

// Error describes what is allowed.
func (e *NotFoundError) Error() string {
	return e.Field + ": " + e.Reason()
}

// Reason describes the value and what is allowed.
func (e *NotFoundError) Reason() string {
	if len(e.Others) == 0 {
		return fmt.Sprintf("%q is not found: the set has none", e.Value)
	}
	return fmt.Sprintf("%q is not found: the set has %s", e.Value, strings.Join(e.Others, ", "))
}

// Kind returns the kind of the sets.
func Kind() schema.GroupVersionKind { return v1alpha1.GroupVersion().WithKind("SidecarSet") }

// Key returns the key of the set as the owner of its revisions. A set belongs to no namespace, and everybody may name
// it as the owner of an object: only those in the namespace of the program are its revisions.
func Key(set *v1alpha1.SidecarSet, namespace string) owner.Key {
	return owner.Of(Kind(), set).In(namespace)
}

// Named returns the revision that the injection strategy of the set names, or nil if it names none. The
// revisions may be those of any set and namespace. The error is a NotFoundError.
func Named(set *v1alpha1.SidecarSet, namespace string, revisions []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	named := set.Spec.InjectionStrategy.Revision
	if named == nil {
		return nil, nil //nolint:nilnil // No revision is named.
	}
	own := Of(set, namespace, revisions)
	missing := &NotFoundError{Field: "spec.injectionStrategy.revision.customVersion"}
	customVersion := func(rev *appsv1.ControllerRevision) string { return rev.Labels[v1alpha1.SidecarSetCustomVersionLabel] }
	switch {
	case named.RevisionName != nil && *named.RevisionName != "":
		missing.Field, missing.Value = "spec.injectionStrategy.revision.revisionName", *named.RevisionName
		customVersion = func(rev *appsv1.ControllerRevision) string { return rev.Name }
	case named.CustomVersion != nil:
		missing.Value = *named.CustomVersion
	}
	for _, rev := range slices.Backward(own) {
		if customVersion(rev) == missing.Value {
			return rev, nil
		}
	}
	for _, rev := range own {
		if value := customVersion(rev); value != "" && !slices.Contains(missing.Others, value) {
			missing.Others = append(missing.Others, value)
		}
	}
	return nil, missing
}

// Of returns the revisions of the set in the namespace, the newest last.
func Of(set *v1alpha1.SidecarSet, namespace string, revisions []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	var own []*appsv1.ControllerRevision
	key := Key(set, namespace)
	for _, rev := range revisions {
		if rev.Labels[SetLabel] == set.Name && key.Controls(rev) {
			own = append(own, rev)
		}
	}
	slices.SortFunc(own, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), strings.Compare(a.Name, b.Name))
	})
	return own
}

// Hashes returns the hashes of the containers with their defaults, as OpenKruise computes them. It counts init
// containers only if one of them is a native sidecar.
func Hashes(set *v1alpha1.SidecarSet) (full, withoutImages string, err error) {
	whole := set.DeepCopy()
	containers, inits := defaulted(whole.Spec.Containers, v1alpha1.BeforeAppContainerType), defaulted(whole.Spec.InitContainers, v1alpha1.AfterAppContainerType)
	if full, err = hash(containers, inits); err != nil {
		return "", "", fmt.Errorf("encode SidecarSet %s: %w", set.Name, err)
	}
	for _, list := range [][]v1alpha1.SidecarContainer{containers, inits} {
		for i := range list {
			list[i].Image = ""
		}
	}
	withoutImages, err = hash(containers, inits)
	return full, withoutImages, err
}

func hash(containers, inits []v1alpha1.SidecarContainer) (string, error) {
	content := map[string]any{"containers": containers}
	if slices.ContainsFunc(inits, func(c v1alpha1.SidecarContainer) bool { return inject.IsNative(&c) }) {
		content["initContainers"] = inits
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return "", err //nolint:wrapcheck // Hashes describes it.
	}
	return rand.SafeEncodeString(fmt.Sprintf("%x", sha256.Sum256(encoded))), nil
}

// containerDefaults returns the container with the defaults that OpenKruise sets: none of startup probes, requests,
// and services of gRPC.
func containerDefaults(c corev1.Container) corev1.Container {
	startup, requests := c.StartupProbe, maps.Clone(c.Resources.Requests)
	c.StartupProbe = nil
	whole := template.WithDefaults(&corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}).Spec.Containers[0]
	for _, probes := range [][2]*corev1.Probe{{c.LivenessProbe, whole.LivenessProbe}, {c.ReadinessProbe, whole.ReadinessProbe}} {
		if before := probes[0]; before != nil && before.GRPC != nil {
			probes[1].GRPC.Service = before.GRPC.Service
		}
	}
	whole.StartupProbe, whole.Resources.Requests = startup, requests
	return whole
}

// defaulted sets the defaults of the containers.
func defaulted(containers []v1alpha1.SidecarContainer, policy v1alpha1.PodInjectPolicyType) []v1alpha1.SidecarContainer {
	for i := range containers {
		c := &containers[i]
		c.PodInjectPolicy = cmp.Or(c.PodInjectPolicy, policy)
		c.UpgradeStrategy.UpgradeType = cmp.Or(c.UpgradeStrategy.UpgradeType, v1alpha1.SidecarContainerColdUpgrade)
		c.ShareVolumePolicy.Type = cmp.Or(c.ShareVolumePolicy.Type, v1alpha1.ShareVolumePolicyDisabled)
		for j := range c.TransferEnv {
			if from := c.TransferEnv[j].SourceContainerNameFrom; from != nil && from.FieldRef != nil {
				from.FieldRef.APIVersion = cmp.Or(from.FieldRef.APIVersion, "v1")
			}
		}
		c.Container = containerDefaults(c.Container)
	}
	return containers
}
