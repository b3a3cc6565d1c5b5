// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sizing measures the resources that seamark-manager needs for a cluster of a given
// size. It starts an API server, fills it with nodes, pods and markers, runs the manager, acts as
// the agents, and prints times, memory and CPU time. docs/operating.md shows its output.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/test/integration/env"
)

// size is the size of the cluster.
type size struct {
	nodes, pods, markers, clients int
	idle                          time.Duration
	manager                       string
}

func main() {
	var s size
	flag.IntVar(&s.nodes, "nodes", 1000, "how many nodes")
	flag.IntVar(&s.pods, "pods", 30000, "how many pods, spread over the nodes")
	flag.IntVar(&s.markers, "markers", 30, "how many markers, each for its part of the pods")
	flag.IntVar(&s.clients, "clients", 16, "how many requests fill the API server at a time")
	flag.DurationVar(&s.idle, "idle", 30*time.Second, "how long the idle manager is watched")
	flag.StringVar(&s.manager, "manager", "bin/seamark-manager", "the program")
	flag.Parse()
	// Discard the warnings of the API server.
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "sizing:", err)
		os.Exit(1)
	}
}

// measure runs all stages and prints a line for each.
func measure(ctx context.Context, s size) (err error) {
	e, err := env.New()
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := e.Stop(); err == nil {
			err = stopErr
		}
	}()
	c := &cluster{size: s, client: e.Client}
	if err := c.fill(ctx); err != nil {
		return err
	}
	fmt.Printf("%d nodes, %d pods of which all are probed, %d markers\n%-28s %8s %9s %9s %9s\n",
		s.nodes, s.pods, s.markers, "STAGE", "TIME", "RSS", "PEAK", "CPU")

	p, err := start(ctx, s.manager, e.Config)
	if err != nil {
		return err
	}
	defer p.stop()
	stages := []struct {
		name string
		do   func(context.Context) error
	}{
		{"plans stand", c.planned},
		{"all pods marked", c.reportAll},
		{"idle", func(ctx context.Context) error { return idle(ctx, s.idle) }},
		{"all states change", c.reportAll},
		{"idle", func(ctx context.Context) error { return idle(ctx, s.idle) }},
	}
	for _, stage := range stages {
		if err := p.stage(ctx, stage.name, stage.do); err != nil {
			return err
		}
	}
	p.stop()
	if p, err = start(ctx, s.manager, e.Config); err != nil {
		return err
	}
	defer p.stop()
	return p.stage(ctx, "restarted, then idle", func(ctx context.Context) error { return idle(ctx, s.idle) })
}

// idle waits without changes.
func idle(ctx context.Context, period time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, period, 2*period, false, func(context.Context) (bool, error) { return true, nil })
	if err != nil {
		return fmt.Errorf("idle: %w", err)
	}
	return nil
}

// program is a running manager.
type program struct {
	command *exec.Cmd
	config  string
}

// start runs the manager outside the cluster, as the administrator.
func start(ctx context.Context, path string, config *rest.Config) (*program, error) {
	folder, err := os.MkdirTemp("", "seamark-sizing-")
	if err != nil {
		return nil, fmt.Errorf("create folder for kubeconfig: %w", err)
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(toKubeconfig(config), kubeconfig); err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	p := &program{config: folder}
	p.command = exec.CommandContext(ctx, path, "--kubeconfig", kubeconfig, "--leader-elect=false",
		"--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0")
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer log.Close()
	p.command.Stdout, p.command.Stderr = log, log
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}

// stop ends the manager. It may be called twice.
func (p *program) stop() {
	if p.command.ProcessState != nil {
		return
	}
	// The manager may have ended already, and its exit code does not matter.
	_ = p.command.Process.Signal(syscall.SIGTERM)
	_ = p.command.Wait()
	_ = os.RemoveAll(p.config)
}

// stage runs a stage and prints the resources that it used.
func (p *program) stage(ctx context.Context, name string, do func(context.Context) error) error {
	before, err := p.usage()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	took := time.Since(began)
	after, err := p.usage()
	if err != nil {
		return err
	}
	fmt.Printf("%-28s %7.1fs %6d MB %6d MB %8.1fs\n", name, took.Seconds(), after.rss>>20, after.peak>>20, (after.cpu - before.cpu).Seconds())
	return nil
}

// each calls work for 0 to n-1, with limited concurrency.
func each(ctx context.Context, n, limit int, work func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for i := range n {
		group.Go(func() error { return work(ctx, i) })
	}
	return group.Wait() //nolint:wrapcheck // work has wrapped the error.
}

func toKubeconfig(config *rest.Config) api.Config {
	out := *api.NewConfig()
	out.Clusters["sizing"] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos["sizing"] = &api.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	out.Contexts["sizing"] = &api.Context{Cluster: "sizing", AuthInfo: "sizing"}
	out.CurrentContext = "sizing"
	return out
}
