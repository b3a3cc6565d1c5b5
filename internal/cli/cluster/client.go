// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/decoding"
	"github.com/seamark-dev/seamark/internal/program/kinds"
)

// newScheme returns the types that commands read and write.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, (&runtime.SchemeBuilder{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, rbacv1.AddToScheme,
		authorizationv1.AddToScheme, authenticationv1.AddToScheme, coordinationv1.AddToScheme, policyv1.AddToScheme,
		admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme,
		v1alpha1.AddToScheme, v1beta1.AddToScheme, seamarkv1alpha1.AddToScheme,
	}).AddToScheme(scheme)
}

// newClient returns a client with the types of newScheme.
func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	others, err := apiutil.NewDynamicRESTMapper(config, transport)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{
		HTTPClient: transport, Scheme: scheme,
		Mapper: mapper{RESTMapper: others, known: knownResources()},
	})
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	return decoding.NewClient(c), nil
}

// mapper maps the known kinds without a request, and all other kinds as the RESTMapper does. Its errors are only those of the
// RESTMapper: that a kind is not among the known ones does not mean that the API server does not have it.
type mapper struct {
	meta.RESTMapper
	known meta.RESTMapper
}

// RESTMapping returns the mapping of a kind.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if mapping, err := m.known.RESTMapping(kind, versions...); err == nil {
		return mapping, nil
	}
	return m.RESTMapper.RESTMapping(kind, versions...) //nolint:wrapcheck // it is a RESTMapper itself
}

// knownResources maps the kinds that commands use often, so that they need no discovery: it takes
// several requests, which users with few permissions may not be allowed to make. All other kinds
// are discovered.
func knownResources() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for scope, known := range map[meta.RESTScope][]schema.GroupVersionKind{
		meta.RESTScopeNamespace: {
			corev1.SchemeGroupVersion.WithKind("Pod"),
			corev1.SchemeGroupVersion.WithKind("Event"),
			appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
			appsv1.SchemeGroupVersion.WithKind("Deployment"),
			appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
			appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
			appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
			coordinationv1.SchemeGroupVersion.WithKind("Lease"),
			policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
			v1alpha1.GroupVersion().WithKind("PodProbeMarker"),
		},
		meta.RESTScopeRoot: {
			corev1.SchemeGroupVersion.WithKind("Namespace"),
			corev1.SchemeGroupVersion.WithKind("Node"),
			authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"),
			authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"),
			v1alpha1.GroupVersion().WithKind("NodePodProbe"),
			seamarkv1alpha1.GroupVersion().WithKind("ProbePlan"),
			seamarkv1alpha1.GroupVersion().WithKind("ProbeReport"),
		},
	} {
		for _, kind := range known {
			mapper.Add(kind, scope)
		}
	}
	for _, kind := range kinds.Table() {
		scope := meta.RESTScopeNamespace
		if kind.ClusterScoped {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind.GroupVersionKind, scope)
	}
	return mapper
}
