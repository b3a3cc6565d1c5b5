// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probers builds the set of probers that runs every kind of probe. The agent and
// `seamark local` share it, so that a probe has the same result in both.
package probers

import (
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/grpc"
	"github.com/seamark-dev/seamark/internal/probing/http"
	"github.com/seamark-dev/seamark/internal/probing/slots"
	"github.com/seamark-dev/seamark/internal/probing/tcp"
)

// NetworkSlots is how many network probes run at a time. A probe in flight needs at most 512 KiB of
// memory, whatever the server sends, so all of them need at most 128 MiB.
const NetworkSlots = 256

// New returns a set with a prober for each of probing.Handlers. Commands run through exec,
// because where they run differs between an agent and a local run. Network probes wait for a slot
// of the gate, and send the user agent kube-probe/<version>.
func New(exec probing.Prober, network *slots.Gate, version string) probing.Set {
	return newSet(probing.Dialer(), exec, network, version)
}

func newSet(connector probing.Connector, exec probing.Prober, network *slots.Gate, version string) probing.Set {
	set := Through(connector, version)
	for handler, prober := range set {
		set[handler] = network.Limit(prober)
	}
	set[probing.HandlerExec] = exec
	return set
}

// Through returns a set with a prober for each of the network handlers, whose connections are
// opened by the connector.
func Through(connector probing.Connector, version string) probing.Set {
	return probing.Set{
		probing.HandlerHTTP: http.New(connector, version),
		probing.HandlerTCP:  tcp.New(connector),
		probing.HandlerGRPC: grpc.New(connector, version),
	}
}
