// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"time"
)

// DefaultExecConcurrency is how many exec probes run at a time on one node where nothing
// else is asked for.
const DefaultExecConcurrency = 16

// SetManagerDefaults fills in what c leaves unset, but for the namespace of the lease,
// which depends on where the manager runs.
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
	orDefault(&c.ProbeDefaults.PeriodSeconds, 10)
	orDefault(&c.ProbeDefaults.TimeoutSeconds, 1)
	orDefault(&c.ProbeDefaults.SuccessThreshold, 1)
	orDefault(&c.ProbeDefaults.FailureThreshold, 3)
	webhook := &c.Serverless.Webhook
	orDefault(&webhook.Port, 9443)
	orDefault(&webhook.Certificates, CertificatesBySeamark)
	orDefault(&webhook.CertificateDirectory, "/run/seamark/webhook")
	orDefault(&webhook.SecretName, "seamark-webhook")
	orDefault(&webhook.ServiceName, "seamark-webhook")
	orDefault(&webhook.ConfigurationName, "seamark-webhook")
}

// SetAgentDefaults fills in what c leaves unset.
func SetAgentDefaults(c *AgentConfiguration) {
	c.SetGroupVersionKind(GroupVersion().WithKind("AgentConfiguration"))
	orDefault(&c.ExecConcurrency, DefaultExecConcurrency)
	orDefault(&c.ReportInterval.Duration, 100*time.Millisecond)
	orDefault(&c.Metrics.BindAddress, ":10357")
	orDefault(&c.Pprof.BindAddress, "0")
	orDefault(&c.Logging.Format, LogText)
}

// orDefault sets a field that is zero.
func orDefault[T comparable](field *T, value T) { *field = cmp.Or(*field, value) }
