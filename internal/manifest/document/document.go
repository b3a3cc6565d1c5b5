// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package document splits manifests into their documents, converts them to JSON as kubectl does,
// and finds the line and column of a field.
package document

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// File is a manifest with any number of documents.
type File struct {
	// Name is the name in messages, such as the path.
	Name string
	// Content is the YAML or JSON.
	Content []byte
	// Generated is whether the lines of the content are not those of a file that the user wrote, as
	// for the result of a kustomization.
	Generated bool
	// Mixed is whether the file may have documents that are not Kubernetes objects.
	Mixed bool
}

// Objects returns the objects of the file, and the items of its lists. The error names the file.
func (f File) Objects() ([]*unstructured.Unstructured, error) {
	documents, err := Split(f.Content)
	var objects []*unstructured.Unstructured
	for _, d := range documents {
		if err = d.Err; err != nil {
			break
		}
		var decoded runtime.Object
		// The numbers of the objects are integers, as validation needs them.
		if decoded, _, err = unstructured.UnstructuredJSONScheme.Decode(d.JSON, nil, nil); err != nil {
			break
		}
		switch object := decoded.(type) {
		case *unstructured.Unstructured:
			objects = append(objects, object)
		case *unstructured.UnstructuredList:
			for i := range object.Items {
				objects = append(objects, &object.Items[i])
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return objects, nil
}

// Document is one document of a manifest in YAML or JSON.
type Document struct {
	// Number is the number of the document in its manifest, from 1. Empty documents do not count.
	Number int
	// JSON is the content of the document. It is nil if Err is set.
	JSON []byte
	// Err is why the document is not valid YAML or JSON, with a line of the manifest. Keys that occur
	// twice are errors, except for those that override a merge key.
	Err error

	// content is the document as it is in the manifest, and before the number of lines above it.
	content []byte
	before  int
}

// Split returns the documents of a manifest that are not empty.
func Split(content []byte) ([]Document, error) {
	content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var documents []Document
	for offset, lines := 0, 0; ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if errors.As(err, &utilyaml.YAMLSyntaxError{}) {
			end := wrongSeparator(content, offset)
			line := lines + bytes.Count(content[offset:max(offset, end-1)], []byte("\n")) + 1
			documents = append(documents, Document{
				Number: len(documents) + 1, Err: fmt.Errorf("invalid YAML: line %d: only a comment may follow --- in its line", line), before: lines,
			})
			offset, lines = end, line
			continue
		}
		if err != nil {
			return nil, err
		}
		start := offset + max(bytes.Index(content[offset:], bytes.TrimRight(text, "\n")), 0)
		lines += bytes.Count(content[offset:start], []byte("\n"))
		d := Document{Number: len(documents) + 1, content: withoutTabs(text), before: lines}
		end := min(start+len(text), len(content))
		lines += bytes.Count(content[start:end], []byte("\n"))
		offset = end
		d.JSON, err = toJSON(d.content)
		switch {
		case err != nil:
			d.Err = errors.New(shiftLines(err.Error(), d.before))
		case string(d.JSON) == "null":
			continue
		}
		documents = append(documents, d)
	}
}

// wrongSeparator returns the end of the first line from the offset that begins as a separator of documents, and
// has other text than a comment: the reader refuses it, with the document above it.
func wrongSeparator(content []byte, offset int) int {
	for line := range bytes.Lines(content[offset:]) {
		offset += len(line)
		rest, separates := bytes.CutPrefix(line, []byte("---"))
		if rest = bytes.TrimSpace(rest); separates && len(rest) > 0 && rest[0] != '#' {
			return offset
		}
	}
	return offset
}

// withoutTabs replaces the tabs of a JSON document by blanks, because YAML does not permit them
// between values. Valid JSON has no tabs elsewhere.
func withoutTabs(text []byte) []byte {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(trimmed) {
		return text
	}
	return bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
}

// ErrorLine returns the first line that Err names, or the first line of the document.
func (d Document) ErrorLine() int {
	if d.Err != nil {
		if match := lineNumber().FindString(d.Err.Error()); match != "" {
			if n, err := strconv.Atoi(strings.TrimPrefix(match, "line ")); err == nil {
				return n
			}
		}
	}
	return d.before + 1
}

func lineNumber() *regexp.Regexp { return regexp.MustCompile(`\bline \d+`) }

// shiftLines adds a number to the line numbers in the error of a YAML parser.
func shiftLines(text string, lines int) string {
	return lineNumber().ReplaceAllStringFunc(text, func(match string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(match, "line "))
		if err != nil {
			return match
		}
		return fmt.Sprintf("line %d", n+lines)
	})
}
