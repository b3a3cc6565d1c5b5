// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gather reads the facts from which package check evaluates an installation. It only reads:
// the reviews of permissions that it creates are questions, and are not stored.
package gather

import (
	"context"
	"errors"
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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/check"
)

const (
	// page is the maximum number of objects in a response.
	page = 500
	// parallel is the maximum number of requests at a time.
	parallel = 8
	// ours is the prefix of the names of Seamark's policies.
	ours = "seamark-"
	// webhookName is the name of the webhook for pods on virtual nodes.
	webhookName = "seamark-webhook"
)

// OpenKruise's objects, as its chart names them.
const (
	kruiseNamespace = "kruise-system"
	kruiseLease     = "kruise-manager"
	kruiseManager   = "kruise-controller-manager"
	kruiseWebhook   = "kruise-validating-webhook-configuration"
)

// Reader reads facts from an API server. Use New to create one.
type Reader struct {
	client    client.Client
	discovery discovery.ServerVersionInterface
}

// New returns a Reader. It makes no request that is not answered by discovery.
func New(config *rest.Config) (*Reader, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme),
		admissionregistrationv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme), seamarkv1alpha1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	return &Reader{client: c, discovery: d}, nil
}

// Facts reads the facts about the installation in the namespace. What could not be read is
// recorded in the facts. The error is that of a context that ended.
func (r *Reader) Facts(ctx context.Context, namespace string, now time.Time) (*check.Facts, error) {
	f := &check.Facts{Now: now, Namespace: namespace}
	in, named := client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "seamark"}
	var tasks errgroup.Group
	tasks.SetLimit(parallel)
	for _, read := range []func(){
		func() { f.Server = r.version() },
		func() { f.CRDs = crds(ctx, r.client) },
		func() { f.Deployments = all(ctx, r.client, &appsv1.DeploymentList{}, deployments, in) },
		func() { f.DaemonSets = all(ctx, r.client, &appsv1.DaemonSetList{}, daemonSets, in) },
		func() { f.Pods = all(ctx, r.client, &corev1.PodList{}, pods, in, named) },
		func() { f.Leases = all(ctx, r.client, &coordinationv1.LeaseList{}, leases, in) },
		func() { f.Nodes = all(ctx, r.client, &corev1.NodeList{}, nodes) },
		func() { f.Policies = policies(ctx, r.client) },
		func() { f.Bindings = bindings(ctx, r.client) },
		func() {
			f.Webhook = get(ctx, r.client, "", webhookName, &admissionregistrationv1.MutatingWebhookConfiguration{})
		},
		func() { f.Plans = all(ctx, r.client, &v1alpha1.NodePodProbeList{}, plans) },
		func() { f.Reports = all(ctx, r.client, &seamarkv1alpha1.ProbeReportList{}, reports) },
		func() { f.Markers = all(ctx, r.client, &v1alpha1.PodProbeMarkerList{}, markers) },
		func() {
			f.Kruise.Lease = get(ctx, r.client, kruiseNamespace, kruiseLease, &coordinationv1.Lease{})
		},
		func() {
			f.Kruise.Manager = get(ctx, r.client, kruiseNamespace, kruiseManager, &appsv1.Deployment{})
		},
		func() {
			f.Kruise.Webhook = get(ctx, r.client, "", kruiseWebhook, &admissionregistrationv1.ValidatingWebhookConfiguration{})
		},
	} {
		tasks.Go(func() error { read(); return nil })
	}
	_ = tasks.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read the installation: %w", err)
	}
	f.Access = r.access(ctx, f)
	return f, nil
}

func (r *Reader) version() check.Read[string] {
	found, err := r.discovery.ServerVersion()
	if err != nil {
		return check.Read[string]{Err: fmt.Errorf("get version of the API server: %w", err)}
	}
	return check.Read[string]{Value: found.GitVersion}
}

// all lists all objects, in pages.
func all[L client.ObjectList, T any](ctx context.Context, c client.Reader, empty L, items func(L) []T, options ...client.ListOption) check.Read[[]T] {
	found := check.Read[[]T]{}
	options = append(options, client.Limit(page))
	for token := ""; ; {
		// Decoding into the list of another page would change the objects of that page.
		list := empty.DeepCopyObject().(L)
		if err := c.List(ctx, list, append(options, client.Continue(token))...); err != nil {
			return check.Read[[]T]{Err: fmt.Errorf("list %s: %w", plural(list), err)}
		}
		found.Value = append(found.Value, items(list)...)
		if token = list.GetContinue(); token == "" {
			return found
		}
	}
}

