// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"

	"github.com/seamark-dev/seamark/internal/program/serving"
)

const (
	// perByte and perObject estimate what a request takes when it is decoded: the largest structure that "{}" may
	// stand for in a pod is a container, with 800 bytes. Braces in texts count, too: the values of annotations are decoded.
	perByte, perObject = 4, 800
	// leastAnswer is the estimate for small requests, so that the number of answers at the same time is limited.
	leastAnswer = 2 << 20
)

// Limit returns a handler that reads the body of a request before it takes anything else, and answers as many
// requests at the same time as memory permits. An answer is sent after it is complete, so that slow clients do
// not keep others waiting.
func Limit(handler http.Handler, limits Limits) http.Handler {
	limits = limits.withDefaults()
	bodies, answers := newBodies(limits), semaphore.NewWeighted(limits.Answers)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, body, err := bodies.read(w, r)
		if err != nil {
			serving.Refuse(w, statusOf(err), err.Error())
			return
		}
		defer bodies.release(body)
		defer serving.Complete(r)()
		size := max(perByte*int64(len(text))+perObject*int64(bytes.Count(text, []byte("{"))), leastAnswer)
		if size > limits.Answers {
			serving.Refuse(w, http.StatusRequestEntityTooLarge, errTooLarge.Error())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), limits.Wait)
		defer cancel()
		if err := answers.Acquire(ctx, size); err != nil {
			serving.Refuse(w, http.StatusServiceUnavailable, fmt.Errorf("%w: %w", errFull, err).Error())
			return
		}
		request := r.WithContext(ctx)
		request.Body = io.NopCloser(bytes.NewReader(text))
		reply := &answer{header: w.Header(), status: http.StatusOK}
		func() {
			defer answers.Release(size)
			handler.ServeHTTP(reply, request)
		}()
		if err := bodies.send(body, reply.body.Len()); err != nil {
			serving.Refuse(w, statusOf(err), err.Error())
			return
		}
		w.WriteHeader(reply.status)
		// The client may be gone.
		_, _ = w.Write(reply.body.Bytes())
	})
}

func statusOf(err error) int {
	if errors.Is(err, errTooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusServiceUnavailable
}

// answer collects what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the header that is sent.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader sets the status.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write adds to the body.
func (a *answer) Write(text []byte) (int, error) { return a.body.Write(text) }
