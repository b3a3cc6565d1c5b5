// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package permission names the resources that clients of Seamark read, and says which permission a
// user lacks and how to get it.
package permission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Resource is a resource, with its group if it has one, as kubectl names it.
type Resource string

// The resources that are read.
const (
	Pods       Resource = "pods"
	Events     Resource = "events"
	Budgets    Resource = "poddisruptionbudgets.policy"
	Nodes      Resource = "nodes"
	Markers    Resource = "podprobemarkers." + v1alpha1.GroupName
	Plans      Resource = "nodepodprobes." + v1alpha1.GroupName
	PlanSlices Resource = "probeplans." + seamarkv1alpha1.GroupName
	Reports    Resource = "probereports." + seamarkv1alpha1.GroupName
)

// The resources that probes which run through the API server create.
const (
	Exec        Resource = "pods/exec"
	PortForward Resource = "pods/portforward"
)

// Required returns the resources without which no pod can be shown.
func Required() []Resource { return []Resource{Pods, Markers} }

// States returns the resources that states are computed from. Without them, states come from the
// marks of pods.
func States() []Resource { return []Resource{Nodes, Plans, PlanSlices, Reports} }

// Missing is a resource that could not be used, although the cluster answered.
type Missing struct {
	// Resource is what could not be used.
	Resource Resource
	// Verb is the permission that is missing, such as list. It is empty if the resource is not
	// installed.
	Verb string
	// Namespace is where the permission is missing. It is empty for the whole cluster.
	Namespace string
	// User is the user who lacks the permission, as the API server knows it. It may contain anything, and is empty if it is not
	// known.
	User string
}

// String describes what is missing.
func (m Missing) String() string {
	if m.Verb == "" {
		return fmt.Sprintf("resource %s is not installed in the cluster", m.Resource)
	}
	return fmt.Sprintf("no permission to %s %s in %s", m.Verb, m.Resource, Scope(m.Namespace))
}

// Fix returns how the user gets what is missing.
func (m Missing) Fix() string {
	switch {
	case m.Verb == "":
		return "install Seamark in the cluster"
	case m.Namespace == "" && m.isRequired():
		return "use a namespace that you have access to (-n), or ask for: " + m.grant()
	default:
		return "ask for: " + m.grant()
	}
}

// grant returns the command by which an administrator grants the permission to the user.
func (m Missing) grant() string {
	switch {
	case m.Resource == Exec || m.Resource == PortForward:
		resources := strings.Join([]string{string(Exec), string(PortForward)}, ",")
		return fmt.Sprintf("kubectl create role seamark-test -n %[1]s --verb=get,create --resource=%[2]s; "+
			"kubectl create rolebinding seamark-test -n %[1]s --role=seamark-test %[3]s", m.Namespace, resources, m.subject())
	case m.Namespace != "" && m.writes():
		return fmt.Sprintf("kubectl create rolebinding seamark-edit -n %s --clusterrole=edit %s", m.Namespace, m.subject())
	case m.Namespace != "":
		return fmt.Sprintf("kubectl create rolebinding seamark-view -n %s --clusterrole=view %s", m.Namespace, m.subject())
	case m.isKind() && m.writes():
		role := "seamark-" + strings.TrimSuffix(string(m.Resource), "."+v1alpha1.GroupName) + "-edit"
		return fmt.Sprintf("kubectl create clusterrolebinding %[1]s --clusterrole=%[1]s %[2]s", role, m.subject())
	case m.isRequired() || m.Resource == Budgets || m.isKind():
		return "kubectl create clusterrolebinding seamark-view --clusterrole=view " + m.subject()
	default:
		return "kubectl create clusterrolebinding seamark-view-states --clusterrole=seamark-view-states " + m.subject()
	}
}

// maxUser is the number of bytes up to which a name is printed.
const maxUser = 253

// subject returns the flag of `kubectl create rolebinding` that names the user, for a shell. The reader has to replace USER if
// the name is not known, or a terminal would not show it as it is, and for requests without credentials: a role for these is
// one for everybody.
func (m Missing) subject() string {
	if m.User == "" || m.User == "system:anonymous" || len(m.User) > maxUser || text.Line(m.User) != m.User {
		return "--user=USER"
	}
	if account, is := strings.CutPrefix(m.User, "system:serviceaccount:"); is {
		return text.Shell([]string{"--serviceaccount=" + account})
	}
	return text.Shell([]string{"--user=" + m.User})
}

// writes reports whether the verb changes objects.
func (m Missing) writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete"}, m.Verb)
}

// isKind reports whether the resource is that of a kind of apps.kruise.io, whose objects the role view shows.
func (m Missing) isKind() bool {
	return strings.HasSuffix(string(m.Resource), "."+v1alpha1.GroupName) && !slices.Contains(States(), m.Resource)
}

func (m Missing) isRequired() bool { return slices.Contains(Required(), m.Resource) }

// Scope names a namespace, or the cluster if it is empty.
func Scope(namespace string) string {
	if namespace == "" {
		return "the cluster"
	}
	return "namespace " + namespace
}
