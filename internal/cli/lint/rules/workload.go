// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/internal/manifest/apikind"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// workload is a Pod, or an object with a pod template.
type workload struct {
	*object
	// pod has the labels, the annotations and the spec of the pods.
	pod corev1.Pod
	// selector selects the pods of the workload. It is empty for a Pod.
	selector requirements
}

type service struct {
	*object
	selector map[string]string
}

// workload reads the pod template of an object of any kind, such as Deployments and the workloads of
// other projects.
func (c *checker) workload(o *object) {
	w := &workload{object: o}
	switch {
	case o.raw.GetKind() == "Pod" && o.raw.GetAPIVersion() == "v1":
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.raw.Object, &w.pod); err != nil {
			c.add(ruleTemplate, o, "spec", "not the spec of a pod: "+err.Error(), "")
			return
		}
	default:
		path := templatePath(o.raw)
		if path == nil {
			return
		}
		var template corev1.PodTemplateSpec
		fields, _, _ := unstructured.NestedMap(o.raw.Object, path...)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &template); err != nil {
			if _, checked := apikind.Types()[o.raw.GroupVersionKind()]; !checked {
				c.add(ruleTemplate, o, strings.Join(path, "."), "not a pod template: "+err.Error(), "")
			}
			return
		}
		w.pod.ObjectMeta, w.pod.Spec = template.ObjectMeta, template.Spec
		w.selector = selectorOf(o.raw)
	}
	w.pod.Namespace, w.pod.Name = o.namespace(), o.raw.GetName()
	c.workloads = append(c.workloads, w)
}

// preDownload checks the annotations about pulls before updates, of the kinds that Seamark serves and that have pods.
func (c *checker) preDownload(o *object) {
	if kind := kinds.ByGroupKind(o.raw.GroupVersionKind().GroupKind()); kind == nil || kind.Role != kinds.Set {
		return
	}
	if err := step.CheckAnnotations(o.raw.GetAnnotations()); err != nil {
		c.add(rulePreDownload, o, err.Field, err.ErrorBody(), "")
	}
}

// templatePath returns the path of the pod template, or nil if the object has none.
func templatePath(o *unstructured.Unstructured) []string {
	for _, path := range [][]string{
		{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}, {"spec", "template", "jobTemplate", "spec", "template"}, {
			"spec", "template", broadcastJobTemplate, "spec", "template",
		},
	} {
		containers, _, _ := unstructured.NestedFieldNoCopy(o.Object, append(append([]string{}, path...), "spec", "containers")...)
		if _, isList := containers.([]any); isList {
			return path
		}
	}
	return nil
}

// selectorOf returns the requirements of spec.selector, which is a map of labels in a
// ReplicationController. It is empty if it is invalid.
func selectorOf(o *unstructured.Unstructured) requirements {
	fields, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	var selector metav1.LabelSelector
	if o.GetKind() == "ReplicationController" {
		selector.MatchLabels, _, _ = unstructured.NestedStringMap(o.Object, "spec", "selector")
	} else if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return nil
	}
	return requirementsOf(&selector)
}
