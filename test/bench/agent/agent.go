// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent measures the resources of the agent on a node with many pods: memory, processor
// time per probe by the difference of runs with and without it, calls of the container runtime,
// and writes while no state changes.
package agent

import (
	"time"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/bench/nodeload"
)

// The budgets on a node with maxPods pods.
const (
	// maxPods is the default limit of the kubelet.
	maxPods = 110
	// memoryMiB limits RSS.
	memoryMiB = 40
	// networkMS limits the processor time of a network probe, in milliseconds.
	networkMS = 0.2

	mebibyte = 1 << 20
)

// settle is how long the agent runs a plan before it is measured. This includes the first run of
// each probe, and the report and the events of its state.
const settle = 15 * time.Second

// Measures returns the measures in the order of the page.
func Measures() []harness.Measure {
	return []harness.Measure{simulated(), onCluster()}
}

// planned is one probe that every pod has.
type planned struct {
	handler probe.Handler
	// period is in seconds.
	period int32
	// floor is the kind of the floor.
	floor string
}

// probes returns the probes of every pod.
func probes() []planned {
	return []planned{
		{handler: probe.HandlerTCP, period: 1, floor: nodeload.KindTCP},
		{handler: probe.HandlerHTTP, period: 5, floor: nodeload.KindHTTP},
		{handler: probe.HandlerExec, period: 10, floor: nodeload.KindExec},
	}
}

// rate returns how often per second the probe runs on a node.
func (p planned) rate(pods int) float64 { return float64(pods) / float64(p.period) }
