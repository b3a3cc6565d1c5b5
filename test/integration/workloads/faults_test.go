// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// fate is what happens to a write of a process.
type fate int

const (
	// deliver executes the write and returns its response.
	deliver fate = iota
	// loseResponse executes the write. The process gets an error.
	loseResponse
	// dieAfter kills the process when the write has been executed, together with those that were sent
	// before.
	dieAfter
)

var (
	errDead = errors.New("the process is dead")
	errLost = errors.New("the response is lost")
)

// wire is the connection of one process to the API server.
type wire struct {
	base http.RoundTripper
	// decide returns the fate of the n-th write, from 1, to an object in the namespace.
	decide func(namespace string, n int) fate

	// sent are the writes that the API server is executing.
	sent sync.WaitGroup

	mu     sync.Mutex
	writes int
	dead   bool
	died   chan struct{}
	// posts counts the requests that create pods.
	posts int
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	fate, err := w.next(request)
	if err != nil {
		return nil, err
	}
	response, err := w.base.RoundTrip(request)
	if isWrite(request) {
		w.sent.Done()
	}
	if fate == deliver || err != nil {
		return response, err
	}
	_ = response.Body.Close()
	if fate == dieAfter {
		w.die()
		return nil, errDead
	}
	return nil, errLost
}

// next counts the request and returns its fate. The caller sends writes and reports when they are done.
func (w *wire) next(request *http.Request) (fate, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return deliver, errDead
	}
	if !isWrite(request) {
		return deliver, nil
	}
	w.writes++
	if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/pods") {
		w.posts++
	}
	w.sent.Add(1)
	return w.decide(namespaceOf(request), w.writes), nil
}

// isWrite reports whether the request writes an object that the sets consist of.
func isWrite(request *http.Request) bool {
	path := request.URL.Path
	return request.Method != http.MethodGet && request.Method != http.MethodHead &&
		!strings.Contains(path, "/events") && !strings.Contains(path, "/apis/authorization.k8s.io/")
}

// namespaceOf returns the namespace of the object, empty if it has none.
func namespaceOf(request *http.Request) string {
	_, rest, _ := strings.Cut(request.URL.Path, "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")
	return namespace
}

// die makes all further requests fail, and ends the process when the writes that were sent are
// executed. The timeout of requests bounds the wait.
func (w *wire) die() {
	w.mu.Lock()
	first := !w.dead
	w.dead = true
	w.mu.Unlock()
	if first {
		w.sent.Wait()
		close(w.died)
	}
}

func (w *wire) podPosts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.posts
}

// process runs the program with a wire until the context ends or the wire is cut. It returns the
// number of its writes.
func (w *world) process(ctx context.Context, config *rest.Config, line *wire) int {
	config = rest.CopyConfig(config)
	line.died = make(chan struct{})
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		line.base = base
		return line
	})
	running, err := program.New(config)
	if err != nil {
		w.Error(err)
		return 0
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-line.died:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := running.Run(ctx); err != nil && !errors.Is(err, errDead) {
		w.Log("run the program:", err)
	}
	line.mu.Lock()
	defer line.mu.Unlock()
	return line.writes
}

// run runs processes one after another until the test or the returned function ends it. Each process
// has a new wire with the fates.
func (w *world) run(decide func(namespace string, n int) fate) (stop func() (processes, writes int)) {
	w.Helper()
	config := w.Component(w, workloads.Name)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	processes, writes := 0, 0
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			processes++
			writes += w.process(ctx, config, &wire{decide: decide})
		}
	}()
	stop = func() (int, int) {
		cancel()
		<-done
		return processes, writes
	}
	w.Cleanup(func() { stop() })
	return stop
}
