// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package document splits manifests into their documents, converts them to JSON as kubectl does,
// and finds the line and column of a field.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	// Mixed is whether the file may have documents that are not Kubernetes objects: see Skips.
	Mixed bool
}

// Skips reports whether a document with the value is ignored: it is not a Kubernetes object, and the file may have others. A
// mapping with a kind and metadata was meant as an object, and so was a marker.
func (f File) Skips(value any) bool {
	fields, isMapping := value.(map[string]any)
	if !f.Mixed || !isMapping {
		return f.Mixed
	}
	kind, _ := fields["kind"].(string)
	version, _ := fields["apiVersion"].(string)
	_, hasMetadata := fields["metadata"].(map[string]any)
	return kind == "" || version == "" && !hasMetadata && kind != "PodProbeMarker"
}

// Objects returns the objects of the file, and the items of its lists, without the documents that it skips. The error names the
// file.
func (f File) Objects() ([]*unstructured.Unstructured, error) {
	var err error
	var objects []*unstructured.Unstructured
	for _, d := range Split(f.Content) {
		if err = d.Err; err != nil {
			break
		}
		var value any
		if json.Unmarshal(d.JSON, &value) == nil && f.Skips(value) {
			continue
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

// separator begins the line between two documents.
const separator = "---"

// Split returns the documents of a manifest that are not empty. They are separated as kubectl separates
// them.
func Split(content []byte) []Document {
	content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	var documents []Document
	// above is the number of lines above the document, which starts at start.
	start, end, above, lines := 0, 0, 0, 0
	for line := range bytes.Lines(content) {
		lines++
		rest, separates := bytes.CutPrefix(line, []byte(separator))
		if separates {
			if rest = bytes.TrimSpace(rest); len(rest) > 0 && rest[0] != '#' {
				// It hides the document above it, as for kubectl.
				documents = append(documents, Document{
					Number: len(documents) + 1, Err: fmt.Errorf("invalid YAML: line %d: only a comment may follow --- in its line", lines), before: above,
				})
			} else {
				documents = add(documents, content[start:end], above)
			}
			start, above = end+len(line), lines
		}
		end += len(line)
	}
	return add(documents, content[start:], above)
}

// add adds the document, unless it is empty.
func add(documents []Document, text []byte, above int) []Document {
	if len(text) == 0 {
		return documents
	}
	var err error
	d := Document{Number: len(documents) + 1, content: withoutTabs(text), before: above}
	d.JSON, err = toJSON(d.content)
	switch {
	case err != nil:
		d.Err = errors.New(shiftLines(err.Error(), d.before))
	case string(d.JSON) == "null":
		return documents
	}
	return append(documents, d)
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
		if _, line, _, found := cutLine(d.Err.Error()); found {
			return line
		}
	}
	return d.before + 1
}

// shiftLines adds a number to the line numbers in the error of a YAML parser.
func shiftLines(text string, lines int) string {
	var shifted strings.Builder
	for {
		before, line, after, found := cutLine(text)
		if !found {
			return shifted.String() + text
		}
		fmt.Fprintf(&shifted, "%sline %d", before, line+lines)
		text = after
	}
}

// cutLine returns the first number of a line in an error, and the texts before and after it.
func cutLine(text string) (before string, line int, after string, found bool) {
	const word = "line "
	for at := 0; ; at += len(word) {
		next := strings.Index(text[at:], word)
		if next < 0 {
			return "", 0, "", false
		}
		at += next
		rest := text[at+len(word):]
		after = strings.TrimLeft(rest, "0123456789")
		n, err := strconv.Atoi(rest[:len(rest)-len(after)])
		// A longer word ends in the same letters.
		if err == nil && (at == 0 || !unicode.IsLetter(rune(text[at-1]))) {
			return text[:at], n, after, true
		}
	}
}
