// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tcp runs tcpSocket probes. It evaluates results as the kubelet does.
package tcp

import (
	"context"
	"fmt"

	"github.com/seamark-dev/seamark/internal/probing"
)

// Prober opens and closes connections.
type Prober struct{ connector probe.Connector }

var _ probe.Prober = Prober{}

// New returns a prober.
func New() Prober { return Through(probe.Dialer()) }

// Through returns a prober whose connections are opened by the connector.
func Through(connector probe.Connector) Prober { return Prober{connector} }

// Probe connects to the target and closes the connection. A connection is success, without
// a message. If it is refused or takes longer than the timeout, the probe fails, and the
// message is the error.
func (p Prober) Probe(ctx context.Context, target probe.Target) (probe.Outcome, error) {
	dialCtx, cancel := context.WithTimeout(ctx, target.Timeout)
	defer cancel()
	conn, err := p.connector.DialContext(dialCtx, "tcp", target.TCP.Address)
	if err == nil {
		if unconfirmed, is := conn.(probe.Unconfirmed); is {
			err = unconfirmed.Confirm(ctx)
		}
		_ = conn.Close() // An error does not matter: the peer has accepted the connection.
	}
	switch {
	case ctx.Err() != nil:
		return probe.Outcome{}, fmt.Errorf("connect to %s: %w", target.TCP.Address, context.Cause(ctx))
	case err != nil:
		return probe.Outcome{TimedOut: probe.TimedOut(err), Message: probe.Message([]byte(err.Error()))}, nil
	default:
		return probe.Outcome{Success: true}, nil
	}
}
