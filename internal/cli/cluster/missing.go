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

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/exit"
)

// Resource is a resource, with its group if it has one, as kubectl names it.
type Resource string

// The resources that Read reads.
const (
	Pods    Resource = "pods"
	Nodes   Resource = "nodes"
	Markers Resource = "podprobemarkers." + v1alpha1.GroupName
	Plans   Resource = "nodepodprobes." + v1alpha1.GroupName
	Reports Resource = "probereports." + seamarkv1alpha1.GroupName
)

// The resources that `seamark test` creates.
const (
	Exec        Resource = "pods/exec"
	PortForward Resource = "pods/portforward"
)

// Missing is a resource that could not be read, although the cluster answered.
type Missing struct {
	// Resource is what could not be read.
	Resource Resource
	// Verb is the permission that is missing, such as list. It is empty if the resource is not
	// installed.
	Verb string
	// Namespace is where the permission is missing. It is empty for the whole cluster.
	Namespace string
}

// String describes what is missing.
func (m Missing) String() string {
	if m.Verb == "" {
		return fmt.Sprintf("resource %s is not installed in the cluster", m.Resource)
	}
	return fmt.Sprintf("no permission to %s %s in %s", m.Verb, m.Resource, scope(m.Namespace))
}

// Fix returns how to get what is missing.
func (m Missing) Fix() string {
	switch {
	case m.Verb == "":
		return "install Seamark in the cluster"
	case m.Resource == Exec || m.Resource == PortForward:
		return fmt.Sprintf("ask for: kubectl create role seamark-test -n %[1]s --verb=get,create --resource=%[2]s; "+
			"kubectl create rolebinding seamark-test -n %[1]s --role=seamark-test --user=YOU", m.Namespace, strings.Join([]string{string(Exec), string(PortForward)}, ","))
	case m.Namespace != "":
		return fmt.Sprintf("ask for: kubectl create rolebinding seamark-view -n %s --clusterrole=view --user=YOU", m.Namespace)
	case m.Resource == Pods || m.Resource == Markers:
		return "use a namespace that you have access to (-n), or ask for: " +
			"kubectl create clusterrolebinding seamark-view --clusterrole=view --user=YOU"
	default:
		return "ask for: kubectl create clusterrolebinding seamark-view-states --clusterrole=seamark-view-states --user=YOU"
	}
}

func scope(namespace string) string {
	if namespace == "" {
		return "the cluster"
	}
	return "namespace " + namespace
}

// missing collects what could not be read. It is safe for concurrent use.
type missing struct {
	mu    sync.Mutex
	found []Missing
}

// note records the error of a request if the resource is not readable, and returns nil then. It
// returns any other error.
func (m *missing) note(err error, verb string, resource Resource, namespace string) error {
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
func MissingOf(err error, verb string, resource Resource, namespace string) (*Missing, error) {
	switch {
	case err == nil:
		return nil, nil //nolint:nilnil // nothing is missing
	case apierrors.IsForbidden(err):
		return &Missing{Resource: resource, Verb: verb, Namespace: namespace}, nil
	case IsNotInstalled(err):
		return &Missing{Resource: resource}, nil
	default:
		return nil, Unreachable(fmt.Errorf("%s %s of %s: %w", verb, resource, scope(namespace), err))
	}
}

// SetMissing sets what could not be read.
func (s *Snapshot) SetMissing(found []Missing) {
	s.Missing = slices.SortedFunc(slices.Values(found), func(a, b Missing) int {
		return strings.Compare(string(a.Resource)+" "+a.Verb, string(b.Resource)+" "+b.Verb)
	})
	s.NodesUnread, s.PlansUnread, s.ReportsUnread = !s.Has(Nodes), !s.Has(Plans), !s.Has(Reports)
}

// IsNotInstalled reports whether the error of a list means that the API server does not have the
// resource.
func IsNotInstalled(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	// For a resource that exists, the answer to a list is never that something was not found.
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && apierrors.IsNotFound(err) &&
		(status.Status().Details == nil || status.Status().Details.Name == "")
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

// Has reports whether the resource is among what is missing.
func (s *Snapshot) Has(resource Resource) bool {
	return !slices.ContainsFunc(s.Missing, func(m Missing) bool { return m.Resource == resource })
}

// Require returns an error with the exit code exit.Access that names all of the resources that
// are missing, or nil.
func (s *Snapshot) Require(resources ...Resource) error {
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
	for _, resource := range []Resource{Reports, Plans} {
		for _, m := range s.Missing {
			if m.Resource == resource {
				return fmt.Sprintf("%s: states come from the marks of pods; %s", m, m.Fix())
			}
		}
	}
	return ""
}
