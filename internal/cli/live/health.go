// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// health reports once that watches fail, and once that all of them work again. It is safe for
// concurrent use.
type health struct {
	notify func(message string)
	// refused is called for an error that means that the user may not read a resource any more. It is optional.
	refused func(error)
	mu      sync.Mutex
	// failed are the last errors of the watches that fail.
	failed map[permission.Resource]error
}

func newHealth(notify func(message string)) *health {
	return &health{notify: notify, failed: map[permission.Resource]error{}}
}

// fails records that a request for the resource has failed.
func (h *health) fails(resource permission.Resource, err error) {
	if h.refused != nil && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		h.refused(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.failed) == 0 {
		h.notify(fmt.Sprintf("Warning: the watch of %s is interrupted, trying again: %v", resource, short(err)))
	}
	h.failed[resource] = err
}

// works records that a watch of the resource has started.
func (h *health) works(resource permission.Resource) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed[resource] == nil {
		return
	}
	if delete(h.failed, resource); len(h.failed) == 0 {
		h.notify("Watching again.")
	}
}

// relisted records that all objects of a resource were read again, because a watch expired.
func (h *health) relisted(resource permission.Resource) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed[resource] == nil {
		h.notify(fmt.Sprintf("The watch of %s had ended: all of them were read again.", resource))
	}
}

// lost returns the error of a watch that fails, with the exit code exit.Access, or nil if all of them work.
func (h *health) lost() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(h.failed)) {
		return exit.NoAccess(fmt.Errorf("the watch of %s is interrupted: %w", resource, short(h.failed[resource])))
	}
	return nil
}

// short returns the cause of a failed request, without its long URL.
func short(err error) error {
	if failure := (*url.Error)(nil); errors.As(err, &failure) {
		return failure.Err
	}
	return err
}
