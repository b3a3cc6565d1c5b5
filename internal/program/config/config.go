// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config loads the configuration of a program from its command line and its
// configuration file. A flag takes precedence over the file, and the file over the default.
// The result is complete and valid; otherwise an error names every invalid field, its value,
// and what is allowed.
package config

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// pathAnnotation is the annotation of a flag that contains the path of the field that the
// flag sets.
const pathAnnotation = "seamark.dev/field"

// kind defines how one kind of configuration is loaded.
type kind[C any] struct {
	name string
	// defaults sets the defaults of unset fields.
	defaults func(*C)
	// bind defines the flags that set fields of the configuration. The current values of the
	// fields are the defaults of the flags.
	bind func(flags, *C)
	// complete sets the fields that depend on both file and flags. It can be nil.
	complete func(*C)
	// validate checks the complete configuration.
	validate func(*C) field.ErrorList
}

// source is a command line with the path of a configuration file and flags that override
// fields of it.
type source[C any] struct {
	kind kind[C]
	set  *pflag.FlagSet
	file string
}

// newSource defines the flags of a kind in set.
func newSource[C any](set *pflag.FlagSet, k kind[C]) *source[C] {
	s := &source[C]{kind: k, set: set}
	set.StringVar(&s.file, "config", "", "path of a configuration file of kind "+k.name+"; other flags take precedence over it")
	defaults := new(C)
	k.defaults(defaults)
	k.bind(flags{set}, defaults)
	return s
}

// load returns the configuration. The command line must have been parsed. The errors are
// joined, and each names a flag or a field of the file.
func (s *source[C]) load() (*C, error) {
	c := new(C)
	if s.file != "" {
		var err error
		if c, err = read[C](s.file, s.kind.name); err != nil {
			return nil, fmt.Errorf("--config=%q: %w", s.file, err)
		}
	}
	s.kind.defaults(c)
	override := pflag.NewFlagSet(s.set.Name(), pflag.ContinueOnError)
	s.kind.bind(flags{override}, c)
	var wrong []error
	given := map[string]*pflag.Flag{}
	s.set.Visit(func(f *pflag.Flag) {
		if own := override.Lookup(f.Name); own != nil {
			wrong = append(wrong, own.Value.Set(f.Value.String()))
			given[own.Annotations[pathAnnotation][0]] = f
		}
	})
	if s.kind.complete != nil {
		s.kind.complete(c)
	}
	for _, e := range s.kind.validate(c) {
		wrong = append(wrong, byFlag(e, given[e.Field]))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return c, nil
}

// byFlag returns an error that names the flag instead of the field if a flag set the field.
func byFlag(e *field.Error, f *pflag.Flag) error {
	if f == nil {
		return e
	}
	value := f.Value.String()
	if f.Value.Type() == "string" {
		value = strconv.Quote(value)
	}
	return fmt.Errorf("--%s=%s: %s", f.Name, value, e.Detail)
}

// flags defines flags that set fields, and records the path of each field.
type flags struct{ set *pflag.FlagSet }

func (f flags) text(to *string, name, path, usage string) {
	f.set.StringVar(to, name, *to, usage)
	f.remember(name, path)
}

func (f flags) number(to *int32, name, path, usage string) {
	f.set.Int32Var(to, name, *to, usage)
	f.remember(name, path)
}

func (f flags) bool(to *bool, name, path, usage string) {
	f.set.BoolVar(to, name, *to, usage)
	f.remember(name, path)
}

func (f flags) remember(name, path string) {
	f.set.Lookup(name).Annotations = map[string][]string{pathAnnotation: {path}}
}
