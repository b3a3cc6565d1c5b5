// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
)

func bindKubeconfig(set *pflag.FlagSet, to *string) {
	set.StringVar(to, "kubeconfig", "", "file that says how to reach the API server; without it $KUBECONFIG, ~/.kube/config, or the pod's service account")
}

// bindShared defines the flags that both programs have.
func bindShared(f flags, pprof *v1alpha1.Endpoint, logging *v1alpha1.Logging) {
	f.text(&pprof.BindAddress, "pprof-bind-address", "pprof.bindAddress", "loopback address and port that serves profiles at /debug/pprof/, like 127.0.0.1:6060; 0 serves none")
	f.text((*string)(&logging.Format), "logging-format", "logging.format", "form of the log's lines, text or json")
	f.set.Int32VarP(&logging.Verbosity, "v", "v", logging.Verbosity, "log verbosity, 0 to 10; at 0 changes of state, at 1 each write too")
	f.remember("v", "logging.verbosity")
}

// problems collects what is wrong with a configuration.
type problems struct{ list field.ErrorList }

func (w *problems) add(path *field.Path, value any, allowed string) {
	w.list = append(w.list, field.Invalid(path, value, allowed))
}

// sorted returns them by path.
func (w *problems) sorted() field.ErrorList {
	slices.SortFunc(w.list, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return w.list
}

// shared checks what both programs have.
func (w *problems) shared(pprof v1alpha1.Endpoint, logging v1alpha1.Logging) {
	w.loopback(field.NewPath("pprof", "bindAddress"), pprof.BindAddress)
	w.between(field.NewPath("logging", "verbosity"), logging.Verbosity, 0, 10)
	oneOf(w, field.NewPath("logging", "format"), logging.Format, v1alpha1.LogText, v1alpha1.LogJSON)
}

// address tells whether it is an address; the server tells whether it is free.
func (w *problems) address(path *field.Path, address string) {
	if address == "0" {
		return
	}
	_, _, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.ResolveTCPAddr("tcp", address)
	}
	if err != nil {
		w.add(path, address, fmt.Sprintf("want host:port, :port or 0: %v", err))
	}
}

// loopback takes no names, which may come to stand for something else.
func (w *problems) loopback(path *field.Path, address string) {
	if at, err := netip.ParseAddrPort(address); address != "0" && (err != nil || !at.Addr().IsLoopback()) {
		w.add(path, address, "want a loopback address and a port, like 127.0.0.1:6060 or [::1]:6060, or 0")
	}
}

func (w *problems) between(path *field.Path, value, least, most int32) {
	if value < least || value > most {
		w.add(path, value, fmt.Sprintf("want %d to %d", least, most))
	}
}

func (w *problems) atLeast(path *field.Path, value, least int32) {
	if value < least {
		w.add(path, value, fmt.Sprintf("want at least %d", least))
	}
}

func (w *problems) absolute(path *field.Path, file string) {
	if !filepath.IsAbs(file) {
		w.add(path, file, "want an absolute path")
	}
}

func (w *problems) name(path *field.Path, name string, validate validation.ValidateNameFunc) {
	if wrong := validate(name, false); len(wrong) > 0 {
		w.add(path, name, strings.Join(wrong, "; "))
	}
}

func oneOf[T ~string](w *problems, path *field.Path, value T, allowed ...T) {
	if !slices.Contains(allowed, value) {
		w.list = append(w.list, field.NotSupported(path, value, allowed))
	}
}
