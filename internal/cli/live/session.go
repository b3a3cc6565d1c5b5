// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
)

// maxNotices is the number of notices that wait to be shown. More are dropped.
const maxNotices = 16

// Source has the current rows: see Watch.
type Source interface {
	Changed() <-chan struct{}
	Update() ([]Change, probestatus.States)
	Rows() []probestatus.Row
}

// Notices are the lines of a watch for the user.
type Notices chan string

// Add adds a line if there is room for it.
func (n Notices) Add(line string) {
	select {
	case n <- line:
	default:
	}
}

// Session runs a watch until the user or --request-timeout ends it. It calls show once the watch has
// started.
func Session(ctx context.Context, connection cluster.Connection, query cluster.Query,
	show func(context.Context, cluster.Connection, *Watch, Notices) error,
) error {
	connection, timeout, err := connection.Unlimited()
	if err != nil {
		return err //nolint:wrapcheck // it says what failed
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	notices := make(Notices, maxNotices)
	w, err := Start(ctx, connection.Client, query, notices.Add)
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return exit.NoAccess(fmt.Errorf("the cluster has not answered within --request-timeout=%s", timeout))
	case ctx.Err() != nil:
		return nil
	default:
		return err
	}
	defer w.Stop()
	return show(ctx, connection, w, notices)
}
