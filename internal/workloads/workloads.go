// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads assembles seamark-workloads: the caches, the controllers of the workloads, and
// the servers of metrics and health.
package workloads

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/startup"
)

// Name is the program's name in leases and events.
const Name = "seamark-workloads"

// Options configure the program.
type Options struct {
	// Config connects to the API server. Its rate limits are ignored: the API server's
	// priority and fairness limits requests.
	Config *rest.Config
	// LeaderElection makes the controllers wait until this process is the leader. Without
	// it, only one process may run.
	LeaderElection bool
	// LeaderElectionNamespace is the namespace of the lease.
	LeaderElectionNamespace string
	// MetricsBindAddress and HealthProbeBindAddress are the addresses of the two servers,
	// host:port. "0" disables a server.
	MetricsBindAddress, HealthProbeBindAddress string
	// PprofBindAddress is the address that serves profiles, host:port. Empty or "0" disables
	// it. The host must be a loopback address, because profiles expose internals.
	PprofBindAddress string
	// Controllers are the controllers to run.
	Controllers configv1alpha1.WorkloadControllers
	// RecreateForClaims is the gate RecreatePodWhenChangeVCTInCloneSetGate: an update of a CloneSet
	// recreates pods whose claims have changed.
	RecreateForClaims bool
	// PreDownloadDaemonSets and PreDownloadInPlace are the gates PreDownloadImageForDaemonSetUpdate and
	// PreDownloadImageForInPlaceUpdate. They have no effect without the controller of ImagePullJobs.
	PreDownloadDaemonSets, PreDownloadInPlace bool
	// Namespace is the program's own namespace, which has the revisions of SidecarSets.
	Namespace string
	// ExcludedNamespaces are namespaces in which the program may not write pods: SidecarSets do not select them.
	ExcludedNamespaces []string
	// InjectorURL is where the API server reaches the injectors of SidecarSets. Empty means their Service.
	InjectorURL string
	// MetadataAllowed is the gate SidecarSetPatchPodMetadataDefaultsAllowed: SidecarSets for which the white list
	// has no rule may set all annotations.
	MetadataAllowed bool
	// ImagePull limits the pulls of ImagePullJobs.
	ImagePull configv1alpha1.ImagePull
	// OpenKruiseNamespace is the namespace of the lease of OpenKruise's manager. The controllers do
	// not run while it is renewed.
	OpenKruiseNamespace string
	// Version of the program, for the metrics.
	Version string
	// Registry receives the program's own metrics.
	Registry prometheus.Registerer
	// Logger receives the log of the program and its controllers.
	Logger logr.Logger
}

// Workloads runs the controllers.
type Workloads struct {
	options Options
	program *startup.Program
}

// New returns a Workloads. It does not connect to the API server, and returns an error if the
// address of the health checks is not available.
func New(options Options) (*Workloads, error) {
	addresses := startup.Addresses{
		Health: options.HealthProbeBindAddress, Metrics: options.MetricsBindAddress, Profiles: options.PprofBindAddress,
	}
	var needed []schema.GroupVersionKind
	for _, kind := range enabled(options.Controllers) {
		needed = append(needed, kind.GroupVersionKind)
	}
	program, err := startup.New(options.Config, options.Logger, addresses, needed)
	return &Workloads{options: options, program: program}, err
}

// Run waits until the API server serves the CRDs of the enabled controllers, and runs the
// controllers until the context ends. Meanwhile it serves the health checks. It returns an error if
// an address is not available or the lease is lost, and ErrMarkersServed if the CRD of
// PodProbeMarkers is installed meanwhile. The process must exit when Run returns.
func (w *Workloads) Run(ctx context.Context) error { return w.program.Run(ctx, w.assemble) }

// assemble adds the controllers to a manager. It returns an error if an address is not available.
func (w *Workloads) assemble(ctx context.Context) (ctrlmanager.Manager, error) {
	options := w.options
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := w.program.Manager(ctrlmanager.Options{
		Scheme:                  scheme,
		Cache:                   w.caches(),
		LeaderElection:          options.LeaderElection,
		LeaderElectionID:        Name,
		LeaderElectionNamespace: options.LeaderElectionNamespace,
	})
	if err != nil {
		return nil, err
	}
	return mgr, w.addControllers(ctx, mgr)
}

// enabled returns the rows of the kinds whose controllers are enabled.
func enabled(controllers configv1alpha1.WorkloadControllers) []kinds.Kind {
	return slices.DeleteFunc(kinds.Table(), func(k kinds.Kind) bool { return !*k.Controller(&controllers).Enabled })
}

// ownKinds returns the kinds of all sets, whether or not their controller is enabled.
func ownKinds() (own []schema.GroupKind) {
	for _, kind := range kinds.Table() {
		if kind.Role != kinds.Job {
			own = append(own, kind.GroupKind())
		}
	}
	return own
}

// newScheme returns a scheme with only the types that the controllers read and write, because those
// of all API groups take megabytes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, (&runtime.SchemeBuilder{
		corev1.AddToScheme, admissionregistrationv1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme,
		coordinationv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme,
	}).AddToScheme(scheme)
}
