// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exit defines the exit codes of all commands of the program seamark, and the errors that
// lead to them. An error of another type is a usage error, so a command wraps each error that is
// not the user's input.
package exit

import (
	"cmp"

	"github.com/spf13/cobra"
)

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
	if err == nil || codeOf(err) != OK {
		return err
	}
	return &coded{err, code}
}

// AsKubectl gives all errors of the command and of those below it the exit code of kubectl's commands, Failed. It is called once, after
// the commands below it were added.
func AsKubectl(command *cobra.Command) {
	command.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if parent := command.Parent(); parent != nil {
			err = parent.FlagErrorFunc()(cmd, err)
		}
		return &coded{err, Failed}
	})
	failWithOne(command)
}

func failWithOne(command *cobra.Command) {
	run := command.RunE
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			return &coded{err, Failed}
		}
		return nil
	}
	for _, below := range command.Commands() {
		failWithOne(below)
	}
}

// Code returns the exit code of a command that returned err. It is the highest one of errors that are
// joined, whatever their order; errors without a code do not count if others have one.
func Code(err error) int {
	if err == nil {
		return OK
	}
	return cmp.Or(codeOf(err), Usage)
}

// codeOf returns the code of an error, or the highest one of those that are joined. It is OK if none
// has one.
func codeOf(err error) int {
	switch e := err.(type) { //nolint:errorlint // each error of the chain is visited
	case *coded:
		return e.code
	case interface{ Unwrap() error }:
		return codeOf(e.Unwrap())
	case interface{ Unwrap() []error }:
		highest := OK
		for _, joined := range e.Unwrap() {
			highest = max(highest, codeOf(joined))
		}
		return highest
	}
	return OK
}
