// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// scheme is the URL scheme of CRI endpoints.
const scheme = "unix://"

// answerTimeout is how long answers waits for a runtime.
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

// Connect connects to the node's container runtime and logs its endpoint. The endpoint is
// unix:///path or an absolute path. If it is empty, Connect uses the first well-known socket of
// containerd, CRI-O, k3s and cri-dockerd on which a runtime answers. It passes observe to Dial. The
// error contains the endpoints that were tried.
func Connect(ctx context.Context, log logr.Logger, endpoint string, observe func(method string, took time.Duration, err error)) (*Client, error) {
	endpoint, err := discover(endpoint, func(path string) bool { return answers(ctx, path) })
	if err != nil {
		return nil, err
	}
	client, err := Dial(ctx, endpoint, observe)
	if err != nil {
		return nil, err
	}
	log.Info("Connected to container runtime", "endpoint", endpoint)
	return client, nil
}

// discover returns the endpoint of the container runtime as unix:///path: the override if it is not
// empty, or else the first well-known socket for which serves returns true.
func discover(override string, serves func(path string) bool) (string, error) {
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

// answers reports whether a CRI runtime answers on a socket. A socket that exists is not enough: a
// node often runs a second runtime whose CRI is disabled.
func answers(ctx context.Context, path string) bool {
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
