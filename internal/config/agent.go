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

// Agent is the command line of the agent.
type Agent struct {
	// Kubeconfig is the file that says how to reach the API server, or empty.
	Kubeconfig string
	// NodeName is the name of the Node. It is no part of the file, which all nodes share.
	NodeName string

	source *source[v1alpha1.AgentConfiguration]
}

// NewAgent defines the agent's flags in set, which is then to be parsed. NodeName is the
// name of the Node as the environment has it, or empty.
func NewAgent(set *pflag.FlagSet, nodeName string) *Agent {
	a := &Agent{source: newSource(set, kind[v1alpha1.AgentConfiguration]{
		name:     "AgentConfiguration",
		defaults: v1alpha1.SetAgentDefaults,
		bind:     bindAgent,
		validate: validateAgent,
	})}
	bindKubeconfig(set, &a.Kubeconfig)
	set.StringVar(&a.NodeName, "node-name", nodeName, "name of this Node; without it $NODE_NAME")
	return a
}

// Load returns the configuration, once the flags have been parsed.
func (a *Agent) Load() (*v1alpha1.AgentConfiguration, error) {
	c, err := a.source.load()
	if err := errors.Join(a.validateNodeName(), err); err != nil {
		return nil, err
	}
	return c, nil
}

func (a *Agent) validateNodeName() error {
	if a.NodeName == "" {
		return errors.New("--node-name: empty and NODE_NAME not set, want the name of this Node")
	}
	if wrong := validation.NameIsDNSSubdomain(a.NodeName, false); len(wrong) > 0 {
		return fmt.Errorf("--node-name=%q: %s", a.NodeName, strings.Join(wrong, "; "))
	}
	return nil
}

func bindAgent(f flags, c *v1alpha1.AgentConfiguration) {
	f.text(&c.CRIEndpoint, "cri-endpoint", "criEndpoint", "socket of the container runtime, unix:///path or /path; without it that of containerd, CRI-O, k3s or cri-dockerd, whichever answers first")
	f.number(&c.ExecConcurrency, "exec-concurrency", "execConcurrency", "how many exec probes run at a time, 1 to 1024")
	f.text(&c.Metrics.BindAddress, "metrics-bind-address", "metrics.bindAddress", "host:port that serves /metrics, /healthz and /readyz, on the network of the host; 0 serves none")
	bindShared(f, &c.Pprof, &c.Logging)
}

func validateAgent(c *v1alpha1.AgentConfiguration) field.ErrorList {
	var wrong problems
	if c.CRIEndpoint != "" && !filepath.IsAbs(strings.TrimPrefix(c.CRIEndpoint, "unix://")) {
		wrong.add(field.NewPath("criEndpoint"), c.CRIEndpoint, "want unix:///path or the absolute path of a socket")
	}
	wrong.between(field.NewPath("execConcurrency"), c.ExecConcurrency, 1, 1024)
	if interval := c.ReportInterval.Duration; interval < 100*time.Millisecond || interval > time.Minute {
		wrong.add(field.NewPath("reportInterval"), interval.String(), "want 100ms to 1m")
	}
	wrong.address(field.NewPath("metrics", "bindAddress"), c.Metrics.BindAddress)
	wrong.shared(c.Pprof, c.Logging)
	return wrong.sorted()
}
