// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

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
func (o *Options) servePage(ctx context.Context, s *session, markers []v1alpha1.PodProbeMarker) (stop func() error, err error) {
	if o.UI == "" {
		return func() error { return nil }, nil
	}
	s.page = pagesource.New(markers, s.Snapshot, time.Now)
	handler := web.New(web.Options{
		Source: s.page, Session: model.Session{Source: model.SourceLocal, Version: o.pods.Version},
		Access: func() web.Access { return web.Access{Full: true} },
	})
	server, err := loopback.Listen(ctx, o.UI)
	if err != nil {
		return nil, fmt.Errorf("--ui: %w", err)
	}
	url := server.URL(nil)
	fmt.Fprintf(o.ErrOut, "Web page: %s\n", url)
	s.note("Web page", url)
	server.Opened = func() {
		next := server.URL(nil)
		s.note("Web page", next)
		// It would be drawn over a table.
		if !o.terminal {
			fmt.Fprintf(o.ErrOut, "The web page was opened. For another browser, it has the URL %s\n", next)
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
