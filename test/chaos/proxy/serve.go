// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// Keys of contexts: connKey for the *conn of a connection, exchangeKey for the exchange of a request.
type (
	connKey     struct{}
	exchangeKey struct{}
)

// exchange is a request that is forwarded.
type exchange struct {
	request request
	conn    *conn
	// lose is whether the response to a write that succeeds is lost.
	lose bool
}

// serve forwards a request, unless a fault prevents it.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.running.Done()
	c := r.Context().Value(connKey{}).(*conn)
	c.running.Add(1)
	defer c.running.Add(-1)
	request, err := newRequest(strings.TrimSuffix(r.TLS.ServerName, domain), r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t := treat(p.faults.state.Load().faults, request)
	if t.down {
		p.interrupt(Down, c)
		panic(http.ErrAbortHandler)
	}
	if t.delay > 0 {
		p.faults.count(Delay, 0)
		if !sleep(r.Context(), t.delay) {
			panic(http.ErrAbortHandler)
		}
	}
	switch {
	case t.refuse != nil:
		p.faults.count(Refuse, 0)
		p.refuse(w, r, request, refusal(*t.refuse))
	case t.expire:
		p.faults.count(Expire, 0)
		p.refuse(w, r, request, expired())
	default:
		ctx := context.WithValue(r.Context(), exchangeKey{}, &exchange{request: request, conn: c, lose: t.lose})
		p.reverse.ServeHTTP(w, r.WithContext(ctx))
	}
}

// sleep returns false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refusal returns the error of the API server for a fault that refuses.
func refusal(f Fault) *apierrors.StatusError {
	switch f.Code {
	case http.StatusTooManyRequests:
		return apierrors.NewTooManyRequests("refused by the proxy", f.RetryAfter)
	case http.StatusServiceUnavailable:
		return apierrors.NewServiceUnavailable("refused by the proxy")
	default:
		return apierrors.NewInternalError(errors.New("refused by the proxy"))
	}
}

// refuse answers with a status in the format that the client accepts, as the API server does.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, request request, status *apierrors.StatusError) {
	responsewriters.ErrorNegotiated(status, p.codecs, request.version, w, r)
}

var errLost = errors.New("the response is lost")

// respond loses the response of the API server, or takes over the events of a watch.
func (p *Proxy) respond(response *http.Response) error {
	e := response.Request.Context().Value(exchangeKey{}).(*exchange)
	if e.lose && response.StatusCode >= 200 && response.StatusCode < 300 {
		p.interrupt(LoseResponse, e.conn)
		return errLost
	}
	if e.request.verb != "watch" || response.StatusCode != http.StatusOK {
		return nil
	}
	f, ok := formatOf(p.codecs, response.Header.Get("Content-Type"))
	if !ok || response.Header.Get("Content-Encoding") != "" {
		return nil
	}
	response.Body = newStream(response.Request.Context(), stream{
		request: e.request, faults: p.faults, format: f, body: response.Body,
		cut: func() { p.interrupt(CutWatches, e.conn) },
	}, p.options.WatchBuffer)
	return nil
}

// fail resets the connection of a client whose request the API server does not answer. Only a client
// that does not wait any more keeps its connection.
func (p *Proxy) fail(_ http.ResponseWriter, r *http.Request, _ error) {
	if r.Context().Err() == nil {
		r.Context().Value(connKey{}).(*conn).reset()
	}
	panic(http.ErrAbortHandler)
}
