// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page writes the results of the benchmark: a file with all values, and the generated
// blocks of docs/performance.md and docs/performance.
package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
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

// Name is the page with the summary and the machine. The tables of the measures are in the pages of the
// folder performance.
const Name = "performance.md"

// Pages are the texts of pages by their paths below docs.
type Pages map[string][]byte

// Read reads the pages in the folder docs.
func Read(docs string) (Pages, error) {
	paths, err := filepath.Glob(filepath.Join(docs, "performance", "*.md"))
	if err != nil {
		return nil, fmt.Errorf("list pages: %w", err)
	}
	pages := Pages{}
	for _, path := range append(paths, filepath.Join(docs, Name)) {
		name, err := filepath.Rel(docs, path)
		if err != nil {
			return nil, fmt.Errorf("name of page: %w", err)
		}
		if pages[name], err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("read page: %w", err)
		}
	}
	return pages, nil
}

// Write writes the pages into the folder docs.
func (p Pages) Write(docs string) error {
	for name, text := range p {
		if err := os.WriteFile(filepath.Join(docs, name), text, 0o644); err != nil { //nolint:gosec // Pages are not secret.
			return fmt.Errorf("write page: %w", err)
		}
	}
	return nil
}

// blockPattern matches a generated block: its name and its content.
var blockPattern = regexp.MustCompile(`(?s)<!-- generated: ([a-z0-9/-]+) -->\n(.*?)<!-- end -->`)

// Render returns the pages with the blocks of all measures that have records. Every measure must have a
// block in a page, and another one if it has charts. Blocks of other measures stay as they are, and the summary
// has their values too.
func Render(pages Pages, measures []harness.Measure, records Records) (Pages, error) {
	blocks := map[string]string{"machine": machineBlock(measures, records)}
	var required []string
	for _, m := range measures {
		required = append(required, m.Name)
		record, has := records[m.Name]
		if has {
			blocks[m.Name] = measureBlock(record)
		}
		if charts := record.Output.Charts; len(charts) > 0 {
			required = append(required, m.Name+"/curves")
			blocks[m.Name+"/curves"] = Curves(charts)
		}
	}
	rendered, present := pages.replace(blocks)
	for _, name := range required {
		if _, has := present[name]; !has {
			return nil, fmt.Errorf("no page has the block <!-- generated: %s -->", name)
		}
	}
	rendered, _ = rendered.replace(map[string]string{"summary": summaryBlock(measures, present, records)})
	return rendered, nil
}

// replace returns the pages with other contents of blocks, and the contents of all blocks then.
func (p Pages) replace(blocks map[string]string) (replaced Pages, present map[string]string) {
	replaced, present = Pages{}, map[string]string{}
	for name, page := range p {
		var found map[string]string
		replaced[name], found = Replace(page, blocks)
		maps.Copy(present, found)
	}
	return replaced, present
}

// Replace returns the page with other contents of generated blocks, and the contents of all its blocks then, by their names.
func Replace(page []byte, blocks map[string]string) (replaced []byte, present map[string]string) {
	present = map[string]string{}
	replaced = blockPattern.ReplaceAllFunc(page, func(old []byte) []byte {
		found := blockPattern.FindSubmatch(old)
		block := string(found[1])
		content, has := blocks[block]
		if !has {
			present[block] = string(found[2])
			return old
		}
		present[block] = content
		return fmt.Appendf(nil, "<!-- generated: %s -->\n%s\n<!-- end -->", block, strings.TrimSpace("\n"+content))
	})
	return replaced, present
}

// Machine describes where the results come from.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Memory     string `json:"memory"`
	Kernel     string `json:"kernel"`
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	Go         string `json:"go"`
	Commit     string `json:"commit"`
	Date       string `json:"date"`
}

// Describe describes this machine, the programs of the API server in the folder bin, and the
// commit of the module in root. What is not known is "unknown".
func Describe(ctx context.Context, root, bin, date string) Machine {
	const unknown = "unknown"
	field := func(text []byte, pattern string) string {
		if m := regexp.MustCompile(pattern).FindSubmatch(text); m != nil {
			return strings.TrimSpace(string(m[1]))
		}
		return unknown
	}
	output := func(name string, args ...string) []byte {
		command := exec.CommandContext(ctx, name, args...)
		command.Dir = root
		out, err := command.Output()
		if err != nil {
			return nil
		}
		return out
	}
	read := func(path string) []byte {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		return text
	}
	m := Machine{
		CPU:        field(read("/proc/cpuinfo"), `(?m)^model name\s*:\s*(.+)$`),
		Cores:      runtime.NumCPU(),
		Memory:     unknown,
		Kernel:     field(output("uname", "-sr"), `(.+)`),
		Kubernetes: field(output(filepath.Join(bin, "kube-apiserver"), "--version"), `Kubernetes v?(\S+)`),
		Etcd:       field(output(filepath.Join(bin, "etcd"), "--version"), `etcd Version: (\S+)`),
		Go:         strings.TrimPrefix(runtime.Version(), "go"),
		Commit:     field(output("git", "rev-parse", "--short=10", "HEAD"), `(\S+)`),
		Date:       date,
	}
	// The pages are an output of the run.
	if changed := output(
		"git", "status", "--porcelain", "--", ".", ":!docs/performance.md", ":!docs/performance", ":!docs/reliability.md", ":!docs/zh/reliability.md",
	); len(bytes.TrimSpace(changed)) > 0 {
		m.Commit += " with changes"
	}
	var kilobytes float64
	if _, err := fmt.Sscan(field(read("/proc/meminfo"), `MemTotal:\s*(\d+)`), &kilobytes); err == nil {
		m.Memory = fmt.Sprintf("%.0f GiB", kilobytes/(1<<20))
	}
	return m
}
