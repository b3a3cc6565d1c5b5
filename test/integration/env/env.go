// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package env starts a real API server and etcd for integration tests, with Seamark's CRDs
// installed and RBAC enabled. Both stop when the tests end, even if the test process crashes.
//
// A test package starts one API server in TestMain with [Main] and creates a namespace for
// each test. If tests need a server for themselves, TestMain is that of a [Pool]. Only the API
// server runs: there is no controller, scheduler or kubelet, so the tests create nodes and pods as
// plain objects.
package env

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// startTimeout is the timeout for the start of etcd, for that of the API server, and until it serves
// the CRDs. It allows for a machine that is busy with other tests.
const startTimeout = 90 * time.Second

// Env is a running API server.
type Env struct {
	// Config authenticates as a member of system:masters, to which neither RBAC nor priority
	// and fairness apply. It has no client-side rate limit.
	Config *rest.Config
	// Scheme has the types of Kubernetes, of CRDs and of Seamark.
	Scheme *runtime.Scheme
	// Client uses Config, without a cache.
	Client client.WithWatch
	// CRDs are the installed CRDs, as they were sent.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	environment *envtest.Environment
	dir         string
}

// Option changes how an API server is started.
type Option func(*options)

type options struct {
	crdDir   string
	upstream bool
	// unvalidated removes the rules of all CRDs.
	unvalidated bool
	// types keeps the types of the parts that Kubernetes defines.
	types  bool
	noCRDs bool
	// featureGates is the value of the API server's flag, empty for the defaults.
	featureGates string
	// requestTimeout is the value of the API server's flag, zero for the default.
	requestTimeout time.Duration
}

// CRDDir installs the CRDs of the folder instead of all generated ones. A relative path starts at
// the module's root.
func CRDDir(dir string) Option {
	return func(o *options) { o.crdDir = dir }
}

// UpstreamCRDs installs the CRDs of OpenKruise: only their fields, and no validation rules of
// Seamark. See [Upstream]. ProbeReport, which OpenKruise does not have, is unchanged.
func UpstreamCRDs() Option {
	return func(o *options) { o.upstream = true }
}

// UnvalidatedCRDs installs all CRDs without validation except for types and required fields, so
// that a test can check what else rejects an object.
func UnvalidatedCRDs() Option {
	return func(o *options) { o.unvalidated = true }
}

// Types installs CRDs with the types of templates, containers and claims, as they are generated. The others leave them
// out, because the API server starts five seconds of processor time earlier.
func Types() Option {
	return func(o *options) { o.types = true }
}

// NoCRDs installs no CRD, so that a test can install them itself.
func NoCRDs() Option {
	return func(o *options) { o.noCRDs = true }
}

// FeatureGates sets feature gates of the API server, such as "MaxUnavailableStatefulSet=true".
func FeatureGates(gates string) Option {
	return func(o *options) { o.featureGates = gates }
}

// RequestTimeout limits how long the API server works on a request. When it stops, it waits as long for
// the end of watches: a minute by default.
func RequestTimeout(d time.Duration) Option {
	return func(o *options) { o.requestTimeout = d }
}

// NewScheme returns a scheme with the types of Kubernetes, of CRDs and of Seamark.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme),
		v1beta1.AddToScheme(scheme),
		seamarkv1alpha1.AddToScheme(scheme),
	)
	if err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	return scheme, nil
}

// Main implements TestMain: it discards the logs of libraries, starts an API server, stores it in
// shared, runs the tests, stops the server and exits the process. If shared is nil, it starts no
// server: each test starts its own.
func Main(m *testing.M, shared **Env, opts ...Option) {
	discardLogs()
	if shared == nil {
		os.Exit(m.Run())
	}
	os.Exit(run(m, shared, opts))
}

func discardLogs() {
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
}

func run(m *testing.M, shared **Env, opts []Option) (code int) {
	e, err := New(opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration environment:", err)
		return 1
	}
	defer func() {
		if err := e.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "integration environment:", err)
			code = 1
		}
	}()
	*shared = e
	return m.Run()
}

