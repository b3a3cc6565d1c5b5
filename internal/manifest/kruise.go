// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/manifest/apikind"
	crdschema "github.com/seamark-dev/seamark/internal/manifest/schema"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
)

// kruise adds a marker, a set that injects containers, or the pods of a set of the group, which is validated with its CRD.
func (r *reader) kruise(at Place, object *unstructured.Unstructured, encoded []byte) {
	if object.GetKind() == apikind.Marker {
		r.marker(at, object, encoded)
		return
	}
	kind := kinds.ByGroupKind(object.GroupVersionKind().GroupKind())
	if kind.Role == kinds.Injector {
		r.sidecarSet(at, object, encoded)
		return
	}
	written := object.DeepCopy()
	withImages(object, "spec", "template", "spec")
	of := whole(written, kind.New())
	valid := r.customResource(at, object, of)
	var set kruiseWorkload
	set.Spec.Template = json.RawMessage("{}")
	if kjson.UnmarshalCaseSensitivePreserveInts(encoded, &set) != nil {
		r.decode(at, of, encoded, &set, !valid)
		return
	}
	// No CRD defines the fields of the template.
	var template corev1.PodTemplateSpec
	of.path = "spec.template"
	if r.decode(at, of, set.Spec.Template, &template, !valid) && valid {
		r.workload(at, written, set.workload(kind, &template))
	}
}

// kruiseWorkload is what the workloads of OpenKruise have in common.
type kruiseWorkload struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas             *int32                         `json:"replicas"`
		Selector             *metav1.LabelSelector          `json:"selector"`
		Template             json.RawMessage                `json:"template"`
		Ordinals             *v1beta1.StatefulSetOrdinals   `json:"ordinals"`
		ReserveOrdinals      []intstr.IntOrString           `json:"reserveOrdinals"`
		VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
	} `json:"spec"`
}

func (k *kruiseWorkload) workload(kind *kinds.Kind, template *corev1.PodTemplateSpec) workload {
	spec := &k.Spec
	w := workload{
		meta: &k.ObjectMeta, replicas: spec.Replicas, selector: spec.Selector, template: template,
		path: field.NewPath("spec"), ids: ordinals(0), fixed: kind.PerNode,
	}
	switch kind.Kind {
	case "StatefulSet":
		w.claims, w.identify = spec.VolumeClaimTemplates, identifyOrdinal
		w.ids = func(pods int) []string {
			replicas := int32(pods) //nolint:gosec // At most MaxReplicas.
			var texts []string
			for _, ordinal := range statefulset.Ordinals(&v1beta1.StatefulSet{Spec: v1beta1.StatefulSetSpec{
				Replicas: &replicas, Ordinals: spec.Ordinals, ReserveOrdinals: spec.ReserveOrdinals,
			}}) {
				texts = append(texts, strconv.Itoa(ordinal))
			}
			return texts
		}
	case "CloneSet":
		w.claims, w.identify = spec.VolumeClaimTemplates, func(pod *corev1.Pod, id string) { pod.Labels[v1alpha1.CloneSetInstanceID] = id }
		// The namespace and name of the set replace its UID, so that the IDs are the same in every run.
		uid := types.UID(k.Namespace + "/" + k.Name)
		w.ids = func(pods int) []string {
			ids := make([]string, pods)
			for i := range ids {
				ids[i] = cloneset.InstanceID(uid, int64(i+1))
			}
			return ids
		}
	}
	return w
}

// withImages sets the images that the CRDs require, in the containers at a path. A local run pulls no images, so that manifests
// may omit them, as in the other workloads.
func withImages(object *unstructured.Unstructured, path ...string) {
	for _, name := range []string{"containers", "initContainers"} {
		value, _, _ := unstructured.NestedFieldNoCopy(object.Object, slices.Concat(path, []string{name})...)
		containers, _ := value.([]any)
		for _, each := range containers {
			if container, ok := each.(map[string]any); ok && container["image"] == nil {
				container["image"] = "none"
			}
		}
	}
}

// customResource validates an object with its CRD, and sets its defaults. It reports whether the object is valid. of is the object
// as it was written.
func (r *reader) customResource(at Place, object *unstructured.Unstructured, of part) bool {
	rules, err := r.schemas.Of(object.GroupVersionKind())
	if err != nil {
		r.addError(at, err)
		return false
	}
	errs := rules.Check(r.ctx, object.Object)
	for _, err := range errs {
		if err.Detail == crdschema.UnknownField {
			r.addError(at, of.unknown(err.Field))
		} else {
			r.addError(at, err)
		}
	}
	return len(errs) == 0
}
