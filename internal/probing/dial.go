// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probing

import (
	"context"
	"net"
)

// Connector opens the connections of network probes: Dialer, or a way that does not lead through
// the network of the node.
type Connector interface {
	// DialContext connects to the address, host:port.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Unconfirmed is a connection that exists before the other side has accepted it.
type Unconfirmed interface {
	net.Conn
	// Confirm ends the own side of the connection and returns nil if the other side has accepted it.
	// It may take longer than a connection to a server does, and limits the time itself.
	Confirm(ctx context.Context) error
	// Refusal returns why the other side has not accepted the connection. It is nil if it has, or if
	// that is not known yet.
	Refusal() error
}

// Dialer returns a dialer for probe connections. Peers read a regular end of the stream,
// and the local port is free as soon as the peer confirms it: 1,000 probes per second leave
// no ports in TIME_WAIT. The connections do not last long enough for keep-alive messages, and
// have one address, so the dialer omits the system calls and lists for these.
func Dialer() *net.Dialer {
	return &net.Dialer{Control: shortLinger, KeepAlive: -1, FallbackDelay: -1}
}
