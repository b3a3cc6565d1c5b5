// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/internal/manifest/apikind"
	"github.com/seamark-dev/seamark/internal/manifest/schema"
)

// checkSchema checks an object with its CustomResourceDefinition, if it has one. It reports whether
// the API server accepts it, apart from labels in the selector of a marker.
func (c *checker) checkSchema(o *object) bool {
	gvk := o.raw.GroupVersionKind()
	fields, isKnown := apikind.Types()[gvk]
	if !isKnown {
		return true
	}
	c.checked++
	before := len(c.findings)
	c.checkMetadata(o)
	rules, err := c.schemas.Of(gvk)
	if err != nil {
		c.add(ruleSchema, o, "", err.Error(), "")
		return false
	}
	// The check sets defaults, and findings are about what the user wrote.
	for _, err := range rules.Check(c.ctx, o.raw.DeepCopy().Object) {
		c.schemaError(o, fields, err)
	}
	path, template := []string{"spec", "template"}, any(&corev1.PodTemplateSpec{})
	if of := hookOf(o).template; of != nil {
		path, template = of(c, o)
	}
	if given, found, _ := unstructured.NestedMap(o.raw.Object, path...); found {
		c.checkTemplate(o, fields, strings.Join(path, "."), given, template, len(c.findings) == before)
	}
	return len(c.findings) == before
}

// schemaError adds the finding for an error of the schema.
func (c *checker) schemaError(o *object, fields reflect.Type, err *field.Error) {
	switch {
	case err.Detail == schema.UnknownField:
		c.addUnknown(ruleUnknownField, o, fields, err.Field)
	case o.raw.GetKind() == kindMarker && strings.HasSuffix(err.Detail, "the marker would change which pods it selects"):
		// The rule mark-in-selector names the key.
	case strings.HasPrefix(err.Field, "metadata."):
		// checkMetadata has found it.
	default:
		fix := ""
		if line, isText := err.BadValue.(string); isText && err.Detail == schema.NotAList {
			fix = "use " + flow(splitOrShell(line))
		}
		if detail, suggestion, found := strings.Cut(err.Detail, ": write "); found {
			err.Detail, fix = detail, "write "+suggestion
		}
		c.add(ruleSchema, o, strings.TrimPrefix(err.Field, "<nil>"), err.ErrorBody(), fix)
	}
}

// checkTemplate checks the fields of a template of pods or Jobs that no CustomResourceDefinition defines, by decoding
// them into the template. typed is whether those that it defines have the right types. of is the type of the kind.
func (c *checker) checkTemplate(o *object, of reflect.Type, path string, fields map[string]any, template any, typed bool) {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, template, true)
	if err == nil {
		return
	}
	strict, isStrict := runtime.AsStrictDecodingError(err)
	if !isStrict {
		if typed {
			c.add(ruleTemplate, o, path, "not a valid template: "+err.Error(), "")
		}
		return
	}
	for _, err := range strict.Errors() {
		if name, isUnknown := schema.UnknownFieldIn(err); isUnknown {
			c.addUnknown(ruleTemplate, o, of, path+"."+name)
		} else {
			c.add(ruleTemplate, o, path, err.Error(), "")
		}
	}
}

// addUnknown adds a finding about a field that an object of the type does not have.
func (c *checker) addUnknown(rule Rule, o *object, of reflect.Type, path string) {
	value, _ := schema.ValueAt(o.raw.Object, path)
	c.add(rule, o, path, schema.UnknownField, schema.Advice(path, of, value))
}
