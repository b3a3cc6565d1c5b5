// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exit defines the exit codes of all commands of the program seamark, and the errors that
// lead to them. An error of another type is a usage error, so a command wraps each error that is
// not the user's input.
package exit

import "errors"

// The exit codes.
const (
	// OK means success.
	OK = 0
	// Failed means that the command failed, or found something to report, such as a test that did
	// not pass.
	Failed = 1
	// Usage means bad input: flags, names, expressions or manifests.
	Usage = 2
	// Access means that the cluster cannot be reached, or that the user lacks a permission without
	// which the command has no answer.
	Access = 3
)

// coded is an error with an exit code.
type coded struct {
	err  error
	code int
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

// Failure returns an error with the exit code Failed. It returns nil if err is nil.
func Failure(err error) error { return with(err, Failed) }

// NoAccess returns an error with the exit code Access. It returns nil if err is nil.
func NoAccess(err error) error { return with(err, Access) }

// with keeps the code of an error that has one.
func with(err error, code int) error {
	var known *coded
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &coded{err, code}
}

// Code returns the exit code of a command that returned err.
func Code(err error) int {
	var known *coded
	switch {
	case err == nil:
		return OK
	case errors.As(err, &known):
		return known.code
	default:
		return Usage
	}
}
