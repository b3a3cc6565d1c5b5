// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/program/apierror"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// missing collects what could not be read. It is safe for concurrent use.
type missing struct {
	mu    sync.Mutex
	found []permission.Missing
}

// note records the error of a request if the resource is not readable, and returns nil then. It
// returns any other error.
func (m *missing) note(err error, verb string, resource permission.Resource, namespace string) error {
	found, err := MissingOf(err, verb, resource, namespace)
	if found == nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.found, *found) {
		m.found = append(m.found, *found)
	}
	return nil
}

// MissingOf returns what is missing if the error of a request means that the resource is not
// readable, or else nil and the error with its exit code.
func MissingOf(err error, verb string, resource permission.Resource, namespace string) (*permission.Missing, error) {
	switch {
	case err == nil:
		return nil, nil //nolint:nilnil // nothing is missing
	case apierrors.IsForbidden(err):
		return &permission.Missing{Resource: resource, Verb: verb, Namespace: namespace, User: apierror.User(err)}, nil
	case IsNotInstalled(err):
		return &permission.Missing{Resource: resource}, nil
	default:
		return nil, Unreachable(fmt.Errorf("%s %s of %s: %w", verb, resource, permission.Scope(namespace), err))
	}
}

// SetMissing sets what could not be read. Without the resource ProbePlan, the plans are in
// NodePodProbes, so it is not missing: OpenKruise is installed.
func (s *Snapshot) SetMissing(found []permission.Missing) {
	found = slices.DeleteFunc(slices.Clone(found), func(m permission.Missing) bool { return m.Resource == permission.PlanSlices && m.Verb == "" })
	s.Missing = slices.SortedFunc(slices.Values(found), func(a, b permission.Missing) int {
		return strings.Compare(string(a.Resource)+" "+a.Verb, string(b.Resource)+" "+b.Verb)
	})
	s.NodesUnread, s.ReportsUnread = !s.Has(permission.Nodes), !s.Has(permission.Reports)
	s.PlansUnread = !s.Has(permission.Plans) || !s.Has(permission.PlanSlices)
}

// Assemble puts the whole plans into the NodePodProbes, given the ProbePlans by node. It requires what
// is missing. A NodePodProbe whose ProbePlans could not be read is removed.
func (s *Snapshot) Assemble(stored map[string][]*seamarkv1alpha1.ProbePlan) {
	for node, npp := range s.Plans {
		if slicing.IsSliced(npp) && !s.Has(permission.PlanSlices) {
			delete(s.Plans, node)
			continue
		}
		s.Plans[node] = slicing.Assemble(npp, stored[node])
	}
}

// IsNotInstalled reports whether the error of a request for objects means that the API server does not
// have the resource.
func IsNotInstalled(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	// For a resource that exists, the answer to a list is never that something was not found, and the answer to another request is
	// an object of the API, in which the API server names what it has not found. Else the client makes one, with the requested name.
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && apierrors.IsNotFound(err) && (status.Status().Details == nil || status.Status().Details.Name == "" ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse))
}

// Unreachable returns the error of a request with the exit code exit.Access if the API server
// cannot be reached or does not accept the user. Any other error gets exit.Failed.
func Unreachable(err error) error {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) && !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) || errors.Is(err, context.Canceled) {
		return exit.Failure(err)
	}
	return exit.NoAccess(err)
}

// Has reports whether the resource could be read.
func (s *Snapshot) Has(resource permission.Resource) bool {
	return !slices.ContainsFunc(s.Missing, func(m permission.Missing) bool { return m.Resource == resource })
}

// Require returns an error with the exit code exit.Access that names all of the resources that
// are missing, or nil.
func (s *Snapshot) Require(resources ...permission.Resource) error {
	var errs []error
	for _, m := range s.Missing {
		if slices.Contains(resources, m.Resource) {
			errs = append(errs, fmt.Errorf("%s; %s", m, m.Fix()))
		}
	}
	return exit.NoAccess(errors.Join(errs...))
}

// Hint returns a sentence for standard error if states come from the marks of pods, because the
// reports could not be read. It is empty otherwise.
func (s *Snapshot) Hint() string {
	for _, resource := range []permission.Resource{permission.Reports, permission.Plans, permission.PlanSlices} {
		for _, m := range s.Missing {
			if m.Resource == resource {
				return fmt.Sprintf("%s: states come from the marks of pods; %s", m, m.Fix())
			}
		}
	}
	return ""
}
