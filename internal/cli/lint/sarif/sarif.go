// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sarif writes findings in the Static Analysis Results Interchange Format 2.1.0, which code
// hosts show next to the lines of a change.
package sarif

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/seamark-dev/seamark/internal/cli/lint"
)

const (
	version        = "2.1.0"
	schemaURI      = "https://json.schemastore.org/sarif-2.1.0.json"
	informationURI = "https://github.com/seamark-dev/seamark"
)

type document struct {
	Schema  string `json:"$schema"`
	Version string `json:"version"`
	Runs    []run  `json:"runs"`
}

type run struct {
	Tool       tool     `json:"tool"`
	Results    []result `json:"results"`
	ColumnKind string   `json:"columnKind"`
}

type tool struct {
	Driver driver `json:"driver"`
}

type driver struct {
	Name           string `json:"name"`
	Version        string `json:"version,omitempty"`
	InformationURI string `json:"informationUri"`
	Rules          []rule `json:"rules"`
}

type rule struct {
	ID                   string        `json:"id"`
	ShortDescription     text          `json:"shortDescription"`
	DefaultConfiguration configuration `json:"defaultConfiguration"`
}

type text struct {
	Text string `json:"text"`
}

type configuration struct {
	Level string `json:"level"`
}

type result struct {
	RuleID    string     `json:"ruleId"`
	RuleIndex int        `json:"ruleIndex"`
	Level     string     `json:"level"`
	Message   text       `json:"message"`
	Locations []location `json:"locations"`
	// Suppressions is set in all results or in none: an empty list means that the result is not suppressed.
	Suppressions []suppression `json:"suppressions,omitzero"`
}

type suppression struct {
	// Kind is external: no comment in the file suppresses the result.
	Kind          string `json:"kind"`
	Justification string `json:"justification"`
}

type location struct {
	Physical physical  `json:"physicalLocation"`
	Logical  []logical `json:"logicalLocations,omitempty"`
}

type physical struct {
	Artifact artifact `json:"artifactLocation"`
	Region   *region  `json:"region,omitempty"`
}

type artifact struct {
	URI string `json:"uri"`
}

type region struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
}

// logical is the object and the field.
type logical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
}

// Log is the result of one run of seamark.
type Log struct {
	// Findings are the findings that count.
	Findings []lint.Finding
	// Suppressed are the findings of ignored rules. It is nil if no rule is ignored.
	Suppressed []lint.Finding
	// Version is the version of seamark.
	Version string
}

// Write writes the log.
func (l Log) Write(w io.Writer) error {
	driver := driver{Name: "seamark lint", Version: l.Version, InformationURI: informationURI}
	index := map[string]int{}
	for i, r := range lint.Rules() {
		index[r.Name] = i
		driver.Rules = append(driver.Rules, rule{
			ID: r.Name, ShortDescription: text{r.Summary}, DefaultConfiguration: configuration{level(r.Severity)},
		})
	}
	results := make([]result, 0, len(l.Findings)+len(l.Suppressed))
	add := func(f lint.Finding, suppressions []suppression) {
		results = append(results, result{
			RuleID: f.Rule, RuleIndex: index[f.Rule], Level: level(f.Severity), Message: text{message(f)}, Locations: []location{locationOf(f)},
			Suppressions: suppressions,
		})
	}
	var none []suppression
	if l.Suppressed != nil {
		none = []suppression{}
	}
	for _, f := range l.Findings {
		add(f, none)
	}
	for _, f := range l.Suppressed {
		add(f, []suppression{{Kind: "external", Justification: "--ignore " + f.Rule}})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(document{
		Schema: schemaURI, Version: version,
		Runs: []run{{Tool: tool{driver}, Results: results, ColumnKind: "unicodeCodePoints"}},
	})
	if err != nil {
		return fmt.Errorf("write SARIF: %w", err)
	}
	return nil
}

// level returns the level of a severity.
func level(s lint.Severity) string {
	if s == lint.Info {
		return "note"
	}
	return string(s)
}

// message returns the field, the message and the fix: most programs show nothing else.
func message(f lint.Finding) string {
	text := f.Message
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Fix != "" {
		text += ". Fix: " + f.Fix
	}
	return text
}

func locationOf(f lint.Finding) location {
	l := location{Physical: physical{Artifact: artifact{uri(f.File)}}}
	if f.Line > 0 {
		l.Physical.Region = &region{StartLine: f.Line, StartColumn: f.Column}
	}
	if name := strings.TrimSpace(f.Object + " " + f.Field); name != "" {
		l.Logical = []logical{{name}}
	}
	return l
}

// uri returns a relative reference for a relative path, and a file URI for an absolute one.
func uri(file string) string {
	path := filepath.ToSlash(file)
	if filepath.IsAbs(file) {
		return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(path, "/")}).String()
	}
	return (&url.URL{Path: strings.TrimPrefix(path, "./")}).String()
}
