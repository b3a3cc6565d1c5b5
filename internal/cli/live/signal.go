// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/program/permission"
)

// Signal is the lock of the collections of a watch, and says when their objects have changed. Use NewSignal to create one.
type Signal struct {
	sync.Mutex
	changed chan struct{}
}

// NewSignal returns a signal.
func NewSignal() *Signal { return &Signal{changed: make(chan struct{}, 1)} }

// Touch records that an object has changed.
func (s *Signal) Touch(any) {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Changed has a value if an object has changed.
func (s *Signal) Changed() <-chan struct{} { return s.changed }

// Await follows the sources, whose collections have the signal, as Follow does. It calls done once all are listed, and after
// changes, until done returns true or an error, or the context ends, whose error it returns. If its deadline has passed while the
// cluster is not reached, the error is about that, and has the exit code exit.Access. The calls of notify and done do not overlap.
func (s *Signal) Await(
	ctx context.Context, c client.WithWatch, sources []Resource, lacks func(permission.Missing) error, notify func(line string), done func() (bool, error),
) error {
	notices := make(Notices, maxNotices)
	health := newHealth(notices.Add)
	stop, err := follow(ctx, c, sources, lacks, health)
	if err != nil {
		return err
	}
	defer stop()
	for {
		if ended, err := done(); ended || err != nil {
			return err
		}
		for changed := false; !changed; {
			select {
			case <-s.changed:
				changed = true
			case line := <-notices:
				notify(line)
			case <-ctx.Done():
				if lost := health.lost(); lost != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
					return lost
				}
				return ctx.Err() //nolint:wrapcheck // the caller says what it means
			}
		}
	}
}