// plural returns the name of the kind of the objects in the list, such as Pods.
func plural(list client.ObjectList) string {
	return strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List") + "s"
}

// get reads an object; it is nil if it does not exist.
func get[T client.Object](ctx context.Context, c client.Reader, namespace, name string, object T) check.Read[T] {
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return check.Read[T]{}
	case err != nil:
		return check.Read[T]{Err: fmt.Errorf("get %s: %w", name, err)}
	}
	return check.Read[T]{Value: object}
}

func deployments(l *appsv1.DeploymentList) []appsv1.Deployment                 { return l.Items }
func daemonSets(l *appsv1.DaemonSetList) []appsv1.DaemonSet                    { return l.Items }
func pods(l *corev1.PodList) []corev1.Pod                                      { return l.Items }
func leases(l *coordinationv1.LeaseList) []coordinationv1.Lease                { return l.Items }
func nodes(l *corev1.NodeList) []corev1.Node                                   { return l.Items }
func plans(l *v1alpha1.NodePodProbeList) []v1alpha1.NodePodProbe               { return l.Items }
func reports(l *seamarkv1alpha1.ProbeReportList) []seamarkv1alpha1.ProbeReport { return l.Items }
func markers(l *v1alpha1.PodProbeMarkerList) []v1alpha1.PodProbeMarker         { return l.Items }

// crds lists the CRDs of Seamark's groups. The schemas of the others, which may be hundreds, are
// not kept.
func crds(ctx context.Context, c client.Reader) check.Read[[]apiextensionsv1.CustomResourceDefinition] {
	return all(ctx, c, &apiextensionsv1.CustomResourceDefinitionList{},
		func(l *apiextensionsv1.CustomResourceDefinitionList) []apiextensionsv1.CustomResourceDefinition {
			var kept []apiextensionsv1.CustomResourceDefinition
			for i := range l.Items {
				if group := l.Items[i].Spec.Group; group == v1alpha1.GroupName || group == seamarkv1alpha1.GroupName {
					kept = append(kept, l.Items[i])
				}
			}
			return kept
		})
}

func policies(ctx context.Context, c client.Reader) check.Read[[]admissionregistrationv1.ValidatingAdmissionPolicy] {
	return all(ctx, c, &admissionregistrationv1.ValidatingAdmissionPolicyList{},
		func(l *admissionregistrationv1.ValidatingAdmissionPolicyList) []admissionregistrationv1.ValidatingAdmissionPolicy {
			return keep(l.Items, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) string { return p.Name })
		})
}

func bindings(ctx context.Context, c client.Reader) check.Read[[]admissionregistrationv1.ValidatingAdmissionPolicyBinding] {
	return all(ctx, c, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
		func(l *admissionregistrationv1.ValidatingAdmissionPolicyBindingList) []admissionregistrationv1.ValidatingAdmissionPolicyBinding {
			return keep(l.Items, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) string { return b.Spec.PolicyName })
		})
}

// keep returns the items whose name is that of an object of Seamark.
func keep[T any](items []T, name func(*T) string) []T {
	var kept []T
	for i := range items {
		if strings.HasPrefix(name(&items[i]), ours) {
			kept = append(kept, items[i])
		}
	}
	return kept
}

// access asks the API server whether the accounts of the programs have their permissions.
func (r *Reader) access(ctx context.Context, f *check.Facts) check.Read[[]check.Access] {
	required, err := f.Required()
	if err != nil {
		return check.Read[[]check.Access]{Err: err}
	}
	answers := make([]check.Access, len(required))
	review := func(i int) error {
		allowed, err := r.review(ctx, f.Namespace, required[i])
		answers[i] = check.Access{Permission: required[i], Allowed: allowed}
		return err
	}
	// If the user may not ask, the first answer says so.
	if err := review(0); err != nil {
		return check.Read[[]check.Access]{Err: err}
	}
	var tasks errgroup.Group
	tasks.SetLimit(parallel)
	for i := 1; i < len(required); i++ {
		tasks.Go(func() error { return review(i) })
	}
	if err := tasks.Wait(); err != nil {
		return check.Read[[]check.Access]{Err: err}
	}
	return check.Read[[]check.Access]{Value: answers}
}

// review asks the API server whether an account in the namespace has the permission.
func (r *Reader) review(ctx context.Context, namespace string, permission check.Permission) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + namespace + ":" + permission.Account,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &permission.Attributes,
	}}
	if err := r.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review the permissions of %s: %w", permission.Account, err)
	}
	return review.Status.Allowed, nil
}
