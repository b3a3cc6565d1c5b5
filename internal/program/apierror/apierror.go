// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apierror interprets errors of the API server that apimachinery has no function for.
package apierror

import (
	"errors"
	"slices"
	"strconv"
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

// User returns the name of the user to whom an authorizer refused a request, as the API server knows it: the message of the
// error has it, so that no other request is needed. It is empty if the error is another one. The name may contain anything.
func User(err error) string {
	if !IsNotAuthorized(err) {
		return ""
	}
	_, quoted, _ := strings.Cut(err.Error(), ` is forbidden: User `)
	quoted, parseErr := strconv.QuotedPrefix(quoted)
	if parseErr != nil {
		return ""
	}
	// The API server replaces these characters.
	name, parseErr := strconv.Unquote(strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(quoted))
	if parseErr != nil {
		return ""
	}
	return name
}

// IsDenied reports whether the API server refused a request because of missing permissions.
func IsDenied(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }
