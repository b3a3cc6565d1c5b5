// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/config/v1alpha1"
)

// Manager is the command line of the manager.
type Manager = CommandLine[v1alpha1.ManagerConfiguration]

// NewManager defines the manager's flags in set, which the caller parses. NamespaceFile is the
// file that contains the namespace of the pod.
func NewManager(set *pflag.FlagSet, namespaceFile string) *Manager {
	return newCommandLine(set, kind[v1alpha1.ManagerConfiguration]{
		name:     "ManagerConfiguration",
		defaults: v1alpha1.SetManagerDefaults,
		bind:     bindManager,
		complete: func(c *v1alpha1.ManagerConfiguration) {
			c.FeatureGates = managerGates().effective(c.FeatureGates)
			completeLease(&c.LeaderElection, namespaceFile)
		},
		validate: validateManager,
	})
}

func bindManager(f flags, c *v1alpha1.ManagerConfiguration) {
	bindElected(f, "manager", &c.LeaderElection, &c.Metrics, &c.Health)
	managerGates().bind(f, &c.FeatureGates)
	f.list(&c.Grants.Resources, "grants", "grants.resources",
		"resources of seamark-workloads, such as clonesets,statefulsets: the manager lets it write pods in the namespaces that have some")
	bindShared(f, &c.Pprof, &c.Logging)
}

// completeLease sets the namespace of the lease if it is unset.
func completeLease(c *v1alpha1.LeaderElection, namespaceFile string) {
	if c.ResourceNamespace == "" {
		c.ResourceNamespace = OwnNamespace(namespaceFile)
	}
}

// OwnNamespace returns the namespace in the file, or the default namespace if the file does
// not exist or is empty.
func OwnNamespace(file string) string {
	if own, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(own)) != "" {
		return strings.TrimSpace(string(own))
	}
	return v1alpha1.DefaultNamespace
}

func validateManager(c *v1alpha1.ManagerConfiguration) field.ErrorList {
	var found problems
	found.elected(c.LeaderElection, c.Metrics, c.Health)
	found.shared(c.Pprof, c.Logging)

	controllers := field.NewPath("controllers")
	for name, controller := range map[string]v1alpha1.Controller{
		"nodeProbe":  c.Controllers.NodeProbe,
		"podMark":    c.Controllers.PodMark,
		"marker":     c.Controllers.Marker,
		"serverless": c.Controllers.Serverless,
	} {
		found.between(controllers.Child(name, "concurrency"), controller.Concurrency, 1, 256)
	}

	for i, name := range c.ExcludedNamespaces {
		found.name(field.NewPath("excludedNamespaces").Index(i), name, validation.ValidateNamespaceName)
	}
	defaults := field.NewPath("probeDefaults")
	found.atLeast(defaults.Child("initialDelaySeconds"), c.ProbeDefaults.InitialDelaySeconds, 0)
	found.atLeast(defaults.Child("periodSeconds"), c.ProbeDefaults.PeriodSeconds, 1)
	found.between(defaults.Child("timeoutSeconds"), c.ProbeDefaults.TimeoutSeconds, 1, appsv1alpha1.MaxTimeoutSeconds)
	found.atLeast(defaults.Child("successThreshold"), c.ProbeDefaults.SuccessThreshold, 1)
	found.atLeast(defaults.Child("failureThreshold"), c.ProbeDefaults.FailureThreshold, 1)

	oneOf(&found, field.NewPath("messageUpdates"), c.MessageUpdates, appsv1alpha1.MessageUpdatesLimited, appsv1alpha1.MessageUpdatesImmediate)

	for i, resource := range c.Grants.Resources {
		if known := v1alpha1.GrantResources(); !slices.Contains(known, resource) {
			found.add(field.NewPath("grants", "resources").Index(i), resource, "must be one of "+strings.Join(known, ", "))
		}
	}
	found.gates(c.FeatureGates, managerGates())
	found.webhook(field.NewPath("serverless", "webhook"), c.Serverless.Webhook)
	return found.sorted()
}

func (p *problems) webhook(path *field.Path, c v1alpha1.Webhook) {
	p.between(path.Child("port"), c.Port, 1, 65535)
	oneOf(p, path.Child("certificates"), c.Certificates, v1alpha1.CertificatesBySeamark, v1alpha1.CertificatesByCertManager)
	p.absolute(path.Child("certificateDirectory"), c.CertificateDirectory)
	p.absoluteIfSet(path.Child("clientCAFile"), c.ClientCAFile)
	p.name(path.Child("secretName"), c.SecretName, validation.NameIsDNSSubdomain)
	p.name(path.Child("serviceName"), c.ServiceName, validation.NameIsDNS1035Label)
	p.name(path.Child("configurationName"), c.ConfigurationName, validation.NameIsDNSSubdomain)
}
