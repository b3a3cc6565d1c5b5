// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program runs the programs of the cluster in tests, with the rights of their service accounts.
package program

import (
	"cmp"
	"context"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/logging"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/injector"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// Install gives the program the rights that the files grant it, within the policy of config/workloads. With those of
// config/imagepulls, the policy permits the pods of pulls.
func Install(t testing.TB, e *env.Env, files ...string) *rest.Config {
	t.Helper()
	e.ServiceAccount(t, env.SystemNamespace, workloads.Name, nil) // Creates the namespace.
	manifests := env.Manifests(t, append(files, "config/workloads/policy.yaml"))
	if slices.Contains(files, "config/imagepulls/rbac.yaml") {
		env.SetVariable(t, manifests, "imagePulls", "true") // As config/imagepulls does.
	}
	e.Apply(t, manifests...)
	cfg := e.Component(t, workloads.Name)
	Grant(t, e)
	return cfg
}

// Grant runs what the manager does for seamark-workloads until the test ends: it gives it its rights in the namespaces with
// sets. The files of Install must have been applied.
func Grant(tb testing.TB, e *env.Env) {
	tb.Helper()
	granter, err := grants.New(grants.Options{
		Config: e.Component(tb, manager.Name), Namespace: env.SystemNamespace, Resources: configv1alpha1.GrantResources(), Log: logr.Discard(),
	})
	expect.NoError(tb, err)
	env.Run(tb, granter.Start)
}

// Change changes the defaults of the program.
type Change func(options *workloads.Options, enabled *configv1alpha1.WorkloadControllers)

// New returns the program with defaults that are changed.
func New(cfg *rest.Config, changes ...Change) (*workloads.Workloads, error) {
	var c configv1alpha1.WorkloadsConfiguration
	configv1alpha1.SetWorkloadsDefaults(&c)
	options := workloads.Options{
		Config: cfg, MetricsBindAddress: "0", HealthProbeBindAddress: "0", Controllers: c.Controllers, ImagePull: c.ImagePull,
		OpenKruiseNamespace: c.OpenKruise.Namespace, Namespace: env.SystemNamespace, Registry: prometheus.NewRegistry(), Logger: Logger(),
	}
	for _, change := range changes {
		change(&options, &options.Controllers)
	}
	return workloads.New(options)
}

// Start runs the program until the test ends or the function is called.
func Start(t testing.TB, cfg *rest.Config, changes ...Change) (stop func()) {
	t.Helper()
	running, err := New(cfg, changes...)
	expect.NoError(t, err)
	return env.Run(t, running.Run)
}

// Logger logs to stderr if the environment variable SEAMARK_TEST_LOG is set.
func Logger() logr.Logger {
	if os.Getenv("SEAMARK_TEST_LOG") == "" {
		return logr.Discard()
	}
	return logging.New(os.Stderr, configv1alpha1.Logging{Verbosity: 2})
}

// OpenKruiseLeads creates the webhook of OpenKruise, and the lease that its manager holds.
func OpenKruiseLeads(tb testing.TB, e *env.Env, duration time.Duration) *coordinationv1.Lease {
	tb.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: OpenKruise, Name: "kruise-manager"}}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: new("kruise"), LeaseDurationSeconds: new(int32(duration.Seconds())), RenewTime: new(metav1.NowMicro()),
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: OpenKruise}}, builders.OpenKruiseWebhook(OpenKruise), lease,
	} {
		expect.NoError(tb, client.IgnoreAlreadyExists(e.Client.Create(tb.Context(), object)))
	}
	return lease
}

// OpenKruise is the namespace of OpenKruise.
const OpenKruise = "kruise-system"

// StartManager runs a manager until the test ends or the function is called. It runs the default controllers, serves no
// metrics, and sets what else the options leave out.
func StartManager(tb testing.TB, options manager.Options) (stop func()) {
	tb.Helper()
	var defaults configv1alpha1.ManagerConfiguration
	configv1alpha1.SetManagerDefaults(&defaults)
	options.Controllers, options.MetricsBindAddress = defaults.Controllers, "0"
	options.HealthProbeBindAddress = cmp.Or(options.HealthProbeBindAddress, "0")
	if options.Defaults == (plan.Defaults{}) {
		options.Defaults = plan.KubernetesDefaults()
	}
	if options.Registry == nil {
		options.Registry = prometheus.NewRegistry()
	}
	if options.Logger.GetSink() == nil {
		options.Logger = logr.Discard()
	}
	m, err := manager.New(options)
	expect.NoErrorf(tb, err, "create manager")
	return env.Run(tb, m.Run)
}

// InstallInjector installs the injectors of SidecarSets, and returns the configuration of one.
func InstallInjector(tb testing.TB, e *env.Env) *rest.Config {
	tb.Helper()
	own := e.ServiceAccount(tb, env.SystemNamespace, certificates.Name, nil)
	e.Apply(tb, env.Manifests(tb, []string{
		"config/sidecarsets/injector-rbac.yaml", "config/sidecarsets/webhooks.yaml", "config/sidecarsets/injector.yaml",
	}, "Deployment", "PodDisruptionBudget", "NetworkPolicy", "Service")...)
	return own
}

// StartInjector runs an injector at the address until the test ends or the function is called.
func StartInjector(tb testing.TB, cfg *rest.Config, address string, lifetimes certificates.Lifetimes) (stop func()) {
	tb.Helper()
	host, text, err := net.SplitHostPort(address)
	expect.NoError(tb, err)
	port, err := strconv.Atoi(text)
	expect.NoError(tb, err)
	health := env.FreeAddress(tb)
	serving, err := injector.NewProgram(injector.Options{
		Config: cfg, Namespace: env.SystemNamespace, Host: host, Port: port, URL: "https://localhost", Lifetimes: lifetimes,
		MetricsBindAddress: "0", HealthProbeBindAddress: health, Registry: prometheus.NewRegistry(), Logger: Logger(),
	})
	expect.NoError(tb, err)
	stop = env.Run(tb, serving.Run)
	await.Until(tb, "the injector is ready", func(ctx context.Context) (string, error) {
		if answer := env.Get(ctx, health, "/readyz"); !strings.HasPrefix(answer, "200") {
			return answer, nil
		}
		return "", nil
	})
	return stop
}
