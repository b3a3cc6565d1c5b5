// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local/pagesource"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/loopback"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// servePage serves the web page of the session and prints its URL. The caller calls stop after the
// run.
func (o *LocalOptions) servePage(ctx context.Context, s *session, markers []v1alpha1.PodProbeMarker) (stop func() error, err error) {
	if o.UI == "" {
		return func() error { return nil }, nil
	}
	s.page = localsource.New(markers, s.Snapshot, time.Now)
	handler, err := ui.New(ui.Options{
		Source: s.page, Guard: ui.Anyone{Access: ui.Access{Full: true}},
		Session: model.Session{Source: model.SourceLocal, Version: o.Version}, Once: true,
	})
	if err != nil {
		return nil, fmt.Errorf("serve the web page: %w", err)
	}
	server, err := loopback.Listen(ctx, o.UI)
	if err != nil {
		return nil, fmt.Errorf("--ui: %w", err)
	}
	s.url = func() string { return server.URL(nil) }
	fmt.Fprintf(o.ErrOut, "Web page: %s\n", s.url())
	server.Opened = func() {
		// A table shows the next URL itself.
		if !o.terminal {
			fmt.Fprintf(o.ErrOut, "The web page was opened. For another browser, it has the URL %s\n", s.url())
		}
	}
	// The page shows the pods until they have stopped, also if ctx ends before.
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, handler, handler.Close) }()
	return func() error {
		cancel()
		return <-served
	}, nil
}
