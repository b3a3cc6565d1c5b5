// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probers builds the set of probers that runs every kind of probe. The agent and
// `seamark local` share it, so that a probe has the same result in both.
package probers

import (
	"github.com/seamark-dev/seamark/internal/probe"
	"github.com/seamark-dev/seamark/internal/probe/grpc"
	"github.com/seamark-dev/seamark/internal/probe/http"
	"github.com/seamark-dev/seamark/internal/probe/tcp"
)

// New returns a set with a prober for each of probe.Handlers. Commands run through exec,
// because where they run differs between an agent and a local run. Network probes send
// the user agent kube-probe/<version>.
func New(exec probe.Prober, version string) probe.Set {
	return probe.Set{
		probe.HandlerExec: exec,
		probe.HandlerHTTP: http.New(version),
		probe.HandlerTCP:  tcp.New(),
		probe.HandlerGRPC: grpc.New(version),
	}
}

// Through returns a set with a prober for each of the network handlers, whose connections are
// opened by the connector.
func Through(connector probe.Connector, version string) probe.Set {
	return probe.Set{
		probe.HandlerHTTP: http.Through(connector, version),
		probe.HandlerTCP:  tcp.Through(connector),
		probe.HandlerGRPC: grpc.Through(connector, version),
	}
}
