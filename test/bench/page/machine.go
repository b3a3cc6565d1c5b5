// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

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
	if changed := output("git", "status", "--porcelain", "--", ".", ":!docs/performance.md", ":!docs/performance", ":!docs/reliability.md", ":!docs/zh/reliability.md"); len(bytes.TrimSpace(changed)) > 0 {
		m.Commit += " with changes"
	}
	var kilobytes float64
	if _, err := fmt.Sscan(field(read("/proc/meminfo"), `MemTotal:\s*(\d+)`), &kilobytes); err == nil {
		m.Memory = fmt.Sprintf("%.0f GiB", kilobytes/(1<<20))
	}
	return m
}
