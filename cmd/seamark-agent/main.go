// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command seamark-agent runs the probes of its own node and reports their states. One
// runs on every node.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/seamark-dev/seamark/internal/agent"
	agentmetrics "github.com/seamark-dev/seamark/internal/metrics/agent"
	"github.com/seamark-dev/seamark/internal/probe/exec"
)

// version is set by the linker.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// flags are the program's flags, as given.
type flags struct {
	kubeconfig      string
	nodeName        string
	endpoint        string
	execConcurrency int
	address         string
	verbosity       int
}

func newCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:          "seamark-agent",
		Short:        "Runs the probes of its node and reports their states",
		Args:         cobra.NoArgs,
		Version:      version,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), f)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "file that says how to reach the API server; without it $KUBECONFIG, ~/.kube/config, or the pod's service account")
	set.StringVar(&f.nodeName, "node-name", os.Getenv("NODE_NAME"), "name of this Node; without it $NODE_NAME")
	set.StringVar(&f.endpoint, "cri-endpoint", "", "socket of the container runtime, unix:///path or /path; without it that of containerd, CRI-O, k3s or cri-dockerd, whichever answers first")
	set.IntVar(&f.execConcurrency, "exec-concurrency", exec.DefaultConcurrency, "how many exec probes run at a time, at least 1")
	set.StringVar(&f.address, "metrics-bind-address", ":10357", "host:port that serves /metrics, /healthz and /readyz, on the network of the host; 0 serves none")
	set.IntVarP(&f.verbosity, "v", "v", 0, "log verbosity, 0 to 10; at 0 a line for each change of a probe's state")
	return cmd
}

func (f flags) validate() error {
	if f.nodeName == "" {
		return errors.New("--node-name: empty and NODE_NAME not set, want the name of this Node")
	}
	if wrong := validation.NameIsDNSSubdomain(f.nodeName, false); len(wrong) > 0 {
		return fmt.Errorf("--node-name=%q: %s", f.nodeName, strings.Join(wrong, "; "))
	}
	if f.execConcurrency < 1 {
		return fmt.Errorf("--exec-concurrency=%d: want at least 1", f.execConcurrency)
	}
	if f.verbosity < 0 || f.verbosity > 10 {
		return fmt.Errorf("--v=%d: want 0 to 10", f.verbosity)
	}
	return nil
}

func run(ctx context.Context, f flags) error {
	if err := f.validate(); err != nil {
		return err
	}
	log := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-f.verbosity)}))
	klog.SetLogger(log)
	config, err := restConfig(f.kubeconfig)
	if err != nil {
		return err
	}
	listener, err := listen(f.address)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := agentmetrics.New(registry)
	runtime, err := agent.Connect(ctx, f.endpoint, metrics.RuntimeCalled)
	if err != nil {
		return fmt.Errorf("--cri-endpoint=%q: %w", f.endpoint, err)
	}
	defer runtime.Close()
	a, err := agent.New(agent.Options{
		NodeName: f.nodeName, Config: config, Runtime: runtime, ExecConcurrency: f.execConcurrency, Version: version,
		Metrics: metrics, Gatherer: registry, Listener: listener, Rand: rand.Float64, Log: log,
	})
	if err != nil {
		return err
	}
	log.Info("Starting the agent", "version", version, "node", f.nodeName, "apiServer", config.Host)
	return a.Run(ctx)
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig=%q: finding the API server: %w", kubeconfig, err)
	}
	config.UserAgent = "seamark-agent/" + version
	return config, nil
}

func listen(address string) (net.Listener, error) {
	if address == "0" {
		return nil, nil //nolint:nilnil // nobody is to be served
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-bind-address=%q: want a free host:port, :port or 0: %w", address, err)
	}
	return listener, nil
}
