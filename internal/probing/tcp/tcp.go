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
type Prober struct{ connector probing.Connector }

var _ probing.Prober = Prober{}

// New returns a prober whose connections are opened by the connector.
func New(connector probing.Connector) Prober { return Prober{connector} }

// Probe connects to the target and closes the connection. A connection is success, without
// a message. If it is refused or takes longer than the timeout, the probe fails, and the
// message is the error.
func (p Prober) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	dialCtx, cancel := context.WithTimeout(ctx, target.Timeout)
	defer cancel()
	conn, err := p.connector.DialContext(dialCtx, "tcp", target.TCP.Address)
	if err == nil {
		if unconfirmed, is := conn.(probing.Unconfirmed); is {
			err = unconfirmed.Confirm(ctx)
		}
		_ = conn.Close() // An error does not matter: the peer has accepted the connection.
	}
	switch {
	case ctx.Err() != nil:
		return probing.Outcome{}, fmt.Errorf("connect to %s: %w", target.TCP.Address, context.Cause(ctx))
	case err != nil:
		return probing.Outcome{TimedOut: probing.TimedOut(err), Message: probing.Message([]byte(err.Error()))}, nil
	default:
		return probing.Outcome{Success: true}, nil
	}
}
