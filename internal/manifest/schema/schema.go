// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema validates objects with the rules of a CustomResourceDefinition, offline,
// as the API server does: unknown fields, the schema, unique keys of lists, and CEL rules. It also
// suggests the field that a misspelled one probably means.
package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// UnknownField is the detail of the error for an unknown field.
const UnknownField = "unknown field"

// Schema validates objects of one version of a kind. It is safe for concurrent use.
type Schema struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// New returns the rules of a version of a CustomResourceDefinition in YAML. It returns an
// error if the definition is invalid or does not have the version.
func New(definition []byte, version string) (*Schema, error) {
	var crd struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema json.RawMessage
				}
			}
		}
	}
	if err := yaml.Unmarshal(definition, &crd); err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition: %w", err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name != version || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		// The schemas of the other versions are not decoded, which takes as long as the rest.
		var versioned apiextensionsv1.JSONSchemaProps
		if err := json.Unmarshal(v.Schema.OpenAPIV3Schema, &versioned); err != nil {
			return nil, fmt.Errorf("read schema of CustomResourceDefinition %s: %w", crd.Name, err)
		}
		return compile(&versioned)
	}
	return nil, fmt.Errorf("CustomResourceDefinition %s has no schema for version %q", crd.Name, version)
}

func compile(versioned *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(versioned, &props, nil); err != nil {
		return nil, fmt.Errorf("convert schema: %w", err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("compile validation of schema: %w", err)
	}
	return &Schema{
		structural: structural,
		validator:  validator,
		rules:      cel.NewValidator(withoutTypes(structural), true, celconfig.PerCallLimit),
	}, nil
}

// withoutTypes returns the schema without the properties that its rules do not read: those that are generated from Go
// types, in parts that preserve unknown fields. They are nullable, which written ones are not. The compiler of rules would
// take most of the time for them.
func withoutTypes(s *schema.Structural) *schema.Structural {
	s = s.DeepCopy()
	(&schema.Visitor{Structural: func(s *schema.Structural) bool {
		if !s.XPreserveUnknownFields {
			return false
		}
		maps.DeleteFunc(s.Properties, func(_ string, property schema.Structural) bool { return property.Nullable })
		return true
	}}).Visit(s)
	return s
}

// Check sets the object's defaults and validates it. Each error names the field, its value
// if there is one, and the allowed values. The object's integers must be int64, as
// apimachinery decodes them.
func (s *Schema) Check(ctx context.Context, object map[string]any) field.ErrorList {
	unknown := pruning.PruneWithOptions(object, s.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	var errs field.ErrorList
	for _, path := range unknown {
		errs = append(errs, field.Invalid(field.NewPath(path), "", UnknownField))
	}
	defaulting.Default(object, s.structural)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	errs = append(errs, validation.ValidateCustomResource(nil, object, s.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(errs) > 0 {
		// CEL rules may require a valid object.
		return readable(errs, object)
	}
	errs, _ = s.rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return errs
}
