// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a Source whose scopes have the changes that are sent to changes.
type source struct {
	changes chan web.Change
	err     error
	opened  atomic.Int32
	closed  atomic.Int32
	query   web.TimelineQuery
	// reading is called while a timeline is read, if it is not nil.
	reading func()
}

func newSource() *source { return &source{changes: make(chan web.Change)} }

func (s *source) Open(ctx context.Context, _ web.Scope) (web.Changes, error) {
	s.opened.Add(1)
	return func(yield func(web.Change, error) bool) {
		defer s.closed.Add(1)
		for {
			select {
			case change, ok := <-s.changes:
				if !ok {
					yield(web.Change{}, errors.New("the source has ended"))
					return
				}
				if !yield(change, nil) {
					return
				}
			case <-ctx.Done():
				yield(web.Change{}, ctx.Err())
				return
			}
		}
	}, s.err
}

func (s *source) Timeline(_ context.Context, query web.TimelineQuery) (model.Timeline, error) {
	s.query = query
	if query.Pod.Name != "web-0" {
		return model.Timeline{}, web.NotFound(query.Pod)
	}
	if s.reading != nil {
		s.reading()
	}
	return model.Timeline{Note: "n"}, nil
}

type fixture struct {
	source  *source
	handler *web.Handler
	server  *httptest.Server
}

// access is what the user may read: a namespace with a set.
func access() web.Access {
	return web.Access{
		User: "jane", Full: true,
		Set: func(_ context.Context, set model.SetID) (model.SetDetails, error) {
			if set.String() != "CloneSet ns/web" {
				return model.SetDetails{}, web.NoSet(set)
			}
			return model.SetDetails{Waits: []model.PodWait{{Name: "web-0", Why: "is not ready"}}, WaitCount: 1, Events: []model.Event{}}, nil
		},
		Namespaces: func(context.Context) (model.Namespaces, error) {
			return model.Namespaces{Names: []string{"ns"}, Shown: []string{"ns"}}, nil
		},
	}
}

func start(t *testing.T, limits web.Limits) *fixture {
	t.Helper()
	limits.Interval = time.Millisecond
	f := &fixture{source: newSource()}
	f.handler = web.New(web.Options{
		Source: f.source, Access: access, Limits: limits,
		Session: model.Session{Source: model.SourceCluster, Version: "v1", Namespace: "first", User: "replaced"},
	})
	f.server = httptest.NewServer(f.handler)
	t.Cleanup(func() {
		f.handler.Close()
		f.server.CloseClientConnections()
		f.server.Close()
		f.server.Client().CloseIdleConnections()
	})
	return f
}

// answer is an answer that has been read.
type answer struct {
	status int
	header http.Header
	body   string
}

func (f *fixture) get(t *testing.T, method, path string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, f.server.URL+path, http.NoBody)
	expect.NoError(t, err)
	response, err := f.server.Client().Do(request)
	expect.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	expect.NoError(t, err)
	return answer{response.StatusCode, response.Header, string(body)}
}
