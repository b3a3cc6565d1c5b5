// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// usage is the memory and CPU time of a process.
type usage struct {
	// rss and peak are the current and the maximum memory in bytes.
	rss, peak uint64
	cpu       time.Duration
}

func (p *program) usage() (usage, error) {
	process, err := procfs.NewProc(p.command.Process.Pid)
	if err != nil {
		return usage{}, fmt.Errorf("find manager: %w", err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return usage{}, fmt.Errorf("read memory of manager: %w", err)
	}
	stat, err := process.Stat()
	if err != nil {
		return usage{}, fmt.Errorf("read CPU time of manager: %w", err)
	}
	return usage{rss: status.VmRSS, peak: status.VmHWM, cpu: time.Duration(stat.CPUTime() * float64(time.Second))}, nil
}
