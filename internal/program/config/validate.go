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

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
)

// bindElected defines the flags of programs of which one is the leader.
func bindElected(f flags, program string, election *v1alpha1.LeaderElection, metrics, health *v1alpha1.Endpoint) {
	f.bool(
		election.LeaderElect, "leader-elect", "leaderElection.leaderElect", "wait for leadership before doing any work; if false, only one "+program+" may run",
	)
	f.text(
		&election.ResourceNamespace, "leader-election-namespace", "leaderElection.resourceNamespace",
		"namespace of the lease; default the namespace of the pod, or outside a pod "+v1alpha1.DefaultNamespace,
	)
	f.text(&metrics.BindAddress, "metrics-bind-address", "metrics.bindAddress", "address that serves /metrics, host:port; 0 disables it")
	f.text(&health.BindAddress, "health-probe-bind-address", "health.bindAddress", "address that serves /healthz and /readyz, host:port; 0 disables it")
}

// bindShared defines the flags of all programs.
func bindShared(f flags, pprof *v1alpha1.Endpoint, logging *v1alpha1.Logging) {
	f.text(
		&pprof.BindAddress, "pprof-bind-address", "pprof.bindAddress",
		"loopback address that serves profiles at /debug/pprof/, such as 127.0.0.1:6060; 0 disables it",
	)
	f.text((*string)(&logging.Format), "logging-format", "logging.format", "format of log lines, text or json")
	f.set.Int32VarP(&logging.Verbosity, "v", "v", logging.Verbosity, "log verbosity, 0 to 10; 0 logs state transitions, 1 also logs every write")
	f.remember("v", "logging.verbosity")
}

// problems collects the invalid fields of a configuration.
type problems struct{ list field.ErrorList }

func (p *problems) add(path *field.Path, value any, allowed string) {
	p.list = append(p.list, field.Invalid(path, value, allowed))
}

// sorted returns the problems by path.
func (p *problems) sorted() field.ErrorList {
	slices.SortFunc(p.list, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return p.list
}

// elected checks the fields of programs of which one is the leader.
func (p *problems) elected(election v1alpha1.LeaderElection, metrics, health v1alpha1.Endpoint) {
	p.name(field.NewPath("leaderElection", "resourceNamespace"), election.ResourceNamespace, validation.ValidateNamespaceName)
	p.address(field.NewPath("metrics", "bindAddress"), metrics.BindAddress)
	p.address(field.NewPath("health", "bindAddress"), health.BindAddress)
}

// shared checks the fields that all configurations have.
func (p *problems) shared(pprof v1alpha1.Endpoint, logging v1alpha1.Logging) {
	p.loopback(field.NewPath("pprof", "bindAddress"), pprof.BindAddress)
	p.between(field.NewPath("logging", "verbosity"), logging.Verbosity, 0, 10)
	oneOf(p, field.NewPath("logging", "format"), logging.Format, v1alpha1.LogText, v1alpha1.LogJSON)
}

// address checks the syntax. The server reports an address that is in use.
func (p *problems) address(path *field.Path, address string) {
	if address == "0" {
		return
	}
	_, _, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.ResolveTCPAddr("tcp", address)
	}
	if err != nil {
		p.add(path, address, fmt.Sprintf("must be host:port, :port or 0: %v", err))
	}
}

// loopback rejects host names: what they resolve to can change.
func (p *problems) loopback(path *field.Path, address string) {
	if at, err := netip.ParseAddrPort(address); address != "0" && (err != nil || !at.Addr().IsLoopback()) {
		p.add(path, address, "must be a loopback address and port, such as 127.0.0.1:6060 or [::1]:6060, or 0")
	}
}

func (p *problems) between(path *field.Path, value, least, most int32) {
	if value < least || value > most {
		p.add(path, value, fmt.Sprintf("must be between %d and %d, inclusive", least, most))
	}
}

func (p *problems) atLeast(path *field.Path, value, least int32) {
	if value < least {
		p.add(path, value, fmt.Sprintf("must be greater than or equal to %d", least))
	}
}

func (p *problems) absolute(path *field.Path, file string) {
	if !filepath.IsAbs(file) {
		p.add(path, file, "must be an absolute path")
	}
}

func (p *problems) absoluteIfSet(path *field.Path, file string) {
	if file != "" {
		p.absolute(path, file)
	}
}

func (p *problems) name(path *field.Path, name string, validate validation.ValidateNameFunc) {
	if wrong := validate(name, false); len(wrong) > 0 {
		p.add(path, name, strings.Join(wrong, "; "))
	}
}

func oneOf[T ~string](p *problems, path *field.Path, value T, allowed ...T) {
	if !slices.Contains(allowed, value) {
		p.list = append(p.list, field.NotSupported(path, value, allowed))
	}
}
