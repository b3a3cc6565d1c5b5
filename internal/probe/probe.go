// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe holds the values that pass between those who ask for a probe and those
// who run it: the Target, parsed once from the plan, and the Outcome; and what the
// handlers share: how a message is cut and how a connection is closed. The handlers
// themselves live in the packages below it.
package probe

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Prober runs one kind of probe.
type Prober interface {
	// Probe runs the target's handler once and returns within the target's timeout,
	// give or take scheduling; an exec probe may wait for its turn before that. An error
	// means that nothing could be told, of which the caller concludes nothing: a success
	// or failure of the container is an Outcome. The end of ctx is such an error.
	Probe(ctx context.Context, target Target) (Outcome, error)
}

// MaxMessageBytes is the longest message kept of a probe.
const MaxMessageBytes = 1024

// Outcome is what one run of a probe says.
type Outcome struct {
	// Success is whether the container passed.
	Success bool
	// TimedOut is whether it failed because nothing came within the timeout.
	TimedOut bool
	// Message is what it said: valid UTF-8 of at most MaxMessageBytes.
	Message string
}

// TimedOut tells whether an error says that time ran out, as those of net, net/http and
// context do.
func TimedOut(err error) bool {
	var timed interface{ Timeout() bool }
	return errors.As(err, &timed) && timed.Timeout()
}

// Target is one probe, ready to be run. Exactly one of Exec, HTTP, TCP and GRPC is
// set, as Handler says.
type Target struct {
	// Handler says which of the parts below is set.
	Handler Handler
	// Timeout is how long one run may take, at least a second.
	Timeout time.Duration
	// ContainerID is the runtime's name of the container. Only exec probes need it; it
	// changes with every restart, so the caller sets it before each run.
	ContainerID string

	// Of these, the one that Handler names is set.
	Exec *Exec
	HTTP *HTTP
	TCP  *TCP
	GRPC *GRPC
}

// Exec is a command to run in the container.
type Exec struct {
	// Command is the program and its arguments, run without a shell.
	Command []string
}

// HTTP is a GET request.
type HTTP struct {
	// URL is the address, with scheme, host, port and path.
	URL *url.URL
	// Header is sent as it is, names repeated where given repeatedly. The prober adds
	// its defaults. A Host among it is checked like the others and not sent from here.
	Header http.Header
	// Host is sent as the Host header in place of the URL's, where not empty.
	Host string
}

// TCP is a socket to connect to.
type TCP struct {
	// Address is host:port.
	Address string
}

// GRPC is a service that answers grpc.health.v1.Health/Check.
type GRPC struct {
	// Address is host:port.
	Address string
	// Service is the service asked for; empty asks for the whole server.
	Service string
}
