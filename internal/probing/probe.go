// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probing defines the values that all probes share: the kinds of handlers, the
// Target, which is parsed once from the plan, and the Outcome of a run. It also contains
// the code that the probers have in common: how messages are truncated and connections
// closed. The packages below it run the probes, one package per handler.
package probing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Prober runs one kind of probe.
type Prober interface {
	// Probe runs the target's handler once and returns within about the target's timeout.
	// The time that it waits for a free slot does not count. An error means
	// that the result could not be determined, for example because ctx ended; it does not
	// change a probe's state. A success or failure of the container is an Outcome.
	Probe(ctx context.Context, target Target) (Outcome, error)
}

// MaxMessageBytes is the maximum length of a probe's message.
const MaxMessageBytes = 1024

// Outcome is the result of one run of a probe.
type Outcome struct {
	// Success reports whether the container passed.
	Success bool
	// TimedOut reports whether the probe failed because it exceeded its timeout.
	TimedOut bool
	// NotEnded reports whether the command did not run because the runtime has not ended an
	// earlier run. TimedOut is then also set.
	NotEnded bool
	// Message is the output or error, valid UTF-8 of at most MaxMessageBytes.
	Message string
}

// TimedOut reports whether an error is a timeout of net, net/http or context.
func TimedOut(err error) bool {
	var timed interface{ Timeout() bool }
	return errors.As(err, &timed) && timed.Timeout()
}

// Target is one probe that is ready to run. Exactly one of Exec, HTTP, TCP and GRPC is
// set: the one that Handler names.
type Target struct {
	// Handler is the kind of the probe.
	Handler Handler
	// Timeout bounds one run, at least one second.
	Timeout time.Duration
	// ContainerID is the runtime's ID of the container. Only exec probes need it. It
	// changes with every restart, so the caller sets it before each run.
	ContainerID string
	// Owner is whom the run belongs to.
	Owner Owner
	// Started is called when the probe starts to run, after the wait for a free slot. It may be
	// nil.
	Started func()
	// Again is called for each request of the run after the first one: for a redirect, with whether
	// it needs a TLS handshake, and for another attempt. It may be nil.
	Again func(tls bool)

	Exec *Exec
	HTTP *HTTP
	TCP  *TCP
	GRPC *GRPC
}

// Owner is the namespace, pod and probe that a run belongs to. Slots are shared by it.
type Owner struct {
	// Namespace is the namespace of the pod.
	Namespace string
	// Pod is the UID of the pod.
	Pod string
	// Probe is unique within the pod.
	Probe string
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
	// Header is sent unchanged, repeated names included. The prober adds its defaults.
	// net/http ignores a Host header in it; Host has its value.
	Header http.Header
	// Host replaces the URL's host in the Host header unless it is empty.
	Host string
	// PublishBody reports whether the message of a success contains the body, which may hold
	// confidential data.
	PublishBody bool
	// HTTP2 sends the request with HTTP/2 without TLS and without an upgrade (h2c with prior
	// knowledge).
	HTTP2 bool
}

// TCP is a socket to connect to.
type TCP struct {
	// Address is host:port.
	Address string
}

// GRPC is a call of grpc.health.v1.Health/Check.
type GRPC struct {
	// Address is host:port.
	Address string
	// Service is the service to check. If empty, the health of the whole server is checked.
	Service string
	// TLS connects with TLS. The certificate is not verified.
	TLS bool
}

// maxAttempts is how often a probe is run until it has a result.
const maxAttempts = 3

// ErrNoWay means that there is no way to the container, for example because a permission is
// missing. Another attempt does not help.
var ErrNoWay = errors.New("the container cannot be reached")

// Set is a prober for targets of every kind. It has one prober per handler.
type Set map[Handler]Prober

var _ Prober = Set(nil)

// Probe runs the prober of the target's handler. If the prober returns an error, Probe
// retries immediately, three attempts in total, as the kubelet does; a probe without a
// result can therefore take three times its timeout. It does not retry after ErrNoWay. Probe returns the error of the last
// attempt, or an error if the handler has no prober.
func (s Set) Probe(ctx context.Context, target Target) (Outcome, error) {
	prober, ok := s[target.Handler]
	if !ok {
		return Outcome{}, fmt.Errorf("no prober for handler %q", target.Handler)
	}
	var outcome Outcome
	var err error
	for attempt := range maxAttempts {
		if attempt > 0 && target.Again != nil {
			target.Again(false)
		}
		if outcome, err = prober.Probe(ctx, target); err == nil || ctx.Err() != nil || errors.Is(err, ErrNoWay) {
			break
		}
	}
	return outcome, err
}

// Handler is the kind of a probe.
type Handler string

// The handlers of a core/v1 ProbeHandler, by their field names.
const (
	HandlerExec Handler = "exec"
	HandlerHTTP Handler = "httpGet"
	HandlerTCP  Handler = "tcpSocket"
	HandlerGRPC Handler = "grpc"
)

// Handlers returns all handlers, in the order of their fields in core/v1.
func Handlers() []Handler {
	return []Handler{HandlerExec, HandlerHTTP, HandlerTCP, HandlerGRPC}
}

// HandlersOf returns the handlers that h sets, in the order of Handlers.
func HandlersOf(h *corev1.ProbeHandler) []Handler {
	isSet := map[Handler]bool{
		HandlerExec: h.Exec != nil,
		HandlerHTTP: h.HTTPGet != nil,
		HandlerTCP:  h.TCPSocket != nil,
		HandlerGRPC: h.GRPC != nil,
	}
	var handlers []Handler
	for _, handler := range Handlers() {
		if isSet[handler] {
			handlers = append(handlers, handler)
		}
	}
	return handlers
}

// HandlerOf returns the one handler that h sets. It returns an error that lists the
// allowed handlers if h sets none or more than one.
func HandlerOf(h *corev1.ProbeHandler) (Handler, error) {
	switch handlers := HandlersOf(h); len(handlers) {
	case 1:
		return handlers[0], nil
	case 0:
		return "", fmt.Errorf("probe: must have exactly one of %s, has none", list(Handlers()))
	default:
		return "", fmt.Errorf("probe: must have exactly one of %s, has %s", list(Handlers()), list(handlers))
	}
}

// list returns the names of two or more handlers as "a, b and c".
func list(handlers []Handler) string {
	names := make([]string, 0, len(handlers))
	for _, handler := range handlers {
		names = append(names, string(handler))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
