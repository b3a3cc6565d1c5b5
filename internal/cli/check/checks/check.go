// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checks evaluates an installation of Seamark from outside: from what the API server
// contains. Each result has its evidence and, if something is wrong, the next command to run.
//
// The package is pure: package inspect reads the facts. A fact that could not be read makes the
// results that need it unknown, and does not affect the others.
package checks

import (
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/apierror"
)

// Severity is how serious the result of a check is.
type Severity string

// The severities, from best to worst.
const (
	// OK means that nothing is wrong.
	OK Severity = "ok"
	// Unknown means that the facts could not be read.
	Unknown Severity = "unknown"
	// Warning means that something may be unintended, or works only in part.
	Warning Severity = "warning"
	// Failed means that something does not work.
	Failed Severity = "failed"
)

// Result is the result of one check.
type Result struct {
	// Check is the name of the check, such as "agents".
	Check string `json:"check"`
	// Verdict is the severity.
	Verdict Severity `json:"verdict"`
	// Evidence is what the verdict is based on: one sentence or a few.
	Evidence string `json:"evidence"`
	// Fix is the next command to run, or what to change. It is empty if nothing is wrong.
	Fix string `json:"fix,omitempty"`
	// Denied is whether the facts could not be read because of missing permissions.
	Denied bool `json:"denied,omitempty"`
}

// Read is what was read, or why it could not be read.
type Read[T any] struct {
	// Value is what was read. It is the zero value if there is an error.
	Value T
	// Err is why it could not be read.
	Err error
}

// Facts are what an installation is evaluated from.
type Facts struct {
	// Now is the time of the check.
	Now time.Time
	// Namespace is the namespace of Seamark's programs.
	Namespace string
	// Server is the version of the API server, such as v1.36.3.
	Server Read[string]
	// CRDs are the CustomResourceDefinitions of the groups apps.kruise.io and seamark.dev.
	CRDs Read[[]apiextensionsv1.CustomResourceDefinition]
	// Deployments, DaemonSets and Pods are those of Seamark in the namespace.
	Deployments Read[[]appsv1.Deployment]
	DaemonSets  Read[[]appsv1.DaemonSet]
	Pods        Read[[]corev1.Pod]
	// Configuration is the ConfigMap with the configuration of seamark-workloads, or nil if there is none.
	Configuration Read[*corev1.ConfigMap]
	// Leases are the leases in the namespace.
	Leases Read[[]coordinationv1.Lease]
	// Nodes are all nodes.
	Nodes Read[[]corev1.Node]
	// Policies and Bindings are the ValidatingAdmissionPolicies and their bindings whose names
	// begin with "seamark-".
	Policies Read[[]admissionregistrationv1.ValidatingAdmissionPolicy]
	Bindings Read[[]admissionregistrationv1.ValidatingAdmissionPolicyBinding]
	// Webhook is the webhook for pods on virtual nodes, or nil if there is none.
	Webhook Read[*admissionregistrationv1.MutatingWebhookConfiguration]
	// Access has the answers to Required, in the same order.
	Access Read[[]Access]
	// Grants are the RoleBindings that the manager has created for seamark-workloads. Granter is what lets it write them,
	// or nil if an administrator decides where seamark-workloads may write, or it is not installed.
	Grants  Read[[]rbacv1.RoleBinding]
	Granter Read[*rbacv1.ClusterRoleBinding]
	// Plans, Reports and Markers are all objects of these kinds. Their managedFields are needed
	// for the times of writes.
	Plans   Read[[]v1alpha1.NodePodProbe]
	Reports Read[[]seamarkv1alpha1.ProbeReport]
	Markers Read[[]v1alpha1.PodProbeMarker]
	// Guards are the guards of the cluster, and whether they have effect.
	Guards Guards
	// Kruise is OpenKruise in the cluster.
	Kruise Kruise
}

// Kruise is what is known about OpenKruise in the cluster.
type Kruise struct {
	// Lease is the lease of its manager, or nil if there is none.
	Lease Read[*coordinationv1.Lease]
	// Manager is the Deployment of its manager, or nil if there is none.
	Manager Read[*appsv1.Deployment]
	// Webhook is its validating webhook, or nil if there is none.
	Webhook Read[*admissionregistrationv1.ValidatingWebhookConfiguration]
	// Mutating is the configuration by which its installation is known, or nil if there is none.
	Mutating Read[*admissionregistrationv1.MutatingWebhookConfiguration]
}

// Run evaluates the installation. The results are in a fixed order.
func Run(f *Facts) []Result {
	return slices.Concat(
		f.server(),
		f.definitions(),
		f.program(managerName, true),
		f.program(workloadsName, false),
		f.configuration(),
		f.injector(),
		f.agents(),
		f.nodes(),
		f.versions(),
		f.permissions(),
		f.grants(),
		f.policies(),
		f.guards(),
		f.webhook(),
		f.plans(),
		f.reports(),
		f.markers(),
		f.openKruise(),
		f.lostFields(),
	)
}

// Worst returns the worst verdict of the results, and whether one of them is unknown because of
// missing permissions.
func Worst(results []Result) (worst Severity, denied bool) {
	order := []Severity{OK, Unknown, Warning, Failed}
	rank := 0
	for _, r := range results {
		rank = max(rank, slices.Index(order, r.Verdict))
		denied = denied || r.Denied
	}
	return order[rank], denied
}

func ok(check, evidence string, args ...any) []Result {
	return []Result{{Check: check, Verdict: OK, Evidence: fmt.Sprintf(evidence, args...)}}
}

func failed(check, fix, evidence string, args ...any) []Result {
	return []Result{{Check: check, Verdict: Failed, Evidence: fmt.Sprintf(evidence, args...), Fix: fix}}
}

func warning(check, fix, evidence string, args ...any) []Result {
	return []Result{{Check: check, Verdict: Warning, Evidence: fmt.Sprintf(evidence, args...), Fix: fix}}
}

// unreadable returns the result of a check whose facts could not be read.
func unreadable(check string, err error) []Result {
	r := Result{Check: check, Verdict: Unknown, Evidence: err.Error()}
	if apierror.IsDenied(err) {
		r.Denied, r.Fix = true, "run the command with the permissions of a cluster administrator"
	}
	return []Result{r}
}

// install is what to do if a program does not exist.
const install = "install Seamark (docs/install.md), or name its namespace with --seamark-namespace"

// kubectl returns a command in the namespace of Seamark's programs.
func (f *Facts) kubectl(format string, args ...any) string {
	return fmt.Sprintf("kubectl -n %s "+format, append([]any{f.Namespace}, args...)...)
}

// logs returns the command that shows the logs of a program.
func (f *Facts) logs(component string) string {
	return f.kubectl("logs -l %s=%s --tail=50", componentLabel, component)
}

// agentOn returns the command that shows the agent of a node.
func (f *Facts) agentOn(node string) string {
	return f.kubectl("get pods -l %s=agent --field-selector spec.nodeName=%s", componentLabel, node)
}

// named returns the object with the name, or nil.
func named[T any, P interface {
	*T
	metav1.Object
}](objects []T, name string) P {
	for i := range objects {
		if object := P(&objects[i]); object.GetName() == name {
			return object
		}
	}
	return nil
}

// firstError returns the first error that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// maxNames is the number of names that a list in a message has at most.
const maxNames = 3
