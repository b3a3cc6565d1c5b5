// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules checks manifests without a cluster: objects of all kinds that Seamark serves with the rules of their
// CustomResourceDefinitions, and markers for mistakes that the API accepts. It compares markers with each other and with the
// workloads and Services of the same manifests. It is pure: the findings depend only on the contents of the files, in any
// order of them.
package rules

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/internal/manifest/schema"
)

// Severity is how serious a finding is.
type Severity string

// The severities, the least serious one first.
const (
	// Info is a fact that is worth knowing.
	Info Severity = "info"
	// Warning is a probable mistake that the API accepts.
	Warning Severity = "warning"
	// Error is a manifest that the API server rejects or Seamark does not follow.
	Error Severity = "error"
)

// Severities returns all severities, the least serious one first.
func Severities() []Severity { return []Severity{Info, Warning, Error} }

// AtLeast reports whether the severity is the other one or more serious.
func (s Severity) AtLeast(other Severity) bool {
	return slices.Index(Severities(), s) >= slices.Index(Severities(), other)
}

// Finding is a problem of a manifest.
type Finding struct {
	// Severity is how serious the problem is, and Rule the name of the rule in Rules.
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule"`
	// File is the name of the file. Line and Column are counted from 1, the column in characters. They
	// are zero if they are unknown.
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Object is the kind and name of the object, such as "PodProbeMarker worker". It is empty if the
	// document is not an object.
	Object string `json:"object,omitempty"`
	// Field is the path of the field, such as spec.probes[0].name. It is empty for a whole document.
	Field string `json:"field,omitempty"`
	// Message describes the problem, with the value of the field.
	Message string `json:"message"`
	// Fix is what to do, or empty.
	Fix string `json:"fix,omitempty"`
}

// Place returns the file, with the line and the column if they are known.
func (f Finding) Place() string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
}

// Text returns the message with the field, and with the object if no line shows which one it is.
func (f Finding) Text() string {
	text := f.Message
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Line == 0 && f.Object != "" {
		text = f.Object + ": " + text
	}
	return text
}

// Err returns the place, the text and the fix as an error, for commands that cannot use the manifest.
func (f Finding) Err() error {
	if f.Fix == "" {
		return fmt.Errorf("%s: %s", f.Place(), f.Text())
	}
	return fmt.Errorf("%s: %s: %s", f.Place(), f.Text(), f.Fix)
}

// Result is the result of a check.
type Result struct {
	// Findings are ordered by file, line, column and rule.
	Findings []Finding
	// Objects is the number of Kubernetes objects in the files, and Checked how many of them have a
	// kind that Seamark serves, and are therefore checked.
	Objects, Checked int
}

// Linter checks files. It compiles each schema once, when it is first needed. The zero value is ready
// for use. It must not be used by several goroutines at the same time.
type Linter struct{ schemas schema.Set }

// Check checks the files. Objects in different files are compared with each other, as if all were
// applied to one cluster; a namespace that is not set is "default".
func (l *Linter) Check(ctx context.Context, files []document.File) Result {
	if l.schemas == nil {
		l.schemas = schema.Set{}
	}
	c := &checker{ctx: ctx, schemas: l.schemas}
	for _, file := range files {
		c.read(file)
	}
	c.compare()
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Rule, b.Rule), strings.Compare(a.Object, b.Object), strings.Compare(a.Field, b.Field),
			strings.Compare(a.Message, b.Message))
	})
	return Result{Findings: slices.Compact(c.findings), Objects: c.objects, Checked: c.checked}
}

// checker collects the objects and the findings.
type checker struct {
	ctx     context.Context
	schemas schema.Set

	markers   []*marker
	workloads []*workload
	services  []*service
	budgets   []*budget
	// sidecarSets are the sets, in the order of the files.
	sidecarSets []*sidecarSet
	// seen holds the first object of each kind, namespace and name.
	seen             map[string]*object
	objects, checked int
	findings         []Finding
}

// add adds a finding about a field of an object.
func (c *checker) add(rule Rule, o *object, field, message, fix string) {
	f := Finding{
		Severity: rule.Severity, Rule: rule.Name, File: o.file.Name, Object: o.String(), Field: field, Message: message, Fix: fix,
	}
	if !o.file.Generated {
		f.Line, f.Column = o.positions.Of(o.prefix + field)
	}
	c.findings = append(c.findings, f)
}
