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
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
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

// CommandLine is a command line with the path of a configuration file of the kind C and flags that
// override fields of it.
type CommandLine[C any] struct {
	// Kubeconfig is how the program connects to the API server.
	Kubeconfig Kubeconfig

	kind kind[C]
	set  *pflag.FlagSet
	file string
}

// newCommandLine defines the flags of a kind in set, which the caller parses.
func newCommandLine[C any](set *pflag.FlagSet, k kind[C]) *CommandLine[C] {
	l := &CommandLine[C]{kind: k, set: set}
	l.Kubeconfig.Bind(set)
	set.StringVar(&l.file, "config", "", "path of a configuration file of kind "+k.name+"; other flags take precedence over it")
	defaults := new(C)
	k.defaults(defaults)
	k.bind(flags{set}, defaults)
	return l
}

// Load returns the configuration. The command line must have been parsed. The errors are
// joined, and each names a flag or a field of the file.
func (l *CommandLine[C]) Load() (*C, error) {
	c := new(C)
	if l.file != "" {
		var err error
		if c, err = read[C](l.file, l.kind.name); err != nil {
			return nil, fmt.Errorf("--config=%q: %w", l.file, err)
		}
	}
	l.kind.defaults(c)
	override := pflag.NewFlagSet(l.set.Name(), pflag.ContinueOnError)
	l.kind.bind(flags{override}, c)
	var wrong []error
	given := map[string]*pflag.Flag{}
	l.set.Visit(func(f *pflag.Flag) {
		if own := override.Lookup(f.Name); own != nil {
			wrong = append(wrong, own.Value.Set(f.Value.String()))
			given[own.Annotations[pathAnnotation][0]] = f
		}
	})
	if l.kind.complete != nil {
		l.kind.complete(c)
	}
	for _, e := range l.kind.validate(c) {
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

func (f flags) list(to *[]string, name, path, usage string) {
	f.set.Var((*list)(to), name, usage)
	f.remember(name, path)
}

// list is the value of a flag: words, separated by commas.
type list []string

// String implements pflag.Value.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements pflag.Value.
func (l *list) Set(text string) error {
	*l = nil
	if text != "" {
		*l = strings.Split(text, ",")
	}
	return nil
}

// Type implements pflag.Value.
func (*list) Type() string { return "list" }

func (f flags) remember(name, path string) {
	f.set.Lookup(name).Annotations = map[string][]string{pathAnnotation: {path}}
}

// Kubeconfig is the path of a kubeconfig file, or empty for the default: $KUBECONFIG,
// ~/.kube/config, or the pod's service account.
type Kubeconfig string

// Bind defines the flag --kubeconfig in set.
func (k *Kubeconfig) Bind(set *pflag.FlagSet) {
	set.StringVar((*string)(k), "kubeconfig", "", "path of the kubeconfig file; default $KUBECONFIG, ~/.kube/config, or the pod's service account")
}

// Client returns the configuration of a client with the user agent.
func (k Kubeconfig) Client(userAgent string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = string(k)
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig=%q: load the API server's address: %w", k, err)
	}
	cfg.UserAgent = userAgent
	return cfg, nil
}
