// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/bench/nodeload"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// clusterVariable names the folder of a local cluster.
const clusterVariable = "SEAMARK_CLUSTER_DIR"

// onCluster measures the installed agent on the first node of the local cluster, with real pods.
func onCluster() harness.Measure {
	return harness.Measure{
		Name: "agent/cluster",
		Rows: rows(),
		Run:  runOnCluster,
	}
}

// clusterBench is one run of the measure.
type clusterBench struct {
	*harness.Run

	client    client.Client
	node      string
	namespace string
	// socket is the runtime's.
	socket string
	agent  *harness.Program
	pid    int
	period time.Duration
	// before is how many probes the node had.
	before int
	pods   []corev1.Pod
}

func runOnCluster(ctx context.Context, r *harness.Run) (harness.Output, error) {
	dir := os.Getenv(clusterVariable)
	if dir == "" {
		return harness.Output{}, fmt.Errorf("%w: it needs a cluster: run `make install` and set %s to its folder, "+
			"such as $PWD/.cluster", harness.ErrSkipped, clusterVariable)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return harness.Output{}, fmt.Errorf("%s=%q: must be the folder of a running cluster: %w", clusterVariable, dir, err)
	}
	config.QPS = -1
	scheme, err := env.NewScheme()
	if err != nil {
		return harness.Output{}, err
	}
	b := &clusterBench{
		Run: r, node: nodeName, socket: filepath.Join(dir, "nodes", nodeName, "containerd.sock"),
		period: harness.Pick(r, 30*time.Second, 12*time.Second), //nolint:mnd // sizes
	}
	if b.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return harness.Output{}, fmt.Errorf("build client: %w", err)
	}
	if err := b.attach(ctx); err != nil {
		return harness.Output{}, err
	}
	if err := b.createPods(ctx, harness.Pick(r, maxPods, 5)); err != nil { //nolint:mnd // pods
		return harness.Output{}, err
	}
	return b.measure(ctx)
}

// under creates a marker with the probes, measures the agent under it and deletes it.
func (b *clusterBench) under(ctx context.Context, probes ...planned) (l load, err error) {
	if len(probes) > 0 {
		marker := markerOf(b.namespace, probes...)
		if err := b.client.Create(ctx, marker); err != nil {
			return load{}, fmt.Errorf("create marker: %w", err)
		}
		defer func() { err = errors.Join(err, client.IgnoreNotFound(b.client.Delete(ctx, marker))) }()
	}
	total := b.before + len(b.pods)*len(probes)
	if err := settled(ctx, b.agent, total, harness.Pick(b.Run, settle, time.Second)); err != nil {
		return load{}, err
	}
	l.floors = map[probe.Handler]time.Duration{}
	floors := measureFloors(l.floors, probes, func(p planned) (time.Duration, error) { return b.floor(ctx, p) })
	if l.interval, err = watch(ctx, b.agent, b.period); err != nil {
		return load{}, err
	}
	if err := floors(); err != nil {
		return load{}, err
	}
	b.Log("%s", l)
	return l, nil
}

// floor measures the floor of a probe from the agent's network, against the first pod.
func (b *clusterBench) floor(ctx context.Context, p planned) (time.Duration, error) {
	target, rate := fmt.Sprintf("%s:%d", b.pods[0].Status.PodIP, podPort), p.rate(len(b.pods))
	if p.floor == nodeload.KindExec {
		// Few commands: they cost the runtime much more than the agent.
		target, rate = b.socket, 1
	}
	_, container, _ := strings.Cut(b.pods[0].Status.ContainerStatuses[0].ContainerID, "://")
	inner, err := nodeloadCommand(ctx, "floor", "--kind="+p.floor, "--target="+target, "--container="+container,
		fmt.Sprintf("--rate=%g", rate), "--for="+b.period.String())
	if err != nil {
		return 0, err
	}
	args := append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", b.pid), "--"}, inner.Args...)
	command := exec.CommandContext(ctx, "nsenter", args...) //nolint:gosec // it is this program
	command.Stderr = os.Stderr
	return floorOf(command)
}

// measure measures the agent under each load.
func (b *clusterBench) measure(ctx context.Context) (harness.Output, error) {
	m, err := measure(b.period, len(b.pods), func(probes ...planned) (load, error) { return b.under(ctx, probes...) })
	if err != nil {
		return harness.Output{}, err
	}
	out := m.output()
	out.Notes = append([]string{"The agent is that of the installation, and the runtime containerd. Each pod runs the HTTP server of busybox."}, out.Notes...)
	return out, nil
}
