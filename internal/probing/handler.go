// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

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
