// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy is a reverse proxy between programs and a real API server. It injects faults on
// command: connections that are reset, late and lost responses, refused requests, watches that end,
// expire or deliver late.
//
// A program connects with the configuration of [Proxy.Config] and its own token, which the proxy
// forwards, so that rights and policies apply as without the proxy. Bodies are forwarded as they are.
// Each program gets a name for its connections, so that a fault can hit one of several processes of
// the same program. Client certificates and upgraded connections (exec, port-forward) can't be
// forwarded.
package proxy
