// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/kinds"
)

// Workloads is the command line of seamark-workloads.
type Workloads = CommandLine[v1alpha1.WorkloadsConfiguration]

// NewWorkloads defines the program's flags in set, which the caller parses. NamespaceFile is the
// file that contains the namespace of the pod.
func NewWorkloads(set *pflag.FlagSet, namespaceFile string) *Workloads {
	return newCommandLine(set, kind[v1alpha1.WorkloadsConfiguration]{
		name:     "WorkloadsConfiguration",
		defaults: v1alpha1.SetWorkloadsDefaults,
		bind:     bindWorkloads,
		complete: func(c *v1alpha1.WorkloadsConfiguration) {
			c.FeatureGates = workloadGates().effective(c.FeatureGates)
			completeLease(&c.LeaderElection, namespaceFile)
		},
		validate: validateWorkloads,
	})
}

func bindWorkloads(f flags, c *v1alpha1.WorkloadsConfiguration) {
	bindElected(f, "replica", &c.LeaderElection, &c.Metrics, &c.Health)
	workloadGates().bind(f, &c.FeatureGates)
	bindShared(f, &c.Pprof, &c.Logging)
}

func validateWorkloads(c *v1alpha1.WorkloadsConfiguration) field.ErrorList {
	var found problems
	found.elected(c.LeaderElection, c.Metrics, c.Health)
	found.shared(c.Pprof, c.Logging)
	found.name(field.NewPath("openKruise", "namespace"), c.OpenKruise.Namespace, validation.ValidateNamespaceName)
	found.gates(c.FeatureGates, workloadGates())
	for _, name := range []string{PreDownloadDaemonSetGate, PreDownloadInPlaceGate} {
		if c.FeatureGates[name] && !c.FeatureGates[allAlpha] && !*c.Controllers.ImagePullJob.Enabled {
			found.add(field.NewPath("featureGates").Key(name), true, "requires controllers.imagePullJob.enabled")
		}
	}
	for i, name := range c.ExcludedNamespaces {
		found.name(field.NewPath("excludedNamespaces").Index(i), name, validation.ValidateNamespaceName)
	}
	controllers, enabled := field.NewPath("controllers"), false
	for _, kind := range kinds.Table() {
		controller := kind.Controller(&c.Controllers)
		enabled = enabled || *controller.Enabled
		found.between(controllers.Child(kind.ConfigName, "concurrency"), controller.Concurrency, 1, 256)
	}
	if !enabled {
		first := kinds.Table()[0].ConfigName
		found.add(controllers.Child(first, "enabled"), false, "must be true if all other controllers are disabled: at least one controller must run")
	}
	pulls := field.NewPath("imagePull")
	found.between(pulls.Child("perNode"), c.ImagePull.PerNode, 1, 100)
	found.between(pulls.Child("total"), c.ImagePull.Total, 1, 10000)
	if _, err := metav1.LabelSelectorAsSelector(c.ImagePull.NodeSelector); err != nil {
		found.add(pulls.Child("nodeSelector"), metav1.FormatLabelSelector(c.ImagePull.NodeSelector), err.Error())
	}
	injector := field.NewPath("injector")
	found.between(injector.Child("port"), c.Injector.Port, 1, 65535)
	oneOf(&found, injector.Child("certificates"), c.Injector.Certificates, v1alpha1.CertificatesBySeamark, v1alpha1.CertificatesByCertManager)
	found.absolute(injector.Child("certificateDirectory"), c.Injector.CertificateDirectory)
	found.absoluteIfSet(injector.Child("clientCAFile"), c.Injector.ClientCAFile)
	if at, err := url.Parse(c.Injector.URL); c.Injector.URL != "" && (err != nil || at.Scheme != "https" || at.Hostname() == "" || at.Path+at.RawQuery != "") {
		found.add(injector.Child("url"), c.Injector.URL, "must be https://host:port, without a path")
	}
	return found.sorted()
}