// Start starts an API server for one test, and stops it when the test ends.
func Start(tb testing.TB, opts ...Option) *Env {
	tb.Helper()
	e, err := New(opts...)
	expect.NoErrorf(tb, err, "integration environment")
	tb.Cleanup(func() { expect.NoErrorf(tb, e.Stop(), "integration environment") })
	return e
}

// New starts etcd and an API server, installs the CRDs and waits until they are served. The
// caller must call Stop.
func New(opts ...Option) (*Env, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	crds, err := o.crds()
	if err != nil {
		return nil, err
	}
	binaries, err := Binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "seamark-integration-")
	if err != nil {
		return nil, fmt.Errorf("create a folder for etcd and the API server: %w", err)
	}
	e := &Env{Scheme: scheme, CRDs: crds, dir: dir}
	if err := e.start(binaries, o); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

func (e *Env) start(binaries string, o options) error {
	wrapped, err := wrapBinaries(binaries, e.dir)
	if err != nil {
		return err
	}
	e.environment = &envtest.Environment{
		Scheme: e.Scheme,
		CRDs:   deepCopies(e.CRDs),
		// Without its own timeout, envtest waits ten seconds for the CRDs.
		CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: startTimeout},
		// Never use a developer's own cluster, even if the environment asks for it.
		UseExistingCluster:       ptr.To(false),
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
	}
	plane := &e.environment.ControlPlane
	plane.Etcd = &envtest.Etcd{Path: wrapped.etcd, DataDir: filepath.Join(e.dir, "etcd-data")}
	// Measures with 150,000 pods need more than the default of 2 GiB.
	plane.Etcd.Configure().Set("quota-backend-bytes", strconv.Itoa(8<<30))
	server := plane.GetAPIServer()
	server.Path = wrapped.apiServer
	if o.featureGates != "" {
		server.Configure().Append("feature-gates", o.featureGates)
	}
	if o.requestTimeout > 0 {
		server.Configure().Append("request-timeout", o.requestTimeout.String())
	}
	server.CertDir = filepath.Join(e.dir, "apiserver-data")
	for _, sub := range []string{plane.Etcd.DataDir, server.CertDir} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			return fmt.Errorf("create a folder for etcd and the API server: %w", err)
		}
	}
	if e.Config, err = e.environment.Start(); err != nil {
		return fmt.Errorf("start etcd and the API server of %s: %w", binaries, err)
	}
	e.Config = unlimited(e.Config)
	if e.Client, err = client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme}); err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	return nil
}

// InstallCRDs installs the CRDs that a server has by default, one after the other, and waits until they
// are served: for a server that was started with [NoCRDs].
func (e *Env) InstallCRDs() error {
	crds, err := options{}.crds()
	if err != nil {
		return err
	}
	for i := range crds {
		_, err := envtest.InstallCRDs(e.Config, envtest.CRDInstallOptions{CRDs: crds[i : i+1], MaxTime: startTimeout})
		if err != nil {
			return fmt.Errorf("install CRD %s: %w", crds[i].Name, err)
		}
	}
	return nil
}

// Stop stops the API server and etcd and removes their data.
func (e *Env) Stop() error {
	var errs []error
	if e.environment != nil {
		if err := e.environment.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("stop etcd and the API server: %w", err))
		}
	}
	if err := os.RemoveAll(e.dir); err != nil {
		errs = append(errs, fmt.Errorf("remove the folder of etcd and the API server: %w", err))
	}
	return errors.Join(errs...)
}

// StopAPIServer stops only the API server: clients lose their connections and can't connect
// until StartAPIServer.
func (e *Env) StopAPIServer() error {
	if err := e.environment.ControlPlane.GetAPIServer().Stop(); err != nil {
		return fmt.Errorf("stop the API server: %w", err)
	}
	return nil
}

// StartAPIServer starts the API server after StopAPIServer, with the same address,
// certificates and data, and waits until it is healthy.
func (e *Env) StartAPIServer() error {
	if err := e.environment.ControlPlane.GetAPIServer().Start(); err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	return nil
}

// EtcdURL returns the URL of etcd, which serves its metrics there.
func (e *Env) EtcdURL() string { return e.environment.ControlPlane.Etcd.URL.String() }

// unlimited returns a copy of the configuration without a client-side rate limit.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0
	return config
}
