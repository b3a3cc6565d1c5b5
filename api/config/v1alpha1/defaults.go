// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

const (
	// DefaultNamespace is the namespace that Seamark is installed in by default.
	DefaultNamespace = "seamark-system"
	// DefaultExecConcurrency is the default of AgentConfiguration's execConcurrency.
	DefaultExecConcurrency = 16
	// DefaultProbeRate is the default of AgentConfiguration's probeRate. With it, the probes of 110 pods,
	// with five plain probes each, run every second, also if all are gRPC calls: 2,200 of 2,400. A node
	// that uses it up takes 0.3 to 0.6 of a processor: 2,400 TCP probes, 1,200 HTTP requests, 600 gRPC
	// calls or 300 probes with TLS.
	DefaultProbeRate = 2400
	// DefaultReportInterval is the default of AgentConfiguration's reportInterval.
	DefaultReportInterval = 100 * time.Millisecond
	// DefaultWebhookName is the default name of the webhook's Secret, Service and
	// MutatingWebhookConfiguration.
	DefaultWebhookName = "seamark-webhook"
)

// KubernetesProbeDefaults returns the defaults that core/v1 Probe documents.
func KubernetesProbeDefaults() ProbeDefaults {
	return ProbeDefaults{
		InitialDelaySeconds: 0,
		PeriodSeconds:       10,
		TimeoutSeconds:      1,
		SuccessThreshold:    1,
		FailureThreshold:    3,
	}
}

// SetManagerDefaults sets the defaults of all unset fields of c, except the namespace of the
// lease, which depends on where the manager runs.
func SetManagerDefaults(c *ManagerConfiguration) {
	c.SetGroupVersionKind(GroupVersion().WithKind("ManagerConfiguration"))
	if c.LeaderElection.LeaderElect == nil {
		c.LeaderElection.LeaderElect = new(true)
	}
	orDefault(&c.Metrics.BindAddress, ":8080")
	orDefault(&c.Health.BindAddress, ":8081")
	orDefault(&c.Pprof.BindAddress, "0")
	orDefault(&c.Logging.Format, LogText)
	orDefault(&c.Controllers.NodeProbe.Concurrency, 16)
	orDefault(&c.Controllers.PodMark.Concurrency, 32)
	orDefault(&c.Controllers.Marker.Concurrency, 4)
	orDefault(&c.Controllers.Serverless.Concurrency, 16)
	if c.ExcludedNamespaces == nil {
		c.ExcludedNamespaces = []string{metav1.NamespaceSystem}
	}
	orDefault(&c.MessageUpdates, appsv1alpha1.MessageUpdatesLimited)
	probes, defaults := &c.ProbeDefaults, KubernetesProbeDefaults()
	orDefault(&probes.InitialDelaySeconds, defaults.InitialDelaySeconds)
	orDefault(&probes.PeriodSeconds, defaults.PeriodSeconds)
	orDefault(&probes.TimeoutSeconds, defaults.TimeoutSeconds)
	orDefault(&probes.SuccessThreshold, defaults.SuccessThreshold)
	orDefault(&probes.FailureThreshold, defaults.FailureThreshold)
	webhook := &c.Serverless.Webhook
	orDefault(&webhook.Port, 9443)
	orDefault(&webhook.Certificates, CertificatesBySeamark)
	orDefault(&webhook.CertificateDirectory, "/run/seamark/webhook")
	orDefault(&webhook.SecretName, DefaultWebhookName)
	orDefault(&webhook.ServiceName, DefaultWebhookName)
	orDefault(&webhook.ConfigurationName, DefaultWebhookName)
}

// SetWorkloadsDefaults sets the defaults of all unset fields of c, except the namespace of the
// lease, which depends on where the program runs.
func SetWorkloadsDefaults(c *WorkloadsConfiguration) {
	c.SetGroupVersionKind(GroupVersion().WithKind("WorkloadsConfiguration"))
	if c.LeaderElection.LeaderElect == nil {
		c.LeaderElection.LeaderElect = new(true)
	}
	orDefault(&c.Metrics.BindAddress, ":8080")
	orDefault(&c.Health.BindAddress, ":8081")
	orDefault(&c.Pprof.BindAddress, "0")
	orDefault(&c.Logging.Format, LogText)
	orDefault(&c.OpenKruise.Namespace, "kruise-system")
	if c.ExcludedNamespaces == nil {
		c.ExcludedNamespaces = []string{metav1.NamespaceSystem}
	}
	orDefault(&c.ImagePull.PerNode, 2)
	orDefault(&c.ImagePull.Total, 100)
	if c.ImagePull.NodeSelector == nil {
		c.ImagePull.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "node-role.kubernetes.io/control-plane", Operator: metav1.LabelSelectorOpDoesNotExist},
		}}
	}
	orDefault(&c.Injector.Port, 9443)
	orDefault(&c.Injector.Certificates, CertificatesBySeamark)
	orDefault(&c.Injector.CertificateDirectory, "/run/seamark/injector")
	for controller, enabled := range map[*WorkloadController]bool{
		&c.Controllers.CloneSet: true, &c.Controllers.StatefulSet: true,
		&c.Controllers.AdvancedCronJob: false, &c.Controllers.DaemonSet: false, &c.Controllers.BroadcastJob: false, &c.Controllers.SidecarSet: false,
		&c.Controllers.ImagePullJob: false,
	} {
		if controller.Enabled == nil {
			controller.Enabled = new(enabled)
		}
		orDefault(&controller.Concurrency, 32)
	}
}

// SetAgentDefaults sets the defaults of all unset fields of c.
func SetAgentDefaults(c *AgentConfiguration) {
	c.SetGroupVersionKind(GroupVersion().WithKind("AgentConfiguration"))
	orDefault(&c.ExecConcurrency, DefaultExecConcurrency)
	orDefault(&c.ProbeRate, DefaultProbeRate)
	orDefault(&c.ReportInterval.Duration, DefaultReportInterval)
	orDefault(&c.Metrics.BindAddress, ":18357")
	orDefault(&c.Pprof.BindAddress, "0")
	orDefault(&c.Logging.Format, LogText)
}

// orDefault sets a field that is zero.
func orDefault[T comparable](field *T, value T) { *field = cmp.Or(*field, value) }
