// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inspect reads the facts from which package checks evaluates an installation. It only reads:
// the reviews of permissions that it creates are questions, and are not stored, and the deletion of a guarded pod is a dry run.
package inspect

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/check/checks"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	// parallel is the maximum number of requests at a time.
	parallel = 8
	// ours is the prefix of the names of Seamark's policies.
	ours = "seamark-"
	// configurationName is the name of the ConfigMap of seamark-workloads.
	configurationName = "seamark-workloads"
	// webhookName is the name of the webhook for pods on virtual nodes.
	webhookName = "seamark-webhook"
	// granterName is the name of the ClusterRoleBinding that lets the manager write RoleBindings for seamark-workloads.
	granterName = "seamark-workloads-grants"
)

// OpenKruise's objects, as its chart names them.
const (
	kruiseNamespace = "kruise-system"
	kruiseLease     = planning.OpenKruiseLease
	kruiseManager   = "kruise-controller-manager"
	kruiseWebhook   = "kruise-validating-webhook-configuration"
)

// Facts reads the facts about the installation in the namespace. What could not be read is
// recorded in the facts. The error is that of a configuration without an address, or of a context that
// ended.
func Facts(ctx context.Context, connection cluster.Connection, namespace string, now time.Time) (*checks.Facts, error) {
	server, err := discovery.NewDiscoveryClientForConfig(connection.Config)
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	c, f := connection.Client, &checks.Facts{Now: now, Namespace: namespace}
	in, named := client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "seamark"}
	var tasks errgroup.Group
	tasks.SetLimit(parallel)
	for _, read := range []func(){
		func() { f.Server = version(server) },
		func() { f.CRDs = all(ctx, c, &apiextensionsv1.CustomResourceDefinitionList{}, isOurGroup) },
		func() { f.Deployments = all[appsv1.Deployment](ctx, c, &appsv1.DeploymentList{}, nil, in) },
		func() { f.DaemonSets = all[appsv1.DaemonSet](ctx, c, &appsv1.DaemonSetList{}, nil, in) },
		func() { f.Pods = all[corev1.Pod](ctx, c, &corev1.PodList{}, nil, in, named) },
		func() { f.Configuration = get(ctx, c, namespace, configurationName, &corev1.ConfigMap{}) },
		func() { f.Leases = all[coordinationv1.Lease](ctx, c, &coordinationv1.LeaseList{}, nil, in) },
		func() { f.Nodes = all[corev1.Node](ctx, c, &corev1.NodeList{}, nil) },
		func() {
			f.Policies = all(ctx, c, &admissionregistrationv1.ValidatingAdmissionPolicyList{},
				func(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
					return strings.HasPrefix(p.Name, ours)
				})
		},
		func() {
			f.Bindings = all(ctx, c, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
				func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
					return strings.HasPrefix(b.Spec.PolicyName, ours)
				})
		},
		func() {
			f.Webhook = get(ctx, c, "", webhookName, &admissionregistrationv1.MutatingWebhookConfiguration{})
		},
		func() {
			f.Grants = all[rbacv1.RoleBinding](ctx, c, &rbacv1.RoleBindingList{}, nil, client.MatchingLabels(grants.OfManager()))
		},
		func() { f.Guards = readGuards(ctx, c) },
		func() { f.Granter = get(ctx, c, "", granterName, &rbacv1.ClusterRoleBinding{}) },
		func() { f.Plans = plans(ctx, c) },
		func() { f.Reports = all[seamarkv1alpha1.ProbeReport](ctx, c, &seamarkv1alpha1.ProbeReportList{}, nil) },
		func() { f.Markers = all[v1alpha1.PodProbeMarker](ctx, c, &v1alpha1.PodProbeMarkerList{}, nil) },
		func() { f.Kruise.Lease = get(ctx, c, kruiseNamespace, kruiseLease, &coordinationv1.Lease{}) },
		func() { f.Kruise.Manager = get(ctx, c, kruiseNamespace, kruiseManager, &appsv1.Deployment{}) },
		func() {
			f.Kruise.Webhook = get(ctx, c, "", kruiseWebhook, &admissionregistrationv1.ValidatingWebhookConfiguration{})
		},
		func() {
			f.Kruise.Mutating = get(ctx, c, "", planning.OpenKruiseWebhook, &admissionregistrationv1.MutatingWebhookConfiguration{})
		},
	} {
		tasks.Go(func() error { read(); return nil })
	}
	_ = tasks.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read the installation: %w", err)
	}
	f.Access = access(ctx, c, f)
	return f, nil
}

