// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
)

// Manager is the command line of the manager.
type Manager struct {
	// Kubeconfig is the file that says how to reach the API server, or empty.
	Kubeconfig string

	source *source[v1alpha1.ManagerConfiguration]
}

// NewManager defines the manager's flags in set, which is then to be parsed.
// NamespaceFile is the file in which a pod finds the name of its own namespace.
func NewManager(set *pflag.FlagSet, namespaceFile string) *Manager {
	m := &Manager{source: newSource(set, kind[v1alpha1.ManagerConfiguration]{
		name:     "ManagerConfiguration",
		defaults: v1alpha1.SetManagerDefaults,
		bind:     bindManager,
		complete: func(c *v1alpha1.ManagerConfiguration) { completeManager(c, namespaceFile) },
		validate: validateManager,
	})}
	bindKubeconfig(set, &m.Kubeconfig)
	return m
}

// Load returns the configuration, once the flags have been parsed.
func (m *Manager) Load() (*v1alpha1.ManagerConfiguration, error) { return m.source.load() }

func bindManager(f flags, c *v1alpha1.ManagerConfiguration) {
	f.bool(c.LeaderElection.LeaderElect, "leader-elect", "leaderElection.leaderElect", "wait to be elected before doing any work; without it only one manager may run")
	f.text(&c.LeaderElection.ResourceNamespace, "leader-election-namespace", "leaderElection.resourceNamespace", "namespace of the lease; without it the pod's own, else "+v1alpha1.DefaultNamespace)
	f.text(&c.Metrics.BindAddress, "metrics-bind-address", "metrics.bindAddress", "host:port that serves /metrics; 0 serves none")
	f.text(&c.Health.BindAddress, "health-probe-bind-address", "health.bindAddress", "host:port that serves /healthz and /readyz; 0 serves none")
	f.set.Var(gatesFlag{&c.FeatureGates}, "feature-gates", "features to switch on or off, A=true,B=false; known are "+strings.Join(knownGates(), ", "))
	f.remember("feature-gates", "featureGates")
	bindShared(f, &c.Pprof, &c.Logging)
}

func completeManager(c *v1alpha1.ManagerConfiguration, namespaceFile string) {
	c.FeatureGates = effective(c.FeatureGates)
	if c.LeaderElection.ResourceNamespace == "" {
		c.LeaderElection.ResourceNamespace = OwnNamespace(namespaceFile)
	}
}

// OwnNamespace returns the namespace that a pod finds in that file, or seamark-system where
// there is none.
func OwnNamespace(file string) string {
	if own, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(own)) != "" {
		return strings.TrimSpace(string(own))
	}
	return v1alpha1.DefaultNamespace
}

func validateManager(c *v1alpha1.ManagerConfiguration) field.ErrorList {
	var wrong problems
	wrong.name(field.NewPath("leaderElection", "resourceNamespace"), c.LeaderElection.ResourceNamespace, validation.ValidateNamespaceName)
	wrong.address(field.NewPath("metrics", "bindAddress"), c.Metrics.BindAddress)
	wrong.address(field.NewPath("health", "bindAddress"), c.Health.BindAddress)
	wrong.shared(c.Pprof, c.Logging)

	controllers := field.NewPath("controllers")
	for name, controller := range map[string]v1alpha1.Controller{
		"nodeProbe":  c.Controllers.NodeProbe,
		"podMark":    c.Controllers.PodMark,
		"marker":     c.Controllers.Marker,
		"serverless": c.Controllers.Serverless,
	} {
		wrong.between(controllers.Child(name, "concurrency"), controller.Concurrency, 1, 256)
	}

	defaults := field.NewPath("probeDefaults")
	wrong.atLeast(defaults.Child("initialDelaySeconds"), c.ProbeDefaults.InitialDelaySeconds, 0)
	wrong.atLeast(defaults.Child("periodSeconds"), c.ProbeDefaults.PeriodSeconds, 1)
	wrong.atLeast(defaults.Child("timeoutSeconds"), c.ProbeDefaults.TimeoutSeconds, 1)
	wrong.atLeast(defaults.Child("successThreshold"), c.ProbeDefaults.SuccessThreshold, 1)
	wrong.atLeast(defaults.Child("failureThreshold"), c.ProbeDefaults.FailureThreshold, 1)

	for name := range c.FeatureGates {
		oneOf(&wrong, field.NewPath("featureGates").Key(name), name, knownGates()...)
	}
	wrong.webhook(field.NewPath("serverless", "webhook"), c.Serverless.Webhook)
	return wrong.sorted()
}

func (w *problems) webhook(path *field.Path, c v1alpha1.Webhook) {
	w.between(path.Child("port"), c.Port, 1, 65535)
	oneOf(w, path.Child("certificates"), c.Certificates, v1alpha1.CertificatesBySeamark, v1alpha1.CertificatesByCertManager)
	w.absolute(path.Child("certificateDirectory"), c.CertificateDirectory)
	w.name(path.Child("secretName"), c.SecretName, validation.NameIsDNSSubdomain)
	w.name(path.Child("serviceName"), c.ServiceName, validation.NameIsDNS1035Label)
	w.name(path.Child("configurationName"), c.ConfigurationName, validation.NameIsDNSSubdomain)
}
