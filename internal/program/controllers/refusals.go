// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// Refusals remembers the objects whose last write failed, so that a controller that waits for
// the writes of another one can report why they do not happen. Pods are named by namespace and
// name, nodes by name only. It is safe for concurrent use. The zero value is ready for use, and a
// nil Refusals remembers nothing.
type Refusals struct {
	reasons keyed.Store[types.NamespacedName, string]
}

// Note remembers why the last write of the object failed. A nil error forgets the object, because
// its last write succeeded or it no longer exists.
func (r *Refusals) Note(object types.NamespacedName, err error) {
	switch {
	case r == nil:
	case err == nil:
		r.reasons.Forget(object)
	default:
		r.reasons.Set(object, Reason(err))
	}
}

// Of returns why the last write of the object failed, or an empty string if it did not fail.
func (r *Refusals) Of(object types.NamespacedName) string {
	if r == nil {
		return ""
	}
	reason, _ := r.reasons.Get(object)
	return reason
}

// Reason returns the message of the API server, or the whole error if it did not answer.
func Reason(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}
