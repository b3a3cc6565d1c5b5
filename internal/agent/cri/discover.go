// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// scheme is the URL scheme of CRI endpoints.
const scheme = "unix://"

// answerTimeout is how long Answers waits for a runtime.
const answerTimeout = 2 * time.Second

// wellKnownSockets returns the sockets of the supported runtimes, in order of preference. All
// are below /run, the only folder of the node that is mounted into the agent's container. On
// the node, /var/run is a link to it.
func wellKnownSockets() []string {
	return []string{
		"/run/containerd/containerd.sock",
		"/run/crio/crio.sock",
		"/run/k3s/containerd/containerd.sock",
		"/run/cri-dockerd.sock",
	}
}

// Discover returns the endpoint of the container runtime as unix:///path. If the override is
// not empty, it is that endpoint or absolute path. Otherwise it is the first well-known socket
// of containerd, CRI-O, k3s and cri-dockerd for which serves returns true; Answers returns
// that function. The error lists the sockets that were tried.
func Discover(override string, serves func(path string) bool) (string, error) {
	if override != "" {
		return endpointOf(override)
	}
	for _, path := range wellKnownSockets() {
		if serves(path) {
			return scheme + path, nil
		}
	}
	return "", fmt.Errorf("no container runtime answers on any of %s", strings.Join(wellKnownSockets(), ", "))
}

// endpointOf normalizes an endpoint to unix:///path.
func endpointOf(s string) (string, error) {
	path := strings.TrimPrefix(s, scheme)
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("runtime endpoint %q is invalid: must be unix:///path or the absolute path of a socket", s)
	}
	return scheme + path, nil
}

// Answers returns a function that reports whether a CRI runtime answers on a socket. A socket
// that exists is not enough: a node often runs a second runtime whose CRI is disabled.
func Answers(ctx context.Context) func(path string) bool {
	return func(path string) bool {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		client, err := Dial(ctx, path, nil)
		if err != nil {
			return false
		}
		// The runtime has answered, so an error of Close does not matter.
		_ = client.Close()
		return true
	}
}
