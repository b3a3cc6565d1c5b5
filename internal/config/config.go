// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config makes the configuration of a program out of its command line and its
// configuration file: a flag wins over the file, and the file over the default. What it
// returns is complete and valid, or an error names every field that is wrong, its value,
// and what is allowed.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// pathAnnotation is the annotation of a flag that names the field that it sets.
const pathAnnotation = "seamark.dev/field"

// kind is what there is to know of one kind of configuration.
type kind[C any] struct {
	name string
	// defaults fills in what the file leaves unset.
	defaults func(*C)
	// bind has flags set the fields of a configuration, whose values they have so far.
	bind func(flags, *C)
	// complete fills in what follows from file and flags together; nil where nothing does.
	complete func(*C)
	// validate checks what is complete.
	validate func(*C) field.ErrorList
}

// source is a command line that names a configuration file and overrides parts of it.
type source[C any] struct {
	kind kind[C]
	set  *pflag.FlagSet
	file string
}

// newSource defines the flags of a kind in set.
func newSource[C any](set *pflag.FlagSet, k kind[C]) *source[C] {
	s := &source[C]{kind: k, set: set}
	set.StringVar(&s.file, "config", "", "configuration file, a "+k.name+"; what the other flags set wins over it")
	defaults := new(C)
	k.defaults(defaults)
	k.bind(flags{set}, defaults)
	return s
}

// load returns the configuration, once the command line has been parsed. Its errors are
// joined: each names a flag, or a field of the file.
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

// byFlag names the flag that set the field, where one did.
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

// JSON returns the configuration as one value for the log: it holds no secrets.
func JSON[C any](c *C) (json.RawMessage, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	return text, nil
}

// flags defines flags that set fields, and remembers which.
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
