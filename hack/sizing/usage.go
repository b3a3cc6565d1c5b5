// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// usage is what a process holds and has used.
type usage struct {
	// rss and peak are bytes of memory, now and at most so far.
	rss, peak uint64
	cpu       time.Duration
}

func (p *program) usage() (usage, error) {
	process, err := procfs.NewProc(p.command.Process.Pid)
	if err != nil {
		return usage{}, fmt.Errorf("find the manager: %w", err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return usage{}, fmt.Errorf("read the manager's memory: %w", err)
	}
	stat, err := process.Stat()
	if err != nil {
		return usage{}, fmt.Errorf("read the manager's CPU time: %w", err)
	}
	return usage{rss: status.VmRSS, peak: status.VmHWM, cpu: time.Duration(stat.CPUTime() * float64(time.Second))}, nil
}
