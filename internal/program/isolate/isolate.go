// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package isolate decodes custom resources one by one, so that an object that does not fit its Go type does not make
// others unreadable. API servers store such objects if the schema of their CRD is older, or that of OpenKruise. A
// decoder returns them without the fields that do not fit, and with a record of what does not, which Of returns:
// whoever plans for an object asks for it first.
package isolate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	// annotation has the record in an isolated object in memory. It is never stored, and never read from the API server.
	annotation = "seamark.dev/undecodable"
	// maxFaults is the number of faults in a record.
	maxFaults = 3
	// maxPath, maxKey and maxValue bound what a record quotes from an object, in bytes.
	maxPath, maxKey, maxValue = 400, 80, 80
)

// Fault is a value that does not fit its type.
type Fault struct {
	// Path is where it is, such as spec.template.metadata.annotations["prometheus.io/port"].
	Path string `json:"path"`
	// Value is the value, quoted and cut, and Want is what is expected.
	Value string `json:"value"`
	Want  string `json:"want"`

	// root are the names of the first two fields of the path.
	root [2]string
}

func (f Fault) String() string { return fmt.Sprintf("%s: %s, want %s", f.Path, f.Value, f.Want) }

// Record is why an object cannot be decoded. It is an error.
type Record struct {
	// Faults are the first faults, at least one.
	Faults []Fault `json:"faults"`
	// More is the number of the others.
	More int `json:"more,omitempty"`
	// Missing are the fields, such as spec.template, that the isolated object does not have.
	Missing []string `json:"missing,omitempty"`
}

// Error returns the faults, and how to repair the object.
func (r *Record) Error() string {
	var all []string
	for _, fault := range r.Faults {
		all = append(all, fault.String())
	}
	if r.More > 0 {
		all = append(all, fmt.Sprintf("and %d more", r.More))
	}
	return strings.Join(all, "; ") + ". Correct it with kubectl edit or kubectl replace: server-side apply does not work on this object."
}

// Lacks reports whether the isolated object does not have the field, such as spec.template.
func (r *Record) Lacks(field string) bool {
	root, _, _ := strings.Cut(field, ".")
	return slices.Contains(r.Missing, field) || slices.Contains(r.Missing, root)
}

// Spec reports whether anything but the status does not fit.
func (r *Record) Spec() bool {
	return slices.ContainsFunc(r.Missing, func(field string) bool { return field != "status" && !strings.HasPrefix(field, "status.") })
}

// Of returns why the object is isolated, or nil if it has been decoded as a whole.
func Of(object metav1.Object) *Record {
	encoded, found := object.GetAnnotations()[annotation]
	if !found {
		return nil
	}
	record := &Record{}
	// It has been encoded by this package.
	_ = json.Unmarshal([]byte(encoded), record)
	return record
}

// Same reports whether two versions of an object have the same record.
func Same(a, b metav1.Object) bool {
	return a.GetAnnotations()[annotation] == b.GetAnnotations()[annotation]
}

// Stored returns the annotations that the API server has.
func Stored(object metav1.Object) map[string]string {
	all := object.GetAnnotations()
	if _, found := all[annotation]; !found {
		return all
	}
	all = maps.Clone(all)
	delete(all, annotation)
	return all
}

// record puts the record into the object, of which the missing fields have been removed.
func record(object metav1.Object, faults []Fault, missing []string) {
	r := Record{Faults: faults[:min(len(faults), maxFaults)], More: max(0, len(faults)-maxFaults), Missing: missing}
	// Strings always encode.
	encoded, _ := json.Marshal(r)
	put(object, string(encoded))
}

func put(object metav1.Object, encoded string) {
	annotations := map[string]string{annotation: encoded}
	for key, value := range object.GetAnnotations() {
		if key != annotation {
			annotations[key] = value
		}
	}
	object.SetAnnotations(annotations)
}

// clean removes what only this package writes from an object of the API server.
func clean(object metav1.Object) { delete(object.GetAnnotations(), annotation) }

// quote returns a JSON value as it is shown.
func quote(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("%q is a string", cut(v, maxValue))
	case json.Number:
		return cut(v.String(), maxValue) + " is a number"
	case bool:
		return fmt.Sprintf("%t is a boolean", v)
	case []any:
		return "is a list"
	case map[string]any:
		return "is an object"
	default:
		return "is null"
	}
}

// cut returns the text, or its beginning.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return text.Truncate(s, limit) + "..."
}