func version(server discovery.ServerVersionInterface) checks.Read[string] {
	found, err := server.ServerVersion()
	if err != nil {
		return checks.Read[string]{Err: fmt.Errorf("get version of the API server: %w", err)}
	}
	return checks.Read[string]{Value: found.GitVersion}
}

// plans returns the NodePodProbes with the whole plans. It lists the ProbePlans first: those that are newer than the
// NodePodProbe would seem not to run.
func plans(ctx context.Context, c client.Reader) checks.Read[[]v1alpha1.NodePodProbe] {
	slices := all[seamarkv1alpha1.ProbePlan](ctx, c, &seamarkv1alpha1.ProbePlanList{}, nil)
	found := all[v1alpha1.NodePodProbe](ctx, c, &v1alpha1.NodePodProbeList{}, nil)
	if found.Err != nil || cluster.IsNotInstalled(slices.Err) {
		return found
	}
	if slices.Err != nil {
		return checks.Read[[]v1alpha1.NodePodProbe]{Err: slices.Err}
	}
	byNode := map[string][]*seamarkv1alpha1.ProbePlan{}
	for i := range slices.Value {
		byNode[slices.Value[i].NodeName] = append(byNode[slices.Value[i].NodeName], &slices.Value[i])
	}
	for i := range found.Value {
		found.Value[i] = *slicing.Assemble(&found.Value[i], byNode[found.Value[i].Name])
	}
	return found
}

// all lists the objects of a kind, or only those for which keep returns true: the others, such as the
// schemas of hundreds of other CRDs, are not kept in memory.
func all[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c client.Reader, empty client.ObjectList, keep func(P) bool, options ...client.ListOption) checks.Read[[]T] {
	var found []T
	err := cluster.Each(ctx, c, empty, func(object P) {
		if keep == nil || keep(object) {
			found = append(found, *object)
		}
	}, options...)
	if err != nil {
		kind := strings.TrimSuffix(reflect.TypeOf(empty).Elem().Name(), "List")
		return checks.Read[[]T]{Err: fmt.Errorf("list %ss: %w", kind, err)}
	}
	return checks.Read[[]T]{Value: found}
}

func isOurGroup(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return definition.Spec.Group == v1alpha1.GroupName || definition.Spec.Group == seamarkv1alpha1.GroupName
}

// get reads an object; it is nil if it does not exist.
func get[T client.Object](ctx context.Context, c client.Reader, namespace, name string, object T) checks.Read[T] {
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return checks.Read[T]{}
	case err != nil:
		return checks.Read[T]{Err: fmt.Errorf("get %s: %w", name, err)}
	}
	return checks.Read[T]{Value: object}
}

// access asks the API server whether the accounts of the programs have their permissions.
func access(ctx context.Context, c client.Client, f *checks.Facts) checks.Read[[]checks.Access] {
	required, err := f.Required()
	if err != nil {
		return checks.Read[[]checks.Access]{Err: err}
	}
	answers := make([]checks.Access, len(required))
	ask := func(i int) error {
		allowed, err := review(ctx, c, f.Namespace, required[i])
		answers[i] = checks.Access{Permission: required[i], Allowed: allowed}
		return err
	}
	// If the user may not ask, the first answer says so.
	if err := ask(0); err != nil {
		return checks.Read[[]checks.Access]{Err: err}
	}
	var tasks errgroup.Group
	tasks.SetLimit(parallel)
	for i := 1; i < len(required); i++ {
		tasks.Go(func() error { return ask(i) })
	}
	if err := tasks.Wait(); err != nil {
		return checks.Read[[]checks.Access]{Err: err}
	}
	return checks.Read[[]checks.Access]{Value: answers}
}

// review asks the API server whether an account in the namespace has the permission.
func review(ctx context.Context, c client.Client, namespace string, permission checks.Permission) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + namespace + ":" + permission.Account,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &permission.Attributes,
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review the permissions of %s: %w", permission.Account, err)
	}
	return review.Status.Allowed, nil
}
