// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"strings"

	kindschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/config"
)

// Set has the schemas that were compiled. Compiling one can take a tenth of a second, so each is compiled
// when it is first needed. It must not be used by several goroutines at the same time.
type Set map[kindschema.GroupVersionKind]*Schema

// Of returns the schema of a kind. It returns an error if config/crd has no CustomResourceDefinition of it.
func (s Set) Of(kind kindschema.GroupVersionKind) (*Schema, error) {
	if compiled, ok := s[kind]; ok {
		return compiled, nil
	}
	compiled, err := New(config.Definition(strings.ToLower(kind.Kind)+"s."+kind.Group), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("load schema of %s: %w", kind.Kind, err)
	}
	s[kind] = compiled
	return compiled, nil
}
