// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/seamark-dev/seamark/internal/agent/cri"
)

// runtimeTimeout bounds the connection to the runtime when the agent starts.
const runtimeTimeout = 30 * time.Second

// Connect connects to the node's container runtime and logs its endpoint. The endpoint is
// unix:///path or an absolute path. If it is empty, Connect tries the well-known sockets.
// It passes observe to cri.Dial, which calls it after each runtime call. The error contains
// the endpoints that were tried.
func Connect(ctx context.Context, log logr.Logger, endpoint string, observe func(method string, took time.Duration, err error)) (*cri.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	endpoint, err := cri.Discover(endpoint, cri.Answers(ctx))
	if err != nil {
		return nil, err
	}
	client, err := cri.Dial(ctx, endpoint, observe)
	if err != nil {
		return nil, err
	}
	log.Info("Connected to container runtime", "endpoint", endpoint)
	return client, nil
}
