// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/seamark-dev/seamark/internal/agent/cri"
)

// runtimeTimeout is how long the runtime has to answer when the agent starts.
const runtimeTimeout = 30 * time.Second

// Connect finds the node's container runtime and connects to it. An endpoint that is not
// empty, unix:///path or a bare path, says where it is; else the well-known sockets are
// tried. The log says which it is. called is told of each call, as by cri.Dial. The error
// names what was tried.
func Connect(ctx context.Context, log logr.Logger, endpoint string, called func(method string, took time.Duration, err error)) (*cri.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	endpoint, err := cri.Discover(endpoint, cri.Answers(ctx))
	if err != nil {
		return nil, err
	}
	client, err := cri.Dial(ctx, endpoint, called)
	if err != nil {
		return nil, err
	}
	log.Info("Found the container runtime", "endpoint", endpoint)
	return client, nil
}
