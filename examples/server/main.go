// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command example-server is the server of the examples: it serves HTTP, TCP or gRPC. Flags
// make it start slowly, become unhealthy or stop responding.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: example-server http|tcp|grpc [flags]`

// options are the flags. Times are relative to the start of the program. Zero means never,
// except for startAfter.
type options struct {
	host string
	port int
	// startAfter is the time after which the server starts to listen.
	startAfter time.Duration
	// healthyFor is the time after which it becomes unhealthy: HTTP returns 500, TCP stops
	// listening, gRPC returns NOT_SERVING.
	healthyFor time.Duration
	// alternate is the time after which the gRPC service changes its state.
	alternate time.Duration
	// service is the gRPC service that has a health state, next to the server as a whole.
	service string
	// header is a header that HTTP requests must have, as name=value.
	header string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "example-server:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and writes progress messages to out.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	mode, o := args[0], options{}
	flags := flag.NewFlagSet(mode, flag.ContinueOnError)
	flags.StringVar(&o.host, "host", "", "address to listen on; all addresses if empty")
	flags.IntVar(&o.port, "port", 8080, "port to listen on")
	flags.DurationVar(&o.startAfter, "start-after", 0, "start to listen after this time")
	flags.DurationVar(&o.healthyFor, "healthy-for", 0, "become unhealthy after this time; never if 0")
	flags.DurationVar(&o.alternate, "alternate", 0, "gRPC: interval at which the service changes its state; never if 0")
	flags.StringVar(&o.service, "service", "", "gRPC: name of a service with its own state")
	flags.StringVar(&o.header, "require-header", "", "HTTP: reject requests without this header, as NAME=VALUE")
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("parse flags: %w", err)
	}
	if o.header != "" && !strings.Contains(o.header, "=") {
		return fmt.Errorf("--require-header: %q is invalid: must be NAME=VALUE", o.header)
	}
	serve, known := map[string]func(context.Context, net.Listener, options) error{
		"http": serveHTTP, "tcp": serveTCP, "grpc": serveGRPC,
	}[mode]
	if !known {
		return fmt.Errorf("%q: %s", mode, usage)
	}
	start := time.Now()
	if !pause(ctx, o.startAfter) {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintf(out, "%s: listening on %s\n", mode, listener.Addr())
	if o.healthyFor > 0 {
		o.healthyFor = max(o.healthyFor-time.Since(start), time.Nanosecond)
	}
	return serve(ctx, listener, o)
}

// pause waits, and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
