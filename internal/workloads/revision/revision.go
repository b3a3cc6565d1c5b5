// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package revision keeps the history of a set's pod template in ControllerRevisions. Names, numbers and
// contents are those of the built-in StatefulSet and of OpenKruise, so that a set can be taken over
// without a rollout. Two templates are the same revision if Kubernetes makes equal pods of them, not
// only if their bytes are equal: OpenKruise's webhook sets the defaults of fields.
package revision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"

	podtemplate "github.com/seamark-dev/seamark/internal/workloads/template"
)

const (
	// HashLabel is the label of a ControllerRevision whose value is the hash in its name.
	HashLabel = "controller.kubernetes.io/hash"

	// longestPrefix is the number of bytes of a set's name that fit in the name of a revision.
	longestPrefix = 223

	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// patch is the content of a ControllerRevision: a strategic merge patch of the set.
type patch struct {
	Spec struct {
		Template json.RawMessage `json:"template"`
	} `json:"spec"`
}

// Template returns the pod template that the revision records.
func Template(rev *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var p patch
	if err := json.Unmarshal(rev.Data.Raw, &p); err != nil {
		return nil, fmt.Errorf("decode ControllerRevision %s/%s: %w", rev.Namespace, rev.Name, err)
	}
	if len(p.Spec.Template) == 0 {
		return nil, fmt.Errorf("decode ControllerRevision %s/%s: no spec.template", rev.Namespace, rev.Name)
	}
	template := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(p.Spec.Template, template); err != nil {
		return nil, fmt.Errorf("decode ControllerRevision %s/%s: spec.template: %w", rev.Namespace, rev.Name, err)
	}
	return template, nil
}

// Encoder encodes the templates of one set. It remembers the last one: a set is planned much more often
// than its template changes, and to compare two templates takes a fraction of the time to encode one.
// The zero value remembers nothing. It is not safe for concurrent use.
type Encoder struct {
	template *corev1.PodTemplateSpec
	content  []byte
}

// encode returns the content of the revision that records the template, which must not change
// afterwards. A nil Encoder encodes each time.
func (e *Encoder) encode(template *corev1.PodTemplateSpec) ([]byte, error) {
	if e == nil {
		return Content(template)
	}
	if e.template == nil || !equality.Semantic.DeepEqual(e.template, template) {
		content, err := Content(template)
		if err != nil {
			return nil, err
		}
		e.content = content
	}
	e.template = template
	return e.content, nil
}

// Content returns the content of the revision that records the template, byte for byte as OpenKruise 1.9
// writes it: OpenKruise recreates the pods of a set if no revision has its bytes. The keys are sorted, and
// times that are not set are null, as the libraries of Kubernetes 1.32 write them. An error is one of the
// encoder.
func Content(template *corev1.PodTemplateSpec) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		return nil, fmt.Errorf("encode the pod template: %w", err)
	}
	addTime(fields)
	volumes, _, _ := unstructured.NestedFieldNoCopy(fields, "spec", "volumes")
	list, _ := volumes.([]any)
	for _, volume := range list {
		claim, ok, _ := unstructured.NestedFieldNoCopy(volume.(map[string]any), "ephemeral", "volumeClaimTemplate")
		if ok {
			addTime(claim.(map[string]any))
		}
	}
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// addTime adds the creation timestamp to the metadata of the object if it is not set.
func addTime(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	if _, set := metadata["creationTimestamp"]; !set {
		metadata["creationTimestamp"] = nil
	}
}

// Name returns the name of the revision of the owner with the content, and the hash in it.
func Name(owner string, content []byte, collisions int32) (name, sum string) {
	if len(owner) > longestPrefix {
		owner = owner[:longestPrefix]
	}
	sum = hash(content, collisions)
	return owner + "-" + sum, sum
}

// hash returns the hash of a content, with a safe alphabet and without "-".
func hash(content []byte, collisions int32) string {
	h := fnv.New32()
	_, _ = h.Write(content)
	_, _ = h.Write([]byte(strconv.FormatInt(int64(collisions), 10)))
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// Hash returns the hash in the name of a revision: what follows the last "-". It is the value of the
// label pod-template-hash of a CloneSet's pods.
func Hash(name string) string { return name[strings.LastIndexByte(name, '-')+1:] }

// Is reports whether the pod is of the revision with the name, by its label controller-revision-hash.
// The label may be the hash only: OpenKruise has a feature gate for it.
func Is(pod *corev1.Pod, name string) bool {
	label := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	return label != "" && (label == name || label == Hash(name))
}

// Of returns the revision of the pod, nil if it is not among the revisions.
func Of(pod *corev1.Pod, revisions []*appsv1.ControllerRevision) *appsv1.ControllerRevision {
	for _, rev := range revisions {
		if Is(pod, rev.Name) {
			return rev
		}
	}
	return nil
}

// storeContent remembers the content of the revision that records the template, so that the next comparison is
// one of bytes.
func (e *Encoder) storeContent(rev *appsv1.ControllerRevision) {
	if e != nil {
		e.content = rev.Data.Raw
	}
}

// Equal reports whether a revision records the template of the content, with or without defaults.
func Equal(existing *appsv1.ControllerRevision, content []byte) bool {
	if bytes.Equal(existing.Data.Raw, content) {
		return true
	}
	recorded, err := Template(existing)
	if err != nil {
		return false
	}
	template, err := Template(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: content}})
	return err == nil && podtemplate.Records(recorded, template)
}

// build returns the revision of the owner's template, with a number.
func build(owner *Owner, content []byte, collisions int32, number int64) *appsv1.ControllerRevision {
	name, sum := Name(owner.Object.GetName(), content, collisions)
	labels := maps.Clone(owner.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[HashLabel] = sum
	if owner.Labeled {
		labels[appsv1.ControllerRevisionHashLabelKey] = Hash(name)
	}
	annotations := maps.Clone(owner.Object.GetAnnotations())
	delete(annotations, lastApplied)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.Object.GetNamespace(), Name: name,
			Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner.Object, owner.Kind)},
		},
		Data:     runtime.RawExtension{Raw: content},
		Revision: number,
	}
}
