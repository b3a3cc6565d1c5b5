// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

// Pool has the API servers of a package whose tests run in parallel and rely on cluster-scoped
// objects or on all requests of a server: each test has a server for itself. A test starts one if
// all are in use, so there are as many as tests run at the same time. The zero value is ready to use.
type Pool struct {
	mu   sync.Mutex
	all  []*Env
	idle []*Env
}

// Main implements TestMain for the tests of the pool, like [Main].
func (p *Pool) Main(m *testing.M) {
	discardLogs()
	code := m.Run()
	for _, e := range p.all {
		if err := e.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "integration environment:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Parallel marks the test as parallel and returns the server that it has until it ends. The test
// must remove its cluster-scoped objects: another test gets the server afterwards.
func (p *Pool) Parallel(t *testing.T) *Env {
	t.Helper()
	t.Parallel()
	return p.Serial(t)
}

// Serial is Parallel for a test that relies on state of the process: it runs before the parallel
// tests, alone.
func (p *Pool) Serial(t testing.TB) *Env {
	t.Helper()
	e, err := p.take()
	expect.NoErrorf(t, err, "integration environment")
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idle = append(p.idle, e)
	})
	return e
}

func (p *Pool) take() (*Env, error) {
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		defer p.mu.Unlock()
		e := p.idle[last]
		p.idle = p.idle[:last]
		return e, nil
	}
	p.mu.Unlock()
	e, err := New()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, e)
	return e, nil
}
