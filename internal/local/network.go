// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/exec"
	"github.com/seamark-dev/seamark/internal/probing/probers"
	"github.com/seamark-dev/seamark/internal/probing/slots"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// newProbers returns the probers of a run. Commands run with commands, in the containers of execs.
func newProbers(commands *exec.Prober, execs *execs, listeners *listeners, version string) probe.Set {
	set := probers.New(commands, slots.New(probers.NetworkSlots, nil), version)
	for handler, prober := range set {
		if handler != probe.HandlerExec {
			set[handler] = networkProber{prober, execs.runs, listeners.foreign}
		}
	}
	return set
}

// networkProber runs a network probe of a container. In a cluster, only the container can
// answer on its address. Here, any process of the machine can.
type networkProber struct {
	probe.Prober
	// runs reports whether a container runs.
	runs func(containerID string) bool
	// foreign says who listens on an address instead of the pod. It is empty if nobody does.
	foreign func(pod types.UID, target netip.AddrPort) string
}

// Probe runs the probe. It fails if a process outside the pod answered. It returns an error
// if the container has ended meanwhile: then another process may have answered.
func (p networkProber) Probe(ctx context.Context, target probe.Target) (probe.Outcome, error) {
	outcome, err := p.Prober.Probe(ctx, target)
	if err != nil {
		return outcome, err
	}
	if address, ok := addressOf(target); ok {
		if who := p.foreign(podOf(target.ContainerID), address); who != "" {
			message := fmt.Sprintf("another process answers on port %d: %s", address.Port(), who)
			outcome = probe.Outcome{Message: text.Truncate(message, probe.MaxMessageBytes)}
		}
	}
	if !p.runs(target.ContainerID) {
		return probe.Outcome{}, fmt.Errorf("container %s ended", target.ContainerID)
	}
	return outcome, nil
}

// addressOf returns the address that a probe connects to, unless it is a name.
func addressOf(target probe.Target) (netip.AddrPort, bool) {
	var address string
	switch {
	case target.HTTP != nil:
		address = hostPort(target.HTTP.URL)
	case target.TCP != nil:
		address = target.TCP.Address
	case target.GRPC != nil:
		address = target.GRPC.Address
	}
	parsed, err := netip.ParseAddrPort(address)
	return parsed, err == nil
}

// hostPort returns the host and the port of a URL.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
