// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apierror interprets errors of the API server that apimachinery has no function for.
package apierror

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsOtherUID reports whether the API server rejected the write because the object has another
// UID, which it treats as an attempt to change the UID.
func IsOtherUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

// IsNotAuthorized reports whether an authorizer refused the request, and not admission: the user has no right to it.
func IsNotAuthorized(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), ` is forbidden: User "`)
}

// IsDenied reports whether the API server refused a request because of missing permissions.
func IsDenied(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }
