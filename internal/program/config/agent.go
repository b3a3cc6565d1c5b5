// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
)

// The limits of an AgentConfiguration.
const (
	maxExecConcurrency = 1024

	minProbeRate      = 100
	maxProbeRate      = 100000
	minReportInterval = 100 * time.Millisecond
	maxReportInterval = time.Minute
)

// Agent is the command line of the agent.
type Agent struct {
	*CommandLine[v1alpha1.AgentConfiguration]
	// NodeName is the name of the Node. It is not in the file, which all nodes share.
	NodeName string
}

// NewAgent defines the agent's flags in set, which the caller parses. NodeName is the default
// of --node-name.
func NewAgent(set *pflag.FlagSet, nodeName string) *Agent {
	a := &Agent{CommandLine: newCommandLine(set, kind[v1alpha1.AgentConfiguration]{
		name:     "AgentConfiguration",
		defaults: v1alpha1.SetAgentDefaults,
		bind:     bindAgent,
		validate: validateAgent,
	})}
	set.StringVar(&a.NodeName, "node-name", nodeName, "name of this Node; default $NODE_NAME")
	return a
}

// Load returns the configuration. The flags must have been parsed.
func (a *Agent) Load() (*v1alpha1.AgentConfiguration, error) {
	c, err := a.CommandLine.Load()
	if err := errors.Join(a.validateNodeName(), err); err != nil {
		return nil, err
	}
	return c, nil
}

func (a *Agent) validateNodeName() error {
	if a.NodeName == "" {
		return errors.New("--node-name or the environment variable NODE_NAME is required: the name of this Node")
	}
	if wrong := validation.NameIsDNSSubdomain(a.NodeName, false); len(wrong) > 0 {
		return fmt.Errorf("--node-name=%q: %s", a.NodeName, strings.Join(wrong, "; "))
	}
	return nil
}

func bindAgent(f flags, c *v1alpha1.AgentConfiguration) {
	f.text(
		&c.CRIEndpoint, "cri-endpoint", "criEndpoint",
		"socket of the container runtime, unix:///path or /path; default the first of containerd, CRI-O, k3s and cri-dockerd that responds",
	)
	f.number(
		&c.ExecConcurrency, "exec-concurrency", "execConcurrency", fmt.Sprintf("number of exec probes that run at the same time, 1 to %d", maxExecConcurrency),
	)
	f.number(&c.ProbeRate, "probe-rate", "probeRate",
		fmt.Sprintf("number of TCP probes that may run per second, %d to %d; other probes count as 2, 4 or 8 of them", minProbeRate, maxProbeRate))
	f.text(
		&c.Metrics.BindAddress, "metrics-bind-address", "metrics.bindAddress",
		"address that serves /metrics, /healthz and /readyz on the host network, host:port; 0 disables it",
	)
	bindShared(f, &c.Pprof, &c.Logging)
}

func validateAgent(c *v1alpha1.AgentConfiguration) field.ErrorList {
	var found problems
	if c.CRIEndpoint != "" && !filepath.IsAbs(strings.TrimPrefix(c.CRIEndpoint, "unix://")) {
		found.add(field.NewPath("criEndpoint"), c.CRIEndpoint, "must be unix:///path or the absolute path of a socket")
	}
	found.between(field.NewPath("execConcurrency"), c.ExecConcurrency, 1, maxExecConcurrency)
	found.between(field.NewPath("probeRate"), c.ProbeRate, minProbeRate, maxProbeRate)
	if interval := c.ReportInterval.Duration; interval < minReportInterval || interval > maxReportInterval {
		found.add(field.NewPath("reportInterval"), interval.String(), fmt.Sprintf("must be between %s and %s, inclusive", minReportInterval, maxReportInterval))
	}
	found.address(field.NewPath("metrics", "bindAddress"), c.Metrics.BindAddress)
	found.shared(c.Pprof, c.Logging)
	return found.sorted()
}
