// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/config/crd"
	crdschema "github.com/seamark-dev/seamark/internal/manifest/schema"
	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
)

// kruiseGroup is the API group of Seamark's workloads, which is that of OpenKruise.
const kruiseGroup = "apps.kruise.io"

// kruise adds the pods of a workload of the group. The kinds that seamark-workloads serves are
// validated with their CRDs.
func (r *reader) kruise(at location, object *unstructured.Unstructured, encoded []byte) {
	written := object.DeepCopy()
	withImages(object)
	switch object.GroupVersionKind() {
	case v1alpha1.GroupVersion().WithKind("CloneSet"):
		set := &v1alpha1.CloneSet{}
		if r.customResource(at, object, crd.CloneSets, set) && r.kruiseTemplate(at, written) {
			r.cloneSet(at, set, written)
		}
	case v1alpha1.GroupVersion().WithKind("StatefulSet"), v1beta1.GroupVersion().WithKind("StatefulSet"):
		set := &v1beta1.StatefulSet{}
		if r.customResource(at, object, crd.StatefulSets, set) && r.kruiseTemplate(at, written) {
			r.advancedStatefulSet(at, set, written)
		}
	default:
		r.otherKruise(at, object, encoded)
	}
}

// withImages sets the images that the CRDs require. A local run pulls no images, so that manifests
// may omit them, as in the other workloads.
func withImages(object *unstructured.Unstructured) {
	for _, field := range []string{"containers", "initContainers"} {
		value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "template", "spec", field)
		containers, _ := value.([]any)
		for _, each := range containers {
			if container, ok := each.(map[string]any); ok && container["image"] == nil {
				container["image"] = "none"
			}
		}
	}
}

func (r *reader) cloneSet(at location, set *v1alpha1.CloneSet, written *unstructured.Unstructured) {
	if !r.named(at, set) {
		return
	}
	r.checkFields(at, written, kruiseFields())
	r.workload(at, workload{
		meta: &set.ObjectMeta, replicas: set.Spec.Replicas, selector: set.Spec.Selector, template: &set.Spec.Template,
		claims: set.Spec.VolumeClaimTemplates,
		ids:    func(pods int) []string { return instanceIDs(&set.ObjectMeta, pods) },
		identify: func(pod *corev1.Pod, id string) {
			pod.Labels[v1alpha1.CloneSetInstanceID] = id
		},
	})
}

// instanceIDs returns the IDs of the first pods of a CloneSet. The namespace and name of the set
// replace its UID, so that the IDs are the same in every run.
func instanceIDs(meta *metav1.ObjectMeta, pods int) []string {
	uid, ids := types.UID(meta.Namespace+"/"+meta.Name), make([]string, pods)
	for i := range ids {
		ids[i] = cloneset.InstanceID(uid, int64(i+1))
	}
	return ids
}

func (r *reader) advancedStatefulSet(at location, set *v1beta1.StatefulSet, written *unstructured.Unstructured) {
	if !r.named(at, set) {
		return
	}
	r.checkFields(at, written, kruiseFields())
	r.workload(at, workload{
		meta: &set.ObjectMeta, replicas: set.Spec.Replicas, selector: set.Spec.Selector, template: &set.Spec.Template,
		claims: set.Spec.VolumeClaimTemplates, identify: identifyOrdinal,
		ids: func(pods int) []string {
			replicas := int32(pods) //nolint:gosec // At most MaxReplicas.
			sized := &v1beta1.StatefulSet{Spec: v1beta1.StatefulSetSpec{
				Replicas: &replicas, Ordinals: set.Spec.Ordinals, ReserveOrdinals: set.Spec.ReserveOrdinals,
			}}
			return numbers(statefulset.Ordinals(sized))
		},
	})
}

// kruiseWorkload is what the other workloads of OpenKruise have in common with the built-in ones.
type kruiseWorkload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas             *int32                         `json:"replicas"`
		Selector             *metav1.LabelSelector          `json:"selector"`
		Template             corev1.PodTemplateSpec         `json:"template"`
		Ordinals             *appsv1.StatefulSetOrdinals    `json:"ordinals"`
		VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
	} `json:"spec"`
}

// otherKruise adds the pods of a workload that only OpenKruise serves, such as a DaemonSet.
func (r *reader) otherKruise(at location, object *unstructured.Unstructured, encoded []byte) {
	var w kruiseWorkload
	if err := json.Unmarshal(encoded, &w); err != nil {
		addErrors(r, at, strictErrors(err))
		return
	}
	if !r.kruiseTemplate(at, object) || !r.named(at, &w) {
		return
	}
	r.checkFields(at, object, kruiseFields())
	common := workload{meta: &w.ObjectMeta, replicas: w.Spec.Replicas, selector: w.Spec.Selector, template: &w.Spec.Template}
	switch object.GetKind() {
	case "StatefulSet":
		first := 0
		if w.Spec.Ordinals != nil {
			first = int(w.Spec.Ordinals.Start)
		}
		common.ids, common.identify, common.claims = ordinals(first), identifyOrdinal, w.Spec.VolumeClaimTemplates
	case "CloneSet":
		common.claims = w.Spec.VolumeClaimTemplates
	case "DaemonSet":
		common.fixed = true
	}
	r.workload(at, common)
}

// kruiseTemplate checks the fields of the template, which no CRD defines, and reports whether all
// are known.
func (r *reader) kruiseTemplate(at location, object *unstructured.Unstructured) bool {
	template, _, _ := unstructured.NestedMap(object.Object, "spec", "template")
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(template, &corev1.PodTemplateSpec{}, true)
	if err == nil {
		return true
	}
	for _, err := range strictErrors(err) {
		r.addError(at, fmt.Errorf("spec.template: %w", crdschema.WithSuggestion(err, reflect.TypeFor[corev1.PodTemplateSpec]())))
	}
	return false
}

// customResource validates an object with its CRD, sets its defaults, and decodes it. It reports
// whether the object is valid.
func (r *reader) customResource(at location, object *unstructured.Unstructured, definition func() []byte, into runtime.Object) bool {
	rules, err := r.schemaOf(object.GroupVersionKind(), definition)
	if err != nil {
		r.addError(at, err)
		return false
	}
	if errs := rules.Check(r.ctx, object.Object); len(errs) > 0 {
		for _, err := range errs {
			if meant := crdschema.Suggestion(err.Field, reflect.TypeOf(into)); err.Detail == crdschema.UnknownField && meant != "" {
				err.Detail += fmt.Sprintf(": did you mean %q?", meant)
			}
		}
		addErrors(r, at, errs)
		return false
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		r.addError(at, err)
		return false
	}
	return true
}

// schemaOf returns the schema of a kind. Compiling it takes milliseconds, so it is compiled when
// the first object of the kind is read.
func (r *reader) schemaOf(kind schema.GroupVersionKind, definition func() []byte) (*crdschema.Schema, error) {
	if compiled, ok := r.schemas[kind]; ok {
		return compiled, nil
	}
	compiled, err := crdschema.New(definition(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("load schema of %s: %w", kind.Kind, err)
	}
	r.schemas[kind] = compiled
	return compiled, nil
}
