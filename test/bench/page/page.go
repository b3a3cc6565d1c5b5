// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page writes the results of the benchmark: a file with all values, the generated
// blocks of docs/performance.md, and the pictures of the curves.
package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/seamark-dev/seamark/test/bench/harness"
)

// Record is the last result of a measure.
type Record struct {
	// Machine is where and when the measure ran.
	Machine Machine        `json:"machine"`
	Output  harness.Output `json:"output"`
	// Failed is the date of a later run that failed, or empty.
	Failed string `json:"failed,omitempty"`
}

// measured reports whether the record has results.
func (r Record) measured() bool { return len(r.Output.Results) > 0 }

// Records are the results by the names of the measures.
type Records map[string]Record

// Load reads the results of earlier runs. A missing file is empty.
func Load(path string) (Records, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Records{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	records := Records{}
	if err := json.Unmarshal(text, &records); err != nil {
		return nil, fmt.Errorf("parse results %s: %w", path, err)
	}
	return records, nil
}

// Add records a run of the measure. If it failed, the earlier results stay.
func (r Records) Add(measure string, machine Machine, output harness.Output, failed bool) {
	if failed {
		record := r[measure]
		record.Failed = machine.Date
		r[measure] = record
		return
	}
	r[measure] = Record{Machine: machine, Output: output}
}

// Save writes the results.
func (r Records) Save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // Results are not secret.
	}
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// Files are the contents of generated files, by the path relative to the folder docs.
type Files map[string][]byte

// Write writes the files below a folder.
func (f Files) Write(docs string) error {
	for name, content := range f {
		path := filepath.Join(docs, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("create folder for %s: %w", name, err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // Documents are public.
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// Name is the file name of the page.
const Name = "performance.md"

// blockPattern matches a generated block: its name and its content.
var blockPattern = regexp.MustCompile(`(?s)<!-- generated: ([a-z0-9/-]+) -->\n(.*?)<!-- end -->`)

// Render returns the page with the blocks of all measures that have records, and the pictures.
// Every measure must have a block in the page. Blocks of other measures stay as they are.
func Render(page []byte, measures []harness.Measure, records Records) (Files, error) {
	blocks, files := map[string]string{}, Files{}
	for _, m := range measures {
		record, has := records[m.Name]
		if !has {
			continue
		}
		blocks[m.Name] = measureBlock(record)
		for _, chart := range record.Output.Charts {
			for _, theme := range themes() {
				picture, err := paint(chart, theme)
				if err != nil {
					return nil, fmt.Errorf("chart %s: %w", chart.Name, err)
				}
				files[imageName(chart, theme)] = picture
			}
		}
	}
	blocks["machine"] = machineBlock(measures, records)
	blocks["summary"] = summaryBlock(measures, records)
	var present []string
	files[Name] = blockPattern.ReplaceAllFunc(page, func(old []byte) []byte {
		name := string(blockPattern.FindSubmatch(old)[1])
		present = append(present, name)
		content, has := blocks[name]
		if !has {
			return old
		}
		return fmt.Appendf(nil, "<!-- generated: %s -->\n%s\n<!-- end -->", name, strings.TrimSpace("\n"+content))
	})
	for _, m := range measures {
		if !slices.Contains(present, m.Name) {
			return nil, fmt.Errorf("%s has no block <!-- generated: %s -->", Name, m.Name)
		}
	}
	return files, nil
}
