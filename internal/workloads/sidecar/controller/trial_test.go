// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestAnswersOfDryRuns checks which answers of the API server refuse a set, and which are requested again.
func TestAnswersOfDryRuns(t *testing.T) {
	pods := corev1.SchemeGroupVersion.WithResource("pods").GroupResource()
	status := func(code int32, message string, causes ...metav1.StatusCause) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: metav1.StatusReason(http.StatusText(int(code))), Message: message, Details: &metav1.StatusDetails{Causes: causes}}}
	}
	broken := apierrors.NewInternalError(errors.New(`failed calling webhook "x": connection refused`))
	port := field.NewPath("spec", "containers").Index(0).Child("ports").Index(0).Child("containerPort")
	invalid := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "sample", field.ErrorList{field.Invalid(port, 99999, "must be less")})
	policy := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "sample", nil)
	policy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "ValidatingAdmissionPolicy 'x' denied request"}}
	named := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "sample", field.ErrorList{field.Required(field.NewPath("metadata", "labels"), "")})
	for name, test := range map[string]struct {
		answers  []error
		problems int
		// unknown is the number of answers that say nothing, open whether another one is needed, and isError whether the
		// last one is returned.
		unknown       int
		open, isError bool
	}{
		"valid":                                {answers: []error{nil}},
		"invalid":                              {answers: []error{invalid}, problems: 1},
		"a policy answers 422":                 {answers: []error{policy}, unknown: 1, open: true},
		"the metadata is invalid":              {answers: []error{named}, unknown: 1, open: true},
		"a webhook denies with 400":            {answers: []error{status(400, `admission webhook "x" denied the request`)}, unknown: 1, open: true},
		"a webhook denies with 403":            {answers: []error{status(403, `admission webhook "x" denied the request`)}, unknown: 1, open: true},
		"a webhook denies with 429":            {answers: []error{status(429, `admission webhook "x" denied the request`)}, unknown: 1, open: true},
		"400 with a field":                     {answers: []error{status(400, "no", metav1.StatusCause{Field: "spec.containers"})}, unknown: 1, open: true},
		"a webhook is broken":                  {answers: []error{broken}, unknown: 1, open: true},
		"no dry run":                           {answers: []error{apierrors.NewBadRequest(`admission webhook "x" does not support dry run`)}, unknown: 1, open: true},
		"a quota is exceeded":                  {answers: []error{apierrors.NewForbidden(pods, "sample", errors.New("exceeded quota"))}, unknown: 1, open: true},
		"a webhook works again":                {answers: []error{broken, broken, nil}},
		"a webhook works again, and it is bad": {answers: []error{broken, invalid}, problems: 1},
		"five tries":                           {answers: slices.Repeat([]error{broken}, 5), unknown: 5},
		"busy":                                 {answers: []error{broken, apierrors.NewTooManyRequests("busy", 1)}, unknown: 1, open: true, isError: true},
		"no connection":                        {answers: []error{errors.New("connection refused")}, isError: true},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			got := trial{generation: 3}
			var failed error
			var waits []time.Duration
			for _, answer := range test.answers {
				got, failed = got.answered(answer, now)
				waits = append(waits, got.next.Sub(now))
			}
			if len(got.problems) != test.problems || got.unknown != test.unknown || got.isOpen() != test.open || (failed != nil) != test.isError || got.generation != 3 {
				t.Errorf("trial %+v, error %v", got, failed)
			}
			if (got.note != "") != (test.unknown > 0) || test.unknown > 1 && !slices.IsSorted(waits) {
				t.Errorf("note %q, waits %v", got.note, waits)
			}
		})
	}
}
