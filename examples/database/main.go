// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command example-database is one replica of a toy database. The replicas elect a primary with a
// Lease. A replica that starts must catch up before it can become the primary. Ending the primary
// with SIGTERM hands the role over at once.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// version is set at link time.
var version = "unknown"

type options struct {
	// name is the name of the replica, and of the pod.
	name string
	// listen is the address of the HTTP server.
	listen string
	// namespace and lease name the Lease. Without an API server, they are not used.
	namespace, lease string
	timing           timing
	// rotate is the time for which a replica is the primary if there is no API server.
	rotate time.Duration
	// replicas is the number of replicas that take turns if there is no API server.
	replicas int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "example-database:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("example-database", flag.ContinueOnError)
	flags.StringVar(&o.name, "name", os.Getenv("POD_NAME"), "name of the replica, as the name of its pod")
	flags.StringVar(&o.listen, "listen", ":8080", "address of the HTTP server")
	flags.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the Lease")
	flags.StringVar(&o.lease, "lease", "database", "name of the Lease")
	flags.DurationVar(&o.timing.lag, "lag", 3*time.Second, "how long a replica that was not the primary needs to catch up")
	flags.DurationVar(&o.timing.settle, "settle", 3*time.Second,
		"how long a change of the primary is announced, and for how long the primary must not have changed when a "+
			"starting replica becomes ready; must be longer than a probe needs to mark the pods")
	flags.DurationVar(&o.timing.lease, "lease-duration", 5*time.Second, "time after which a primary that is not heard of is replaced")
	flags.DurationVar(&o.timing.retry, "retry", 500*time.Millisecond, "interval at which the Lease is read")
	flags.DurationVar(&o.rotate, "rotate", 10*time.Second, "without an API server: how long each replica is the primary")
	flags.IntVar(&o.replicas, "replicas", 3, "without an API server: how many replicas take turns")
	if err := flags.Parse(args); err != nil {
		return o, fmt.Errorf("parse flags: %w", err)
	}
	if o.name == "" {
		return o, fmt.Errorf("--name: Required value: or set POD_NAME")
	}
	for name, d := range map[string]time.Duration{
		"retry": o.timing.retry, "lease-duration": o.timing.lease, "rotate": o.rotate,
	} {
		if d <= 0 {
			return o, fmt.Errorf("--%s: %s is invalid: must be positive", name, d)
		}
	}
	if o.replicas <= 0 {
		return o, fmt.Errorf("--replicas: %d is invalid: must be positive", o.replicas)
	}
	return o, nil
}

// run serves until ctx ends, and then releases the role.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	election, err := newElection(o)
	if err != nil {
		return err
	}
	r := newReplica(o.name, version, o.timing, election, out)
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel()
		served <- serve(ctx, listener, r)
	}()
	r.run(ctx)
	cancel()
	return <-served
}
