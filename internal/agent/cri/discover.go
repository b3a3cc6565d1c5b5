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

// scheme begins the endpoints of the CRI.
const scheme = "unix://"

// answerTimeout is how long a socket has to prove that a runtime serves it.
const answerTimeout = 2 * time.Second

// wellKnown returns the sockets of the runtimes in the order in which they are tried. They
// stand below /run, the one folder of the node that the agent's container has; on the node
// /var/run is a link to it.
func wellKnown() []string {
	return []string{
		"/run/containerd/containerd.sock",
		"/run/crio/crio.sock",
		"/run/k3s/containerd/containerd.sock",
		"/run/cri-dockerd.sock",
	}
}

// Discover returns the endpoint of the node's runtime, as unix:///path: the override,
// given so or as a bare path, where it is not empty, else the first well-known socket of
// containerd, CRI-O, k3s and cri-dockerd for which serves is true. The error names what
// was tried. Answers is the serves of a real node.
func Discover(override string, serves func(path string) bool) (string, error) {
	if override != "" {
		return endpointOf(override)
	}
	for _, path := range wellKnown() {
		if serves(path) {
			return scheme + path, nil
		}
	}
	return "", fmt.Errorf("no container runtime serves any of %s", strings.Join(wellKnown(), ", "))
}

// endpointOf reads an endpoint as people write it.
func endpointOf(s string) (string, error) {
	path := strings.TrimPrefix(s, scheme)
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("runtime endpoint %q: want unix:///path or the absolute path of a socket", s)
	}
	return scheme + path, nil
}

// Answers returns a function that reports whether a runtime with the CRI answers on a
// socket. That the socket exists is not enough: a runtime that is not the kubelet's often
// stands beside the one that is, with its CRI switched off.
func Answers(ctx context.Context) func(path string) bool {
	return func(path string) bool {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		client, err := Dial(ctx, path, nil)
		if err != nil {
			return false
		}
		// The answer has been given: a failure to hang up changes nothing.
		_ = client.Close()
		return true
	}
}
