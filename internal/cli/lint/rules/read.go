// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest/document"
)

// maxListDepth bounds how deep lists of objects may contain lists.
const maxListDepth = 8

type object struct {
	file      document.File
	positions *document.Positions
	// prefix is the path of the object in its document, such as "items[1]." in a List.
	prefix string
	raw    *unstructured.Unstructured
}

// String returns the kind, the namespace unless it is the default one, and the name.
func (o *object) String() string {
	name := o.raw.GetName()
	if namespace := o.namespace(); namespace != metav1.NamespaceDefault {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(o.raw.GetKind() + " " + name)
}

func (o *object) namespace() string {
	if namespace := o.raw.GetNamespace(); namespace != "" {
		return namespace
	}
	return metav1.NamespaceDefault
}

// place returns the object with its file and line, for messages about other objects.
func (o *object) place() string {
	if o.file.Generated {
		return fmt.Sprintf("%s (%s)", o, o.file.Name)
	}
	line, _ := o.positions.Of(strings.TrimSuffix(o.prefix, "."))
	return fmt.Sprintf("%s (%s:%d)", o, o.file.Name, line)
}

func (c *checker) read(file document.File) {
	for _, d := range document.Split(file.Content) {
		if d.Err != nil {
			f := Finding{Severity: ruleYAML.Severity, Rule: ruleYAML.Name, File: file.Name, Message: oneLine(d.Err.Error())}
			if !file.Generated {
				f.Line, f.Column = d.ErrorLine(), 1
			}
			c.findings = append(c.findings, f)
			continue
		}
		o := &object{file: file, positions: d.Positions()}
		var content any
		if err := utiljson.Unmarshal(d.JSON, &content); err != nil {
			c.add(ruleYAML, o, "", oneLine(err.Error()), "")
			continue
		}
		c.value(o, content, 0)
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// value handles the value of a document, or an item of a List.
func (c *checker) value(o *object, content any, depth int) {
	fields, isMapping := content.(map[string]any)
	raw := &unstructured.Unstructured{Object: fields}
	o.raw = raw
	if !isMapping || raw.GetKind() == "" || raw.GetAPIVersion() == "" {
		if depth > 0 && isMapping || !o.file.Skips(content) {
			o.raw = &unstructured.Unstructured{}
			c.add(ruleNotAnObject, o, "", "not a Kubernetes object: must have apiVersion and kind", "")
		}
		return
	}
	items, isList := fields["items"].([]any)
	if !isList || !strings.HasSuffix(raw.GetKind(), "List") {
		c.object(o)
		return
	}
	if depth == maxListDepth {
		c.add(ruleNotAnObject, o, "items", fmt.Sprintf("more than %d lists inside each other", maxListDepth), "")
		return
	}
	for i, item := range items {
		c.value(&object{file: o.file, positions: o.positions, prefix: fmt.Sprintf("%sitems[%d].", o.prefix, i)}, item, depth+1)
	}
}

func (c *checker) object(o *object) {
	c.objects++
	if c.seen == nil {
		c.seen = map[string]*object{}
	}
	gk := o.raw.GroupVersionKind().GroupKind()
	if o.raw.GetName() != "" {
		key := fmt.Sprintf("%s/%s/%s", gk, o.namespace(), o.raw.GetName())
		if first, taken := c.seen[key]; taken {
			c.add(ruleDuplicateObject, o, "metadata.name", "the same object as "+first.place(),
				"remove one of them, or give it another name")
		} else {
			c.seen[key] = o
		}
	}
	c.checkKind(o)
	c.protection(o)
	check := hookOf(o).check
	switch {
	case o.raw.GetKind() == kindMarker:
		c.marker(o)
	case gk.Group == "" && gk.Kind == "Service":
		c.service(o)
	case gk.Group == "policy" && gk.Kind == "PodDisruptionBudget":
		c.budget(o)
	case check != nil:
		check(c, o)
	default:
		c.checkSchema(o)
		c.workload(o)
		c.preDownload(o)
	}
}

// marker reads a PodProbeMarker and checks it alone.
func (c *checker) marker(o *object) {
	if o.raw.GroupVersionKind().GroupVersion() != v1alpha1.GroupVersion() {
		return
	}
	selects := c.checkSchema(o)
	m := &marker{object: o}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.raw.Object, &m.spec); err != nil {
		// The schema has found the value.
		return
	}
	m.spec.Namespace = o.namespace()
	c.checkMarker(m, selects)
	if m.requirements = requirementsOf(m.spec.Spec.Selector); len(m.requirements) > 0 {
		c.markers = append(c.markers, m)
	}
}

// service reads the selector of a Service.
func (c *checker) service(o *object) {
	var s corev1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.raw.Object, &s); err == nil && len(s.Spec.Selector) > 0 {
		c.services = append(c.services, &service{object: o, selector: s.Spec.Selector})
	}
}

// checkMetadata checks the name, the namespace, the labels and the annotations.
func (c *checker) checkMetadata(o *object) {
	var meta metav1.PartialObjectMetadata
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": o.raw.Object["metadata"]}, &meta); err != nil {
		c.add(ruleMetadata, o, "metadata", err.Error(), "")
		return
	}
	meta.Namespace = o.namespace()
	for _, err := range apivalidation.ValidateObjectMeta(&meta.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")) {
		c.add(ruleMetadata, o, err.Field, err.ErrorBody(), "")
	}
}
