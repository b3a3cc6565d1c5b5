// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
)

// read decodes a YAML or JSON file that contains a C of the kind.
func read[C any](file, kind string) (*C, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return decode[C](content, kind)
}

// decode is strict: it rejects unknown fields, duplicate fields, and another kind or
// version. The errors contain the paths of fields.
func decode[C any](content []byte, kind string) (*C, error) {
	document, err := single(content)
	if err != nil {
		return nil, err
	}
	text, err := sigsyaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	var found metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &found); err != nil {
		return nil, err
	}
	if want := v1alpha1.GroupVersion().WithKind(kind); found.GroupVersionKind() != want {
		return nil, fmt.Errorf("apiVersion %q, kind %q: must be apiVersion %q, kind %q",
			found.APIVersion, found.Kind, want.GroupVersion(), want.Kind)
	}
	c := new(C)
	unknown, err := kjson.UnmarshalStrict(text, c)
	if err == nil && len(unknown) > 0 {
		err = runtime.NewStrictDecodingError(unknown)
	}
	return c, err
}

// single returns the only document of a file. A second document would be ignored silently.
func single(content []byte) ([]byte, error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var documents [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("split the file into documents: %w", err)
		}
		if !blank(document) {
			documents = append(documents, document)
		}
	}
	if len(documents) != 1 {
		return nil, fmt.Errorf("contains %d documents: must be 1", len(documents))
	}
	return documents[0], nil
}

// blank reports whether a document contains only comments.
func blank(document []byte) bool {
	for line := range bytes.Lines(document) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}
