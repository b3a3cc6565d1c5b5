// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seamark-dev/seamark/internal/probing"
)

const (
	// firstRetry is how long a command is not run again while the runtime has not ended its
	// last run. The delay doubles with each further run that the runtime does not end.
	firstRetry = 5 * time.Minute
	// maxRetry is the longest delay.
	maxRetry = 24 * time.Hour
	// maxOpen and maxOpenOfNamespace limit the runs that the runtime has not ended: each is a process in a
	// container, and memory of the runtime and the agent. A namespace without any may always have one.
	maxOpen, maxOpenOfNamespace = 256, 32
)

// runID identifies the runs of one command. An edited command, or a new container, does not
// wait for the runs of the previous one.
type runID struct {
	owner              probing.Owner
	container, command string
}

func idOf(target probing.Target) runID {
	return runID{owner: target.Owner, container: target.ContainerID, command: strings.Join(target.Exec.Command, "\x00")}
}

// unended tracks the runs that the runtime had not ended when they were given up, so that
// such runs do not accumulate. It is safe for concurrent use.
type unended struct {
	mu   sync.Mutex
	open int
	// namespaces is how many are open of each namespace.
	namespaces map[string]int
	by         map[runID]*backlog
}

// backlog are the unended runs of one command.
type backlog struct {
	// open is how many runs the runtime has not ended.
	open int
	// newest is the number of the run that was given up last; newestOpen reports whether the
	// runtime has not ended it.
	newest     int
	newestOpen bool
	// retry has the delays after unended runs in a row.
	retry wait.Backoff
	// retryAt is when the command may run again although its newest run has not ended.
	retryAt time.Time
}

// blocked reports whether a command must not run at now.
func (u *unended) blocked(now time.Time, id runID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	b := u.by[id]
	return b != nil && b.newestOpen && now.Before(b.retryAt)
}

// full returns an error if the namespace must not run commands, because the runtime has not ended too many.
func (u *unended) full(namespace string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch own := u.namespaces[namespace]; {
	case own >= maxOpenOfNamespace:
		return fmt.Errorf("the container runtime has not ended %d earlier runs of namespace %s", own, namespace)
	case own > 0 && u.open >= maxOpen:
		return fmt.Errorf("the container runtime has not ended %d earlier runs of this node, %d of them of namespace %s", u.open, own, namespace)
	}
	return nil
}

// add records a run that is given up at now. The caller calls ended when the runtime has
// ended the run.
func (u *unended) add(now time.Time, id runID) (ended func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	b := u.by[id]
	if b == nil {
		b = &backlog{retry: wait.Backoff{Duration: firstRetry, Factor: 2, Steps: math.MaxInt, Cap: maxRetry}}
		u.by[id] = b
	}
	u.open++
	u.namespaces[id.owner.Namespace]++
	b.open++
	b.newest++
	b.newestOpen = true
	b.retryAt = now.Add(b.retry.Step())
	number := b.newest
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.open--
		if u.namespaces[id.owner.Namespace]--; u.namespaces[id.owner.Namespace] == 0 {
			delete(u.namespaces, id.owner.Namespace)
		}
		b.open--
		b.newestOpen = b.newestOpen && number != b.newest
		if b.open == 0 {
			delete(u.by, id)
		}
	}
}

// count returns how many runs the runtime has not ended.
func (u *unended) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open
}
